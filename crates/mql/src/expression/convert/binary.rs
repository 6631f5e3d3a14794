//! Conversions of binary data: to and from formatted strings, and to and from numbers.

use super::target::{ByteOrder, Format};
use super::{Options, failure, unsupported};
use crate::context::EvalContext;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD,
};
use quire_document::{Binary, Type, Value};
use quire_error::{Error, Result};

const UUID_SUBTYPE: u8 = 4;
/// The largest string in bytes, with its terminator.
const STRING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// base64url, with or without padding.
const URL_SAFE_ANY: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the error 4341115: conversions between strings and binary data need a format.
fn needs_format() -> Error {
    Error::location(4341115, "Format must be speficied when converting from/to binData in $convert")
}

pub(super) fn to_string<'a>(
    binary: Binary<'a>,
    options: Options,
    cx: &EvalContext<'a>,
) -> Result<Value<'a>> {
    let uuid = binary.subtype == UUID_SUBTYPE && binary.bytes.len() == 16;
    let format = match options.format.ok_or_else(needs_format)? {
        Format::Auto if uuid => Format::Uuid,
        Format::Auto => Format::Base64,
        format => format,
    };
    let text = match format {
        Format::Auto | Format::Base64 => STANDARD.encode(binary.bytes),
        Format::Base64Url => URL_SAFE_NO_PAD.encode(binary.bytes),
        Format::Hex => binary.bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        Format::Utf8 => match std::str::from_utf8(binary.bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                return Err(failure("BinData does not represent a valid UTF-8 string in $convert"));
            }
        },
        Format::Uuid if uuid => uuid_text(binary.bytes),
        Format::Uuid => {
            return Err(failure(
                "Only a UUID (subtype 4, 16 bytes) converts with the format 'uuid'",
            ));
        }
    };
    if format == Format::Utf8 {
        super::super::strings::check_length(text.len())?;
    }
    if text.len() >= STRING_BYTES_MAX {
        return Err(failure("Resulting string exceeds maximum size"));
    }
    cx.string(&text)
}

fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

pub(super) fn from_value<'a>(
    value: Value<'a>,
    subtype: u8,
    options: Options,
    cx: &EvalContext<'a>,
) -> Result<Value<'a>> {
    let little = options.byte_order == ByteOrder::Little;
    let bytes = match value {
        Value::Binary(binary) if binary.subtype == subtype => return Ok(value),
        Value::Binary(binary) => {
            let text = format!(
                "Conversions between different binData subtypes are not supported: {} to {subtype}",
                binary.subtype
            );
            return Err(failure(text));
        }
        Value::String(text) => decode(text, subtype, options.format.ok_or_else(needs_format)?)?,
        Value::Int32(number) if little => number.to_le_bytes().to_vec(),
        Value::Int32(number) => number.to_be_bytes().to_vec(),
        Value::Int64(number) if little => number.to_le_bytes().to_vec(),
        Value::Int64(number) => number.to_be_bytes().to_vec(),
        Value::Double(number) if little => number.to_le_bytes().to_vec(),
        Value::Double(number) => number.to_be_bytes().to_vec(),
        other => return Err(unsupported(other, "binData")),
    };
    Ok(Value::Binary(Binary { subtype, bytes: cx.bytes(&bytes)? }))
}

fn decode(text: &str, subtype: u8, format: Format) -> Result<Vec<u8>> {
    if (format == Format::Uuid) != (subtype == UUID_SUBTYPE) {
        return Err(failure(
            "The UUID subtype and the format 'uuid' are only allowed with each other",
        ));
    }
    let bad = |name: &str| {
        failure(format!("Input string '{text}' is not a valid {name} string in $convert"))
    };
    match format {
        Format::Auto => Err(failure("The format 'auto' does not convert a string to binData")),
        Format::Base64 => STANDARD.decode(text).map_err(|_| bad("base64")),
        Format::Base64Url => URL_SAFE_ANY.decode(text).map_err(|_| bad("base64url")),
        Format::Utf8 => Ok(text.as_bytes().to_vec()),
        Format::Hex => hex(text).ok_or_else(|| bad("hex")),
        Format::Uuid => {
            let dashes = [8, 13, 18, 23].iter().all(|&at| text.as_bytes().get(at) == Some(&b'-'));
            let digits = text.replace('-', "");
            match (text.len(), dashes, digits.len()) {
                (36, true, 32) => hex(&digits).ok_or_else(|| bad("UUID")),
                _ => Err(bad("UUID")),
            }
        }
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some((digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?) as u8)).collect()
}

pub(super) fn to_number(
    binary: Binary<'_>,
    kind: Type,
    order: ByteOrder,
) -> Result<Value<'static>> {
    let mut bytes = binary.bytes.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    let number = match (kind, bytes.len()) {
        (Type::Double, 4) => array(&bytes).map(|b| Value::Double(f32::from_le_bytes(b).into())),
        (Type::Double, 8) => array(&bytes).map(|b| Value::Double(f64::from_le_bytes(b))),
        (Type::Int32, 1 | 2 | 4) => Some(Value::Int32(signed(&bytes) as i32)),
        (Type::Int64, 1 | 2 | 4 | 8) => Some(Value::Int64(signed(&bytes))),
        _ => None,
    };
    number.ok_or_else(|| {
        let text = format!(
            "Failed to convert '{}' bytes of binData to {}: invalid length",
            binary.bytes.len(),
            kind.alias()
        );
        failure(text)
    })
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Decodes a little-endian two's-complement number of at most eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut whole = [if negative { 0xff } else { 0 }; 8];
    whole.iter_mut().zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    i64::from_le_bytes(whole)
}
