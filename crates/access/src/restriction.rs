//! Authentication restrictions: the client and server addresses between which a user may log in.
//! (MongoDB manual, "Authentication Restrictions".)

use std::net::IpAddr;
use std::str::FromStr;

use quire_document::{Array, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// One restriction document. A login must match both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Restriction {
    client_source: Option<Vec<Range>>,
    server_address: Option<Vec<Range>>,
}

/// The restrictions of a user or a role. A login must match one of them, unless there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restrictions(Vec<Restriction>);

/// A range of addresses in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    address: IpAddr,
    prefix: u8,
}

impl Restrictions {
    /// Reads an array of `{clientSource, serverAddress}`. `owner` is the command that contains the
    /// array; error messages name it.
    ///
    /// # Errors
    /// 14 TypeMismatch, 40415 for an unknown field, 2 BadValue for a text that is not an address.
    pub fn parse(array: Array<'_>, owner: &str) -> Result<Self> {
        let documents = array.iter().map(|value| match value {
            Value::Document(doc) => parse_one(doc, owner),
            other => Err(wrong_type(owner, "", other, "object")),
        });
        Ok(Restrictions(documents.collect::<Result<_>>()?))
    }

    /// Returns true if a client at the address `client` may log in at the server's address
    /// `server`. An unknown address (a local socket) matches no list of addresses.
    pub fn allow(&self, client: Option<IpAddr>, server: Option<IpAddr>) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|one| {
                within(one.client_source.as_deref(), client)
                    && within(one.server_address.as_deref(), server)
            })
    }
}

fn within(ranges: Option<&[Range]>, address: Option<IpAddr>) -> bool {
    let Some(ranges) = ranges else { return true };
    address.is_some_and(|address| ranges.iter().any(|range| range.contains(address)))
}

fn parse_one(doc: Doc<'_>, owner: &str) -> Result<Restriction> {
    let mut found = Restriction::default();
    for (name, value) in doc.fields() {
        let place = match name {
            "clientSource" => &mut found.client_source,
            "serverAddress" => &mut found.server_address,
            _ => {
                let text = format!(
                    "BSON field '{owner}.authenticationRestrictions.{name}' is an unknown field."
                );
                return Err(Error::new(ErrorCode::IDLUnknownField, text));
            }
        };
        let Value::Array(list) = value else {
            return Err(wrong_type(owner, name, value, "array"));
        };
        let ranges = list.iter().map(|value| match value {
            Value::String(text) => text.parse(),
            other => Err(wrong_type(owner, name, other, "string")),
        });
        *place = Some(ranges.collect::<Result<_>>()?);
    }
    Ok(found)
}

fn wrong_type(owner: &str, name: &str, found: Value<'_>, expected: &str) -> Error {
    let dot = if name.is_empty() { "" } else { "." };
    Error::type_mismatch(format!(
        "BSON field '{owner}.authenticationRestrictions{dot}{name}' is the wrong type '{}', expected type '{expected}'",
        found.type_name()
    ))
}

impl FromStr for Range {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::bad_value("Invalid IP address in CIDR string");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| invalid())?,
            None => bits,
        };
        match prefix <= bits {
            true => Ok(Range { address, prefix }),
            false => Err(Error::bad_value("Invalid length in CIDR string")),
        }
    }
}

impl Range {
    /// Returns true if the range contains the address. An IPv4 address that is mapped into IPv6
    /// counts as IPv4.
    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.prefix);
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.prefix);
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Restrictions;
    use quire_document::literal;
    use std::net::IpAddr;

    fn parse(text: &str) -> super::Result<Restrictions> {
        let value = literal::parse(text).unwrap();
        Restrictions::parse(value.as_value().as_array().unwrap(), "createUser")
    }

    fn allows(list: &str, client: &str) -> bool {
        let address: Option<IpAddr> = client.parse().ok();
        parse(list).unwrap().allow(address, None)
    }

    #[test]
    fn addresses_are_compared_by_their_prefix() {
        assert!(allows("[]", "10.0.0.1"));
        assert!(allows(r#"[{clientSource: ["10.0.0.0/8"]}]"#, "10.9.9.9"));
        assert!(!allows(r#"[{clientSource: ["10.0.0.0/8"]}]"#, "11.0.0.1"));
        assert!(allows(r#"[{clientSource: ["127.0.0.1"]}]"#, "::ffff:127.0.0.1"));
        assert!(allows(r#"[{clientSource: ["::/0"]}]"#, "::1"));
        assert!(!allows(r#"[{clientSource: ["127.0.0.1"]}]"#, "unix"));
        assert!(!allows(r#"[{serverAddress: ["127.0.0.1"]}]"#, "127.0.0.1"));
        assert!(allows(r#"[{clientSource: ["1.1.1.1"]}, {clientSource: ["2.2.2.2"]}]"#, "2.2.2.2"));
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for bad in [
            r#"[{clientSource: ["x"]}]"#,
            r#"[{clientSource: ["10.0.0.0/33"]}]"#,
            "[5]",
            "[{a: 1}]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
