//! The common part of the text formats: strings, numbers, positions of errors, and BSON written in
//! place.

use crate::builder::write_value;
use crate::{Type, Value};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use std::fmt;

/// The most levels of nested documents and arrays in a text.
pub const NESTING_MAX: usize = 400;

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiteralError {
    /// The expectation that failed.
    pub message: String,
    /// The offset in bytes.
    pub offset: usize,
    /// The line, counted from 1.
    pub line: usize,
    /// The character in its line, counted from 1.
    pub column: usize,
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at line {}, column {}", self.message, self.line, self.column)
    }
}

impl std::error::Error for LiteralError {}

/// A syntax error at the current position of the scanner.
pub(crate) struct Mistake(pub(crate) String);

pub(crate) type Scanned<T> = Result<T, Mistake>;

pub(crate) fn fault<T>(message: &str) -> Scanned<T> {
    Err(Mistake(message.into()))
}

/// A text and the current position in it.
pub(crate) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// The number of open brackets.
    pub(super) depth: usize,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Scanner { text, at: 0, depth: 0 }
    }

    pub(crate) fn locate(&self, fault: Mistake) -> LiteralError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        LiteralError {
            message: fault.0,
            offset: self.at,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Advances by this number of bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(crate) fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips `expected` if it is next, and returns true then.
    pub(crate) fn take_text(&mut self, expected: &str) -> bool {
        let found = self.text[self.at..].starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    /// Reads the bytes that satisfy `test`, up to the first that does not.
    pub(crate) fn take_while(&mut self, test: impl Fn(u8) -> bool) -> &'t str {
        let start = self.at;
        while self.peek().is_some_and(&test) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Reads a number: sign, digits, fraction, exponent.
    pub(crate) fn number(&mut self) -> Scanned<&'t str> {
        let start = self.at;
        self.at += (self.peek() == Some(b'-')) as usize;
        if self.take_while(|byte| byte.is_ascii_digit()).is_empty() {
            return fault("expected a number");
        }
        let rest = &self.text.as_bytes()[self.at..];
        if rest.first() == Some(&b'.') && rest.get(1).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let rest = &self.text.as_bytes()[self.at..];
        if matches!(rest.first(), Some(b'e' | b'E')) {
            let signed = matches!(rest.get(1), Some(b'+' | b'-')) as usize;
            if rest.get(1 + signed).is_some_and(u8::is_ascii_digit) {
                self.at += 1 + signed;
                self.take_while(|byte| byte.is_ascii_digit());
            }
        }
        Ok(&self.text[start..self.at])
    }

    /// Reads a string and decodes its escapes.
    pub(crate) fn string(&mut self) -> Scanned<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self.take_while(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            text.push_str(plain);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                Some(_) => return fault("control character in a string"),
                None => return fault("string not closed"),
            }
        }
    }

    fn escape(&mut self) -> Scanned<char> {
        let byte = self.peek();
        self.at += byte.is_some() as usize;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => {
                self.at -= byte.is_some() as usize;
                return fault("unknown escape");
            }
        })
    }

    fn unicode(&mut self) -> Scanned<char> {
        let first = self.hex4()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) {
            if self.text.as_bytes().get(self.at..self.at + 2) != Some(b"\\u") {
                return fault("half a surrogate pair");
            }
            self.at += 2;
            let second = self.hex4()?.wrapping_sub(0xdc00);
            if second >= 0x400 {
                return fault("half a surrogate pair");
            }
            code = 0x10000 + ((first - 0xd800) << 10) + second;
        }
        char::from_u32(code).ok_or(Mistake("half a surrogate pair".into()))
    }

    fn hex4(&mut self) -> Scanned<u32> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += code.map_or(0, |_| 4);
        code.ok_or(Mistake("expected four hexadecimal digits".into()))
    }
}

/// Appends the value's bytes and returns its type.
pub(crate) fn append(out: &mut Vec<u8>, value: Value<'_>) -> Type {
    write_value(out, value);
    value.kind()
}

/// Completes the document or array that begins at `start`.
pub(crate) fn finish(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Decodes pairs of hexadecimal digits; `None` for any other text.
pub fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

/// Decodes base64 with padding; `None` for any other text. Ignores the bits after the last byte.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    ENGINE.decode(text).ok()
}
