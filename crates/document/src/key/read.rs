//! Decodes the values of a key.

use super::bits::BitReader;
use super::{KeyError, class, number};
use crate::builder::{ArrayWriter, write_value};
use crate::doc::decode;
use crate::{Binary, DbPointer, ObjectId, Regex, Timestamp, Type, Value, ValueBuf};

/// Reads the values of a key one after the other.
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    bytes: Bytes<'a>,
    bits: BitReader<'a>,
    /// True if strings are sort keys.
    sort_keys: bool,
}

/// The bytes of a key, read inverted if a field descends or a number is negative.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    mask: u8,
}

impl<'a> KeyReader<'a> {
    /// Returns a reader of a key and of the type bits that were stored with it.
    pub const fn new(key: &'a [u8], type_bits: &'a [u8]) -> Self {
        let (bytes, bits) = (Bytes::new(key, false), BitReader::new(type_bits));
        KeyReader { bytes, bits, sort_keys: false }
    }

    /// Sets whether the next values were written under a collation. A string is then returned as
    /// its sort key, with one character for each byte: the character with that code point.
    pub const fn has_sort_keys(&mut self, sort_keys: bool) {
        self.sort_keys = sort_keys;
    }

    /// Returns the next value exactly as it was written; `None` if the field was missing.
    pub fn next(&mut self, descending: bool) -> Result<Option<ValueBuf>, KeyError> {
        let mut out = Vec::new();
        let kind = self.next_into(descending, &mut out)?;
        Ok(kind.map(|kind| ValueBuf::new(decode(kind, &out))))
    }

    /// Appends the next value in wire form and returns its type; `None`, and appends nothing, if
    /// the field was missing.
    pub fn next_into(
        &mut self,
        descending: bool,
        out: &mut Vec<u8>,
    ) -> Result<Option<Type>, KeyError> {
        self.bytes.mask = if descending { 0xff } else { 0 };
        let class = self.bytes.byte()?;
        if class == class::NULL {
            return Ok((self.bits.take(1) == 0).then_some(Type::Null));
        }
        self.value(class, out).map(Some)
    }

    /// Returns the bytes that are not read yet. After the last value these are the bytes after the
    /// values.
    pub const fn rest(&self) -> &'a [u8] {
        self.bytes.rest
    }

    fn value(&mut self, class: u8, out: &mut Vec<u8>) -> Result<Type, KeyError> {
        let value = match class {
            class::NAN..=class::HUGE => {
                return number::read(class, &mut self.bytes, &mut self.bits, out);
            }
            class::STRING => {
                let text =
                    if self.sort_keys { self.bytes.sort_key()? } else { self.bytes.text()? };
                let symbol = self.bits.take(1) == 1;
                let value = if symbol { Value::Symbol(&text) } else { Value::String(&text) };
                write_value(out, value);
                return Ok(value.kind());
            }
            class::DOCUMENT => return self.document(out),
            class::ARRAY => return self.array(out),
            class::NULL => {
                self.bits.take(1);
                Value::Null
            }
            class::MIN_KEY => Value::MinKey,
            class::MAX_KEY => Value::MaxKey,
            class::UNDEFINED => Value::Undefined,
            class::FALSE => Value::Bool(false),
            class::TRUE => Value::Bool(true),
            class::DATE => Value::Date((self.bytes.word(8)? ^ 1 << 63) as i64),
            class::TIMESTAMP => Value::Timestamp(Timestamp::from_u64(self.bytes.word(8)?)),
            class::OBJECT_ID => Value::ObjectId(self.bytes.object_id()?),
            _ => return self.rarer(class, out),
        };
        write_value(out, value);
        Ok(value.kind())
    }

    fn rarer(&mut self, class: u8, out: &mut Vec<u8>) -> Result<Type, KeyError> {
        match class {
            class::BINARY => {
                let length = self.bytes.length()?;
                let subtype = self.bytes.byte()?;
                let bytes = self.bytes.raw(length)?;
                write_value(out, Value::Binary(Binary { subtype, bytes: &bytes }));
                Ok(Type::Binary)
            }
            class::REGEX => {
                let (pattern, options) = (self.bytes.text()?, self.bytes.text()?);
                write_value(out, Value::Regex(Regex { pattern: &pattern, options: &options }));
                Ok(Type::Regex)
            }
            class::DB_POINTER => {
                let length = self.bytes.length()?;
                let namespace = utf8(self.bytes.raw(length)?)?;
                let id = self.bytes.object_id()?;
                write_value(out, Value::DbPointer(DbPointer { namespace: &namespace, id }));
                Ok(Type::DbPointer)
            }
            class::CODE => {
                write_value(out, Value::Code(&self.bytes.text()?));
                Ok(Type::Code)
            }
            class::CODE_WITH_SCOPE => {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                write_value(out, Value::String(&self.bytes.text()?));
                self.document(out)?;
                patch_length(out, start);
                Ok(Type::CodeWithScope)
            }
            _ => Err(KeyError),
        }
    }

    fn document(&mut self, out: &mut Vec<u8>) -> Result<Type, KeyError> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        while self.bytes.byte()? != 0 {
            let place = out.len();
            out.push(0);
            self.bytes.unescape(out)?;
            out.push(0);
            let class = self.bytes.byte()?;
            out[place] = self.value(class, out)?.byte();
        }
        out.push(0);
        patch_length(out, start);
        Ok(Type::Document)
    }

    fn array(&mut self, out: &mut Vec<u8>) -> Result<Type, KeyError> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut index = 0;
        loop {
            let class = self.bytes.byte()?;
            if class == 0 {
                break;
            }
            let place = out.len();
            out.push(0);
            ArrayWriter::write_name(out, index);
            index += 1;
            out[place] = self.value(class, out)?.byte();
        }
        out.push(0);
        patch_length(out, start);
        Ok(Type::Array)
    }
}

fn patch_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn utf8(bytes: Vec<u8>) -> Result<String, KeyError> {
    String::from_utf8(bytes).map_err(|_| KeyError)
}

impl<'a> Bytes<'a> {
    pub(super) const fn new(rest: &'a [u8], descending: bool) -> Self {
        Bytes { rest, mask: if descending { 0xff } else { 0 } }
    }

    /// Returns the bytes that are not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), KeyError> {
        self.rest = self.rest.get(count..).ok_or(KeyError)?;
        Ok(())
    }

    /// Skips a text and its terminator, which is its only zero byte: escapes contain none.
    pub(super) fn skip_text(&mut self) -> Result<(), KeyError> {
        let end = self.rest.iter().position(|byte| *byte == self.mask).ok_or(KeyError)?;
        self.skip(end + 1)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, KeyError> {
        let (&first, rest) = self.rest.split_first().ok_or(KeyError)?;
        self.rest = rest;
        Ok(first ^ self.mask)
    }

    /// Reads a big-endian number of `count` bytes, at most eight.
    pub(super) fn word(&mut self, count: usize) -> Result<u64, KeyError> {
        (0..count).try_fold(0, |word, _| Ok(word << 8 | self.byte()? as u64))
    }

    /// Reads with the bytes inverted, or inverted once more, if `inverted` is true.
    pub(super) fn inverted<T>(&mut self, inverted: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        let mask = self.mask;
        self.mask ^= if inverted { 0xff } else { 0 };
        let result = read(self);
        self.mask = mask;
        result
    }

    fn raw(&mut self, count: usize) -> Result<Vec<u8>, KeyError> {
        let (raw, rest) = self.rest.split_at_checked(count).ok_or(KeyError)?;
        self.rest = rest;
        Ok(raw.iter().map(|byte| byte ^ self.mask).collect())
    }

    fn object_id(&mut self) -> Result<ObjectId, KeyError> {
        Ok(ObjectId(self.raw(12)?.try_into().map_err(|_| KeyError)?))
    }

    /// Reads a length as [`super::write::append_length`] writes it.
    pub(super) fn length(&mut self) -> Result<usize, KeyError> {
        let first = self.byte()?;
        let length = match first {
            0..=247 => first as u64,
            _ => self.word((first - 247) as usize)?,
        };
        usize::try_from(length).map_err(|_| KeyError)
    }

    /// Appends the bytes up to the terminator, with escapes decoded.
    fn unescape(&mut self, out: &mut Vec<u8>) -> Result<(), KeyError> {
        loop {
            match self.byte()? {
                0 => return Ok(()),
                1 => match self.byte()? {
                    code @ (1 | 2) => out.push(code - 1),
                    _ => return Err(KeyError),
                },
                byte => out.push(byte),
            }
        }
    }

    fn text(&mut self) -> Result<String, KeyError> {
        let mut text = Vec::new();
        self.unescape(&mut text)?;
        utf8(text)
    }

    /// Returns a sort key as text, with one character for each byte.
    fn sort_key(&mut self) -> Result<String, KeyError> {
        let mut bytes = Vec::new();
        self.unescape(&mut bytes)?;
        Ok(bytes.into_iter().map(char::from).collect())
    }
}
