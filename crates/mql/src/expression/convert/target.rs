//! The target of `$convert`: type, subtype, format and byte order, with their errors.

use quire_document::number::Number;
use quire_document::{Type, Value};
use quire_error::{Error, Result};

/// The type to convert to.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub kind: Type,
    /// The subtype, for binary data.
    pub subtype: u8,
}

/// The representation of binary data in a string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Auto,
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl Target {
    pub fn of(kind: Type) -> Self {
        Target { kind, subtype: 0 }
    }
}

/// Parses `to`: a name, a number, or a document with one of them in `type`. Returns `None` for the
/// type "missing", to which no value converts.
pub(super) fn parse_kind(to: Value<'_>) -> Result<Option<Type>> {
    let to = match to {
        Value::Document(doc) => match doc.get("type") {
            Some(kind) => kind,
            None => return Err(Error::failed_to_parse("Missing 'type' parameter to $convert")),
        },
        other => other,
    };
    match to {
        Value::String("missing") => Ok(None),
        Value::String(name) => by_name(name)
            .map(Some)
            .ok_or_else(|| Error::bad_value(format!("Unknown type name: {name}"))),
        number if number.is_number() => {
            let code = number.as_number().and_then(Number::exact_i64);
            let code = code.ok_or_else(|| {
                Error::failed_to_parse("In $convert, numeric 'to' argument is not an integer")
            })?;
            let kind = match code {
                0 => return Ok(None),
                -1 => Some(Type::MinKey),
                127 => Some(Type::MaxKey),
                1..=19 => Type::from_byte(code as u8),
                _ => None,
            };
            kind.map(Some).ok_or_else(|| {
                let text = format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
                );
                Error::failed_to_parse(text)
            })
        }
        other => {
            let text = format!(
                "$convert's 'to' argument must be a string or number, but is {}",
                other.type_name()
            );
            Err(Error::failed_to_parse(text))
        }
    }
}

fn by_name(name: &str) -> Option<Type> {
    let bytes = (1..=19).chain([0x7f, 0xff]);
    bytes.filter_map(Type::from_byte).find(|kind| kind.alias() == name)
}

/// Parses the subtype of binary data; 0 if none was given.
pub(super) fn parse_subtype(to: Value<'_>, kind: Option<Type>) -> Result<u8> {
    let given = to.as_document().and_then(|doc| doc.get("subtype"));
    let (Some(subtype), Some(Type::Binary)) = (given, kind) else { return Ok(0) };
    let Some(number) = subtype.as_number() else {
        let text =
            format!("In $convert, 'subtype' must be a number, but is {}", subtype.type_name());
        return Err(Error::location(4341108, text));
    };
    let Some(number) = Number::exact_i64(number) else {
        return Err(Error::location(
            4341106,
            "In $convert, numeric 'subtype' argument is not an integer",
        ));
    };
    match u8::try_from(number) {
        Ok(subtype) if !(10..128).contains(&subtype) => Ok(subtype),
        _ => {
            let text = format!(
                "In $convert, numeric value for 'subtype' does not correspond to a BinData type: {number}"
            );
            Err(Error::location(4341107, text))
        }
    }
}

/// Parses the format; `None` if none was given.
pub(super) fn parse_format(format: Option<Value<'_>>) -> Result<Option<Format>> {
    let name = match format {
        None | Some(Value::Null | Value::Undefined) => return Ok(None),
        Some(Value::String(name)) => name,
        Some(other) => {
            let text = format!(
                "$convert requires that 'format' be a string, found: {}",
                other.type_name()
            );
            return Err(Error::location(4341114, text));
        }
    };
    Ok(Some(match name {
        "auto" => Format::Auto,
        "base64" => Format::Base64,
        "base64url" => Format::Base64Url,
        "hex" => Format::Hex,
        "utf8" => Format::Utf8,
        "uuid" => Format::Uuid,
        _ => {
            let text = format!("Invalid 'format' argument for $convert: {name}");
            return Err(Error::location(4341125, text));
        }
    }))
}

/// Parses the byte order; little-endian if none was given.
pub(super) fn parse_byte_order(order: Option<Value<'_>>) -> Result<ByteOrder> {
    match order {
        None | Some(Value::Null | Value::Undefined | Value::String("little")) => {
            Ok(ByteOrder::Little)
        }
        Some(Value::String("big")) => Ok(ByteOrder::Big),
        Some(Value::String(other)) => {
            let text = format!("Invalid 'byteOrder' argument for $convert: {other}");
            Err(Error::location(9130002, text))
        }
        Some(other) => {
            let text = format!(
                "$convert requires that 'byteOrder' be a string, found: {}",
                other.type_name()
            );
            Err(Error::location(9130001, text))
        }
    }
}
