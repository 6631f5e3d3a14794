//! Resume tokens: the position in a change stream after an event, or between two events.
//!
//! A token is `{_data: hexadecimal}`. Its text is ordered as the events are. The bytes are 0x82,
//! cluster time (u64), version (u64), record (u32), offset (u32), kind (u8), fragment (u16), 0x04, in
//! big-endian order. Clients treat them as opaque.

use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};

/// The first byte of a token.
const BEGIN: u8 = 0x82;
/// The last byte of a token. A token without it has the same meaning.
const END: u8 = 0x04;
/// The length of a token without its last byte.
const LENGTH: usize = 28;

/// A decoded resume token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResumeToken {
    /// The cluster time of the event, as a number. Of a high-water mark: the time before which there
    /// are no more events.
    pub time: u64,
    /// The version of the event's commit. Of a high-water mark: the version of the last commit with
    /// changes before it; 0 for a time that a client chose.
    pub version: u64,
    /// The number of the event's record in its commit.
    pub index: u32,
    /// The position of the event in its record.
    pub offset: u32,
    /// What the token stands for.
    pub kind: TokenKind,
    /// The number of the fragment of an event that was split, from 1; 0 for a whole event.
    pub fragment: u16,
}

/// The meaning of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenKind {
    /// A position between two events.
    HighWaterMark,
    /// The position after an event.
    Event,
    /// The position after the `invalidate` that follows an event.
    Invalidate,
}

impl ResumeToken {
    /// Returns the token of a position before which every event is earlier than `time`.
    pub fn high_water_mark(time: u64, version: u64) -> Self {
        ResumeToken {
            time,
            version,
            index: 0,
            offset: 0,
            kind: TokenKind::HighWaterMark,
            fragment: 0,
        }
    }

    /// Returns the token as a client gets it, `{_data}`.
    pub fn to_doc(&self) -> DocBuf {
        let mut bytes = Vec::with_capacity(LENGTH + 1);
        bytes.push(BEGIN);
        bytes.extend_from_slice(&self.time.to_be_bytes());
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes.extend_from_slice(&self.index.to_be_bytes());
        bytes.extend_from_slice(&self.offset.to_be_bytes());
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&self.fragment.to_be_bytes());
        bytes.push(END);
        let text: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        doc! { "_data": text.as_str() }
    }

    /// Decodes a token of a client. Other fields than `_data`, and bytes after the token, are
    /// ignored.
    ///
    /// # Errors
    /// 40647 without `_data`, 40648 for `_typeBits` of a wrong type, 40649 for an empty text, 9 for
    /// one that is not hexadecimal, 50811 for one that is not a token, 15 Overflow for one that is
    /// too short.
    pub fn parse(token: Doc<'_>) -> Result<Self> {
        let Some(Value::String(text)) = token.get("_data") else {
            let text = "Bad resume token: _data of missing or of wrong type. Expected string";
            return Err(Error::location(40647, text));
        };
        match token.get("_typeBits") {
            None | Some(Value::Binary(_)) => {}
            Some(_) => {
                let text = "Bad resume token: _typeBits of wrong type";
                return Err(Error::location(40648, text));
            }
        }
        if text.is_empty() {
            return Err(Error::location(40649, "invalid empty resume token"));
        }
        let bytes = hexadecimal(text).ok_or_else(|| {
            Error::failed_to_parse("resume token string was not a valid hex string")
        })?;
        match bytes.first() {
            Some(&BEGIN) => {}
            first => {
                let first = first.copied().unwrap_or_default();
                let text = format!("KeyString format error: Unknown type: {first}");
                return Err(Error::location(50811, text));
            }
        }
        decode(&bytes).ok_or_else(|| {
            Error::new(ErrorCode::Overflow, "Buffer overrun: the resume token is too short")
        })
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8);
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

fn decode(bytes: &[u8]) -> Option<ResumeToken> {
    let (time, rest) = bytes.get(1..)?.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (kind, rest) = rest.split_first()?;
    let (fragment, _) = rest.split_first_chunk()?;
    let kind = match kind {
        0 => TokenKind::HighWaterMark,
        1 => TokenKind::Event,
        2 => TokenKind::Invalidate,
        _ => return None,
    };
    Some(ResumeToken {
        time: u64::from_be_bytes(*time),
        version: u64::from_be_bytes(*version),
        index: u32::from_be_bytes(*index),
        offset: u32::from_be_bytes(*offset),
        kind,
        fragment: u16::from_be_bytes(*fragment),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn token(time: u64, version: u64, offset: u32, kind: TokenKind) -> ResumeToken {
        ResumeToken { time, version, index: 1, offset, kind, fragment: 0 }
    }

    #[test]
    fn the_text_of_tokens_has_the_order_of_their_events() {
        let tokens = [
            ResumeToken::high_water_mark(5, 0),
            token(5, 9, 0, TokenKind::Event),
            token(5, 9, 0, TokenKind::Invalidate),
            token(5, 9, 1, TokenKind::Event),
            ResumeToken::high_water_mark(6, 9),
            token(6, 10, 0, TokenKind::Event),
        ];
        let text =
            |token: &ResumeToken| token.to_doc().get("_data").unwrap().as_str().unwrap().to_owned();
        assert!(tokens.iter().map(text).is_sorted_by(|one, next| one < next));
        for token in &tokens {
            assert_eq!(ResumeToken::parse(token.to_doc().as_doc()).unwrap(), *token);
        }
    }

    #[test]
    fn only_the_last_byte_may_be_missing() {
        let whole = token(5, 9, 3, TokenKind::Event);
        let text = whole.to_doc().get("_data").unwrap().as_str().unwrap().to_owned();
        let parse = |text: &str| ResumeToken::parse(doc! { "_data": text }.as_doc());
        for same in [&text[..text.len() - 2], &text.to_lowercase(), &format!("{text}FF")] {
            assert_eq!(parse(same).unwrap(), whole);
        }
        for length in (2..text.len() - 2).step_by(2) {
            assert_eq!(parse(&text[..length]).unwrap_err().code(), ErrorCode::Overflow);
        }
        assert_eq!(parse("00").unwrap_err().code().number(), 50811);
        assert_eq!(parse("820").unwrap_err().code(), ErrorCode::FailedToParse);
    }
}
