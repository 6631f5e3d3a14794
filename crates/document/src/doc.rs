//! Views on the bytes of a document or an array.

use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, DocBuf, ObjectId, Regex, Timestamp, Type, Value,
};
use std::fmt;

/// The five bytes of an empty document.
pub(crate) const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

/// A document as its bytes: length, elements, and a terminating zero.
///
/// The bytes have passed validation (at the socket) or were written by [`crate::DocWriter`]. If
/// they are not valid, reading is still memory safe and does not panic: iteration ends early.
#[derive(Clone, Copy)]
pub struct Doc<'a>(&'a [u8]);

/// An array as its bytes: a document with the names "0", "1", and so on, which are never read.
#[derive(Clone, Copy)]
pub struct Array<'a>(Doc<'a>);

/// An element of a document, not yet decoded.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    kind: Type,
    key: &'a [u8],
    bytes: &'a [u8],
}

/// An iterator over the elements of a document, in order.
#[derive(Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Doc<'a> {
    /// Returns a view of bytes that are known to be exactly one valid document.
    pub const fn from_valid_bytes(bytes: &'a [u8]) -> Self {
        Doc(bytes)
    }

    /// Returns the empty document.
    pub const fn empty() -> Self {
        Doc(EMPTY)
    }

    /// Returns all bytes, with length and terminator.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the bytes of the elements, without length and terminator.
    pub fn element_bytes(self) -> &'a [u8] {
        let end = self.0.len().max(5) - 1;
        self.0.get(4..end).unwrap_or(&[])
    }

    /// Returns the size in bytes.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Returns true if the document has no fields.
    pub const fn is_empty(self) -> bool {
        self.0.len() <= 5
    }

    /// Returns the elements in order.
    pub fn iter(self) -> Iter<'a> {
        Iter { rest: self.element_bytes() }
    }

    /// Returns the elements after the first `consumed` bytes of elements; see [`Iter::consumed`].
    pub fn iter_from(self, consumed: usize) -> Iter<'a> {
        Iter { rest: self.element_bytes().get(consumed..).unwrap_or(&[]) }
    }

    /// Returns names and values in order.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Value<'a>)> + Clone {
        self.iter().map(|element| (element.key(), element.value()))
    }

    /// Returns the value of the first field with this name.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.find(name).map(|element| element.value())
    }

    /// Returns the first element with this name, not decoded.
    pub fn find(self, name: &str) -> Option<Element<'a>> {
        let name = Name::new(name.as_bytes());
        let mut elements = self.iter();
        loop {
            let is_there = elements.skip_others(name);
            let element = elements.next()?;
            if is_there || element.key == name.bytes {
                return Some(element);
            }
        }
    }

    /// Returns true if there is a field with this name.
    pub fn contains(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the first element, not decoded.
    pub fn first(self) -> Option<Element<'a>> {
        self.iter().next()
    }

    /// Counts the fields, in time proportional to the document.
    pub fn count(self) -> usize {
        self.iter().count()
    }

    /// Counts the fields with this name, and returns whether any field is of type `kind`. Most fields
    /// take one comparison of words.
    pub fn tally(self, name: &str, kind: Type) -> (usize, bool) {
        let (mut named, mut has_kind) = (0, false);
        let (mut fields, searched) = (self.iter(), Name::new(name.as_bytes()));
        loop {
            while searched.is_short
                && let Some(([byte, word @ ..], _)) = fields.rest.split_first_chunk::<9>()
                && let word = u64::from_le_bytes(*word)
                && let Some(rest) = fields.after(*byte, word)
            {
                named += usize::from(searched.begins(word));
                has_kind |= *byte == kind.byte();
                fields.rest = rest;
            }
            let Some(element) = fields.next() else { return (named, has_kind) };
            named += usize::from(element.key_bytes() == name.as_bytes());
            has_kind |= element.kind() == kind;
        }
    }

    /// Returns true if documents and arrays nest in at most `levels` levels, of which this document
    /// is the first. Does not read a document that is too small to nest deeper.
    pub fn nests_within(self, levels: usize) -> bool {
        self.len() < levels * LEVEL_BYTES_MIN || nests_within(self, levels)
    }

    /// Returns a copy that owns its bytes.
    pub fn to_owned(self) -> DocBuf {
        DocBuf::from_valid_bytes(self.0.to_vec())
    }
}

/// The fewest bytes of a level of nesting: a length, a type, a name and two zeros.
const LEVEL_BYTES_MIN: usize = 8;

fn nests_within(doc: Doc<'_>, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return false };
    doc.iter().all(|element| match element.value() {
        Value::Document(inner) => nests_within(inner, below),
        Value::Array(inner) => nests_within(inner.as_doc(), below),
        _ => true,
    })
}

impl Default for Doc<'_> {
    fn default() -> Self {
        Doc::empty()
    }
}

impl<'a> Array<'a> {
    /// Returns a view of bytes that are known to be exactly one valid array.
    pub const fn from_valid_bytes(bytes: &'a [u8]) -> Self {
        Array(Doc(bytes))
    }

    /// Returns the empty array.
    pub const fn empty() -> Self {
        Array(Doc(EMPTY))
    }

    /// Returns the same bytes as a document with the fields "0", "1", and so on.
    pub const fn as_doc(self) -> Doc<'a> {
        self.0
    }

    /// Returns all bytes, with length and terminator.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0.0
    }

    /// Returns true if the array has no elements.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values in order.
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> + Clone {
        self.0.iter().map(|element| element.value())
    }

    /// Counts the elements, in time proportional to the array.
    pub fn count(self) -> usize {
        self.0.count()
    }

    /// Returns the element at `index`, in time proportional to the bytes before it.
    pub fn get(self, index: usize) -> Option<Value<'a>> {
        self.0.iter().nth(index).map(|element| element.value())
    }

    /// Returns the values as a vector.
    pub fn to_vec(self) -> Vec<Value<'a>> {
        self.iter().collect()
    }
}

impl<'a> Element<'a> {
    /// Returns an element with these parts; `bytes` are the value's bytes in wire form.
    pub const fn from_parts(kind: Type, key: &'a [u8], bytes: &'a [u8]) -> Self {
        Element { kind, key, bytes }
    }

    /// Returns the type of the value.
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// Returns the field's name.
    pub fn key(&self) -> &'a str {
        text(self.key)
    }

    /// Returns the field's name as bytes, which is cheaper for comparisons.
    pub const fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// Returns the value's bytes in wire form, without type and name.
    pub const fn value_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the value of the element.
    pub fn value(&self) -> Value<'a> {
        decode(self.kind, self.bytes)
    }
}

/// Returns the element at the beginning of bytes that have not been validated. Its parts lie within the bytes; the value may
/// be damaged, and must not be read before it was validated.
pub fn first_element(bytes: &[u8]) -> Option<Element<'_>> {
    Iter { rest: bytes }.next()
}

impl Iter<'_> {
    /// Returns how many bytes of `doc`'s elements the iterator has passed. [`Doc::iter_from`]
    /// continues there.
    pub fn consumed(&self, doc: Doc<'_>) -> usize {
        doc.element_bytes().len().saturating_sub(self.rest.len())
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (&byte, rest) = self.rest.split_first()?;
        let kind = Type::from_byte(byte)?;
        let name_len = name_length(rest)?;
        let (key, rest) = (rest.get(..name_len)?, rest.get(name_len + 1..)?);
        let size = value_size(kind, rest)?;
        let bytes = rest.get(..size)?;
        self.rest = rest.get(size..)?;
        Some(Element { kind, key, bytes })
    }
}

impl<'a> Iter<'a> {
    /// Skips elements with another name. Returns true at an element with the name. Returns false if
    /// the next element, if any, must be read in another way. Most elements take one comparison of
    /// words.
    #[inline]
    fn skip_others(&mut self, name: Name<'_>) -> bool {
        while let Some(([kind, word @ ..], _)) = self.rest.split_first_chunk::<9>() {
            let word = u64::from_le_bytes(*word);
            if name.begins(word) && (name.is_short || self.has_key(name.bytes)) {
                return true;
            }
            let Some(rest) = self.after(*kind, word) else { return false };
            self.rest = rest;
        }
        false
    }

    /// Returns what follows the next element, which begins with the type `kind` and then `word`;
    /// `None` if it must be read in another way.
    #[inline]
    fn after(&self, kind: u8, word: u64) -> Option<&'a [u8]> {
        let length = first_zero(word).or_else(|| name_length(self.rest.get(1..)?))?;
        let value = self.rest.get(length + 2..)?;
        value.get(SHAPES[usize::from(kind)].size(value)?..)
    }

    /// Returns true if the next element has this name.
    fn has_key(&self, name: &[u8]) -> bool {
        let key = self.rest.get(1..).unwrap_or_default();
        name_length(key) == Some(name.len()) && key.starts_with(name)
    }
}

/// A name to search for, and its first eight bytes for comparisons with names of elements.
#[derive(Clone, Copy)]
struct Name<'n> {
    bytes: &'n [u8],
    /// The name and its terminating zero, or its first eight bytes, as a little-endian word.
    word: u64,
    /// The bits of a word to compare.
    mask: u64,
    /// True if the word contains the whole name.
    is_short: bool,
}

impl<'n> Name<'n> {
    #[inline]
    fn new(bytes: &'n [u8]) -> Self {
        if let Some(first) = bytes.first_chunk::<8>() {
            return Self {
                bytes,
                word: u64::from_le_bytes(*first),
                mask: u64::MAX,
                is_short: false,
            };
        }
        let word = short_word(bytes);
        // A name with a zero byte matches no field; it is handled like a long name.
        let is_short = first_zero(word) == Some(bytes.len());
        Self { bytes, word, mask: u64::MAX >> (56 - 8 * bytes.len()), is_short }
    }

    /// Returns true if a word begins with the name (and its terminating zero, if the name is
    /// short).
    #[inline]
    const fn begins(self, word: u64) -> bool {
        word & self.mask == self.word
    }
}

/// Returns at most seven bytes as a little-endian word. More than two bytes are read as two words
/// that overlap, which is cheaper than a copy of variable length.
#[inline]
fn short_word(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|part| u64::from(u32::from_le_bytes(*part)));
        return first | last << (8 * (length - 4));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<2>(), bytes.last_chunk::<2>()) {
        let [first, last] = [first, last].map(|part| u64::from(u16::from_le_bytes(*part)));
        return first | last << (8 * (length - 2));
    }
    bytes.first().map_or(0, |byte| u64::from(*byte))
}

/// Returns the number of bytes before the first zero. Most names are short, and one word of eight
/// bytes contains the zero.
#[inline]
fn name_length(bytes: &[u8]) -> Option<usize> {
    let mut skipped = 0;
    if let Some(word) = bytes.first_chunk::<8>() {
        match first_zero(u64::from_le_bytes(*word)) {
            Some(at) => return Some(at),
            None => skipped = 8,
        }
    }
    bytes.get(skipped..)?.iter().position(|&byte| byte == 0).map(|at| at + skipped)
}

/// Returns the position of the lowest zero byte in a little-endian word.
#[inline]
const fn first_zero(word: u64) -> Option<usize> {
    // The borrow of the subtraction changes only bytes above the first zero.
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    if zeros == 0 { None } else { Some(zeros.trailing_zeros() as usize / 8) }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("\u{fffd}")
}

#[inline]
fn int32(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[inline]
fn int64(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(bytes.get(..8)?.try_into().ok()?))
}

/// The size of a type's values: a fixed number of bytes, plus the length at the beginning of the
/// value masked by `mask` (0 for types of fixed size).
#[derive(Clone, Copy)]
struct Shape {
    fixed: u32,
    mask: u32,
}

impl Shape {
    /// Returns the size of a value of this shape at the start of `rest`; it may exceed `rest`.
    /// Returns `None` if `rest` ends within the length.
    #[inline]
    fn size(self, rest: &[u8]) -> Option<usize> {
        // Fewer than four bytes remain after a short last field of a document.
        let length = match rest.first_chunk::<4>() {
            Some(length) => u32::from_le_bytes(*length) & self.mask,
            None if self.mask == 0 => 0,
            None => return None,
        };
        // A negative length becomes larger than any document.
        (length as usize).checked_add(self.fixed as usize)
    }
}

/// The shapes of all types, by their byte in wire form. A table is faster than a branch that the
/// processor must predict for every field. Regular expressions and invalid types have a size that
/// exceeds every document.
static SHAPES: [Shape; 256] = {
    const fn fixed(bytes: u32) -> Shape {
        Shape { fixed: bytes, mask: 0 }
    }
    const fn prefixed(extra: u32) -> Shape {
        Shape { fixed: extra, mask: u32::MAX }
    }
    let mut shapes = [fixed(u32::MAX); 256];
    shapes[Type::Undefined as usize] = fixed(0);
    shapes[Type::Null as usize] = fixed(0);
    shapes[Type::MinKey as usize] = fixed(0);
    shapes[Type::MaxKey as usize] = fixed(0);
    shapes[Type::Int32 as usize] = fixed(4);
    shapes[Type::Double as usize] = fixed(8);
    shapes[Type::Date as usize] = fixed(8);
    shapes[Type::Timestamp as usize] = fixed(8);
    shapes[Type::Int64 as usize] = fixed(8);
    shapes[Type::ObjectId as usize] = fixed(12);
    shapes[Type::Bool as usize] = fixed(1);
    shapes[Type::Decimal as usize] = fixed(16);
    shapes[Type::String as usize] = prefixed(4);
    shapes[Type::Code as usize] = prefixed(4);
    shapes[Type::Symbol as usize] = prefixed(4);
    shapes[Type::Document as usize] = prefixed(0);
    shapes[Type::Array as usize] = prefixed(0);
    shapes[Type::CodeWithScope as usize] = prefixed(0);
    shapes[Type::Binary as usize] = prefixed(5);
    shapes[Type::DbPointer as usize] = prefixed(4 + 12);
    shapes
};

/// Returns the size of the value at the start of `rest`; it may exceed `rest`. Returns `None` if
/// `rest` ends before the size is known.
#[inline]
pub(crate) fn value_size(kind: Type, rest: &[u8]) -> Option<usize> {
    if kind == Type::Regex {
        let pattern = name_length(rest)?;
        let options = name_length(rest.get(pattern + 1..)?)?;
        return Some(pattern + 1 + options + 1);
    }
    SHAPES[usize::from(kind.byte())].size(rest)
}

/// Decodes a value from its bytes. Bytes that are too short give null.
#[inline]
pub(crate) fn decode(kind: Type, bytes: &[u8]) -> Value<'_> {
    try_decode(kind, bytes).unwrap_or(Value::Null)
}

fn try_decode(kind: Type, bytes: &[u8]) -> Option<Value<'_>> {
    Some(match kind {
        Type::Double => Value::Double(f64::from_bits(int64(bytes)? as u64)),
        Type::String => Value::String(prefixed_text(bytes)?),
        Type::Document => Value::Document(Doc(bytes)),
        Type::Array => Value::Array(Array(Doc(bytes))),
        Type::Binary => Value::Binary(Binary { subtype: *bytes.get(4)?, bytes: bytes.get(5..)? }),
        Type::Undefined => Value::Undefined,
        Type::ObjectId => Value::ObjectId(ObjectId(bytes.try_into().ok()?)),
        Type::Bool => Value::Bool(*bytes.first()? != 0),
        Type::Date => Value::Date(int64(bytes)?),
        Type::Null => Value::Null,
        Type::Regex => {
            let end = name_length(bytes)?;
            let options = bytes.get(end + 1..bytes.len() - 1)?;
            Value::Regex(Regex { pattern: text(bytes.get(..end)?), options: text(options) })
        }
        Type::DbPointer => {
            let at = bytes.len().checked_sub(12)?;
            let id = ObjectId(bytes.get(at..)?.try_into().ok()?);
            Value::DbPointer(DbPointer { namespace: prefixed_text(bytes.get(..at)?)?, id })
        }
        Type::Code => Value::Code(prefixed_text(bytes)?),
        Type::Symbol => Value::Symbol(prefixed_text(bytes)?),
        Type::CodeWithScope => {
            let inner = bytes.get(4..)?;
            let code_size = usize::try_from(int32(inner)?).ok()?.checked_add(4)?;
            let code = prefixed_text(inner.get(..code_size)?)?;
            Value::CodeWithScope(CodeWithScope { code, scope: Doc(inner.get(code_size..)?) })
        }
        Type::Int32 => Value::Int32(int32(bytes)?),
        Type::Timestamp => Value::Timestamp(Timestamp::from_u64(int64(bytes)? as u64)),
        Type::Int64 => Value::Int64(int64(bytes)?),
        Type::Decimal => Value::Decimal(Decimal128(bytes.try_into().ok()?)),
        Type::MinKey => Value::MinKey,
        Type::MaxKey => Value::MaxKey,
    })
}

fn prefixed_text(bytes: &[u8]) -> Option<&str> {
    Some(text(bytes.get(4..bytes.len().checked_sub(1)?)?))
}

impl fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.fields()).finish()
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
