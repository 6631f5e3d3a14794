//! The facts that a certificate states: its subject, which is a user name, and the end of its
//! validity.

use der::asn1::{AnyRef, BmpString, GeneralizedTime, ObjectIdentifier, UtcTime};
use der::{Decode, Reader, SliceReader, Tag, Tagged};
use std::fmt::Write;

/// The facts of a certificate that matter to users and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The subject's distinguished name in the notation of RFC 2253: the last part comes first.
    pub subject: String,
    /// The last second of its validity, counted from 1970.
    pub not_after_s: u64,
}

/// Short names of the attribute types of a subject. Other types are written as their number.
const NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.46", "dnQualifier"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

impl Certificate {
    /// Reads the facts of a certificate (RFC 5280, section 4.1). Returns `None` if it is malformed
    /// or a part of its subject is not text.
    pub fn parse(der: &[u8]) -> Option<Certificate> {
        read(der).ok()
    }
}

fn read(der: &[u8]) -> der::Result<Certificate> {
    let certificate = AnyRef::from_der(der)?;
    let mut outer = inside(&certificate, Tag::Sequence)?;
    let signed = AnyRef::decode(&mut outer)?;
    let mut fields = inside(&signed, Tag::Sequence)?;
    // Fields of the certificate: version (optional), serial number, algorithm, issuer.
    if AnyRef::decode(&mut fields)?.tag() != Tag::Integer {
        AnyRef::decode(&mut fields)?;
    }
    AnyRef::decode(&mut fields)?;
    AnyRef::decode(&mut fields)?;
    let validity = AnyRef::decode(&mut fields)?;
    let mut times = inside(&validity, Tag::Sequence)?;
    AnyRef::decode(&mut times)?;
    let not_after_s = seconds(AnyRef::decode(&mut times)?)?;
    let subject = subject(&AnyRef::decode(&mut fields)?)?;
    Ok(Certificate { subject, not_after_s })
}

fn inside<'a>(value: &AnyRef<'a>, tag: Tag) -> der::Result<SliceReader<'a>> {
    value.tag().assert_eq(tag)?;
    SliceReader::new(value.value())
}

fn seconds(time: AnyRef<'_>) -> der::Result<u64> {
    let since = match time.tag() {
        Tag::UtcTime => time.decode_as::<UtcTime>()?.to_unix_duration(),
        _ => time.decode_as::<GeneralizedTime>()?.to_unix_duration(),
    };
    Ok(since.as_secs())
}

/// Writes a name in the order of RFC 2253, section 2.1: the last part comes first.
fn subject(name: &AnyRef<'_>) -> der::Result<String> {
    let mut parts = inside(name, Tag::Sequence)?;
    let mut texts = Vec::new();
    while !parts.is_finished() {
        let part = AnyRef::decode(&mut parts)?;
        let mut attributes = inside(&part, Tag::Set)?;
        let mut text = String::new();
        while !attributes.is_finished() {
            if !text.is_empty() {
                text.push('+');
            }
            attribute(&AnyRef::decode(&mut attributes)?, &mut text)?;
        }
        texts.push(text);
    }
    texts.reverse();
    Ok(texts.join(","))
}

fn attribute(pair: &AnyRef<'_>, out: &mut String) -> der::Result<()> {
    let mut fields = inside(pair, Tag::Sequence)?;
    let kind = ObjectIdentifier::decode(&mut fields)?.to_string();
    let value = AnyRef::decode(&mut fields)?;
    let short = NAMES.iter().find(|(number, _)| *number == kind);
    out.push_str(short.map_or(kind.as_str(), |(_, short)| short));
    out.push('=');
    escape(&text(value)?, out);
    Ok(())
}

/// Returns the text of any of the string types that names may have.
fn text(value: AnyRef<'_>) -> der::Result<String> {
    let tag = value.tag();
    match tag {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            let text = std::str::from_utf8(value.value()).map_err(|_| tag.value_error())?;
            Ok(text.to_owned())
        }
        Tag::TeletexString => Ok(value.value().iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => Ok(value.decode_as::<BmpString>()?.chars().collect()),
        _ => Err(tag.unexpected_error(None)),
    }
}

/// Escapes a value by RFC 2253, section 2.4. Bytes outside printable ASCII become hexadecimal
/// digits, so that a name contains no control character and no character that looks like another.
fn escape(value: &str, out: &mut String) {
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if at == 0 || at == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(value: &str) -> String {
        let mut out = String::new();
        escape(value, &mut out);
        out
    }

    #[test]
    fn values_are_escaped_as_rfc_2253_says() {
        assert_eq!(escaped("New York"), "New York");
        assert_eq!(escaped(" a,b+c "), "\\ a\\,b\\+c\\ ");
        assert_eq!(escaped("#1#"), "\\#1#");
        assert_eq!(escaped("ä\0"), "\\C3\\A4\\00");
        assert_eq!(escaped(" "), "\\ ");
        assert_eq!(escaped(""), "");
    }

    #[test]
    fn a_subject_is_written_last_part_first() {
        // SEQUENCE { SET { C=US }, SET { CN="a,b" + OU=x } }
        let name: &[u8] = &[
            0x30, 0x23, 0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x13, 0x02, b'U',
            b'S', 0x31, 0x14, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'a', b',',
            b'b', 0x30, 0x06, 0x06, 0x03, 0x55, 0x04, 0x0b, 0x0c,
        ];
        let cut_short = AnyRef::from_der(name).and_then(|name| subject(&name));
        assert!(cut_short.is_err());
        let name: &[u8] = &[
            0x30, 0x25, 0x31, 0x0b, 0x30, 0x09, 0x06, 0x03, 0x55, 0x04, 0x06, 0x13, 0x02, b'U',
            b'S', 0x31, 0x16, 0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03, b'a', b',',
            b'b', 0x30, 0x08, 0x06, 0x03, 0x55, 0x04, 0x0b, 0x0c, 0x01, b'x',
        ];
        let name = AnyRef::from_der(name).and_then(|name| subject(&name));
        assert_eq!(name.as_deref().ok(), Some("CN=a\\,b+OU=x,C=US"));
    }

    #[test]
    fn malformed_certificates_have_no_facts() {
        for bytes in
            [&b""[..], b"\x30", b"\x30\x00", b"\x30\x02\x30\x00", &[0x30, 0x84, 255, 255, 255, 255]]
        {
            assert_eq!(Certificate::parse(bytes), None);
        }
    }
}
