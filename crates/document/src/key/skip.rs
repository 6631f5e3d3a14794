//! Skips a value of a key. That needs only the key's bytes, not its type bits.

use super::read::Bytes;
use super::{KeyError, class, number};

/// Returns the bytes of `key` after its first value.
pub fn skip(key: &[u8], descending: bool) -> Result<&[u8], KeyError> {
    let mut bytes = Bytes::new(key, descending);
    skip_value(&mut bytes)?;
    Ok(bytes.rest())
}

fn skip_value(bytes: &mut Bytes<'_>) -> Result<(), KeyError> {
    let class = bytes.byte()?;
    skip_rest(class, bytes)
}

/// Skips the bytes of a value after its class.
fn skip_rest(class: u8, bytes: &mut Bytes<'_>) -> Result<(), KeyError> {
    match class {
        class::NAN..=class::HUGE => number::skip(class, bytes),
        class::NULL
        | class::MIN_KEY
        | class::MAX_KEY
        | class::UNDEFINED
        | class::FALSE
        | class::TRUE => Ok(()),
        class::STRING | class::CODE => bytes.skip_text(),
        class::DATE | class::TIMESTAMP => bytes.skip(8),
        class::OBJECT_ID => bytes.skip(12),
        class::DOCUMENT => skip_fields(bytes),
        class::ARRAY => skip_elements(bytes),
        class::BINARY => {
            let length = bytes.length()?;
            bytes.skip(1)?;
            bytes.skip(length)
        }
        class::REGEX => {
            bytes.skip_text()?;
            bytes.skip_text()
        }
        class::DB_POINTER => {
            let length = bytes.length()?;
            bytes.skip(length)?;
            bytes.skip(12)
        }
        class::CODE_WITH_SCOPE => {
            bytes.skip_text()?;
            skip_fields(bytes)
        }
        _ => Err(KeyError),
    }
}

fn skip_fields(bytes: &mut Bytes<'_>) -> Result<(), KeyError> {
    while bytes.byte()? != 0 {
        bytes.skip_text()?;
        skip_value(bytes)?;
    }
    Ok(())
}

fn skip_elements(bytes: &mut Bytes<'_>) -> Result<(), KeyError> {
    loop {
        match bytes.byte()? {
            0 => return Ok(()),
            class => skip_rest(class, bytes)?,
        }
    }
}
