//! Views on the bytes of a document or an array.

use crate::{
    Binary, CodeWithScope, DbPointer, Decimal128, DocBuf, ObjectId, Regex, Timestamp, Type, Value,
};
use std::fmt;

/// The five bytes of a document without fields.
pub(crate) const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

/// A document as its bytes: length, elements, terminating zero.
///
/// The bytes have passed validation (at the socket) or were written by [`crate::DocWriter`].
/// Reading is memory safe and free of panics even if they are not: iteration just ends early.
#[derive(Clone, Copy)]
pub struct Doc<'a>(&'a [u8]);

/// An array as its bytes: a document whose names are "0", "1", ... (and are never looked at).
#[derive(Clone, Copy)]
pub struct Array<'a>(Doc<'a>);

/// One element of a document, not yet decoded.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    kind: Type,
    key: &'a [u8],
    bytes: &'a [u8],
}

/// Walks the elements of a document in order.
#[derive(Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Doc<'a> {
    /// A view on bytes that are known to be one whole, valid document.
    pub const fn from_valid_bytes(bytes: &'a [u8]) -> Self {
        Doc(bytes)
    }

    /// The document without fields.
    pub const fn empty() -> Self {
        Doc(EMPTY)
    }

    /// All bytes, length and terminator included.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The elements' bytes: what stands between length and terminator.
    pub fn element_bytes(self) -> &'a [u8] {
        let end = self.0.len().max(5) - 1;
        self.0.get(4..end).unwrap_or(&[])
    }

    /// Size in bytes.
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// True if it has no fields.
    pub const fn is_empty(self) -> bool {
        self.0.len() <= 5
    }

    /// The elements in order.
    pub fn iter(self) -> Iter<'a> {
        Iter { rest: self.element_bytes() }
    }

    /// The elements behind the first `consumed` bytes of elements; see [`Iter::consumed`].
    pub fn iter_from(self, consumed: usize) -> Iter<'a> {
        Iter { rest: self.element_bytes().get(consumed..).unwrap_or(&[]) }
    }

    /// Names and values in order.
    pub fn fields(self) -> impl Iterator<Item = (&'a str, Value<'a>)> + Clone {
        self.iter().map(|element| (element.key(), element.value()))
    }

    /// The first field of that name.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        self.find(name).map(|element| element.value())
    }

    /// The first element of that name, not decoded.
    pub fn find(self, name: &str) -> Option<Element<'a>> {
        let name = Name::new(name.as_bytes());
        let mut elements = self.iter();
        loop {
            let is_there = elements.pass_others(name);
            let element = elements.next()?;
            if is_there || element.key == name.bytes {
                return Some(element);
            }
        }
    }

    /// True if there is a field of that name.
    pub fn contains(self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The first element, not decoded.
    pub fn first(self) -> Option<Element<'a>> {
        self.iter().next()
    }

    /// How many fields it has (walks them).
    pub fn count(self) -> usize {
        self.iter().count()
    }

    /// Returns true if documents and arrays nest in at most `levels` levels, with this document as the
    /// first. A document that is too small to nest deeper is not read.
    pub fn nests_within(self, levels: usize) -> bool {
        self.len() < levels * LEVEL_BYTES_MIN || nests_within(self, levels)
    }

    /// A copy that owns its bytes.
    pub fn to_owned(self) -> DocBuf {
        DocBuf::from_valid_bytes(self.0.to_vec())
    }
}

/// A level of nesting takes at least a length, a type, a name and two zeros.
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
    /// A view on bytes that are known to be one whole, valid array.
    pub const fn from_valid_bytes(bytes: &'a [u8]) -> Self {
        Array(Doc(bytes))
    }

    /// The array without elements.
    pub const fn empty() -> Self {
        Array(Doc(EMPTY))
    }

    /// The same bytes seen as a document with the fields "0", "1", ...
    pub const fn as_doc(self) -> Doc<'a> {
        self.0
    }

    /// All bytes, length and terminator included.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0.0
    }

    /// True if it has no elements.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The values in order.
    pub fn iter(self) -> impl Iterator<Item = Value<'a>> + Clone {
        self.0.iter().map(|element| element.value())
    }

    /// How many elements it has (walks them).
    pub fn count(self) -> usize {
        self.0.count()
    }

    /// The element at `index` (walks there).
    pub fn get(self, index: usize) -> Option<Value<'a>> {
        self.0.iter().nth(index).map(|element| element.value())
    }

    /// The elements as a vector of views.
    pub fn to_vec(self) -> Vec<Value<'a>> {
        self.iter().collect()
    }
}

impl<'a> Element<'a> {
    /// An element from its parts; `bytes` are the value's bytes on the wire.
    pub const fn from_parts(kind: Type, key: &'a [u8], bytes: &'a [u8]) -> Self {
        Element { kind, key, bytes }
    }

    /// The value's type.
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// The field's name.
    pub fn key(&self) -> &'a str {
        text(self.key)
    }

    /// The field's name as bytes: cheaper where it is only compared.
    pub const fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// The value's bytes as they stand on the wire, without type and name.
    pub const fn value_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the value of the element.
    pub fn value(&self) -> Value<'a> {
        decode(self.kind, self.bytes)
    }
}

impl Iter<'_> {
    /// How many bytes of `doc`'s elements are behind the iterator: where another one goes on.
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

impl Iter<'_> {
    /// Passes over elements that have another name. True if it stands before one that has it; else
    /// the next one has to be looked at. Most are told apart by one comparison of words.
    #[inline]
    fn pass_others(&mut self, name: Name<'_>) -> bool {
        while let Some(([kind, word @ ..], _)) = self.rest.split_first_chunk::<9>() {
            let word = u64::from_le_bytes(*word);
            if name.begins(word) && (name.is_short || self.has_key(name.bytes)) {
                return true;
            }
            let length = first_zero(word).or_else(|| name_length(self.rest.get(1..)?));
            let value = length.and_then(|length| self.rest.get(length + 2..));
            let Some(value) = value else { return false };
            let size = SHAPES[usize::from(*kind)].size(value);
            let Some(rest) = size.and_then(|size| value.get(size..)) else { return false };
            self.rest = rest;
        }
        false
    }

    /// Whether it stands before an element of that name.
    fn has_key(&self, name: &[u8]) -> bool {
        let key = self.rest.get(1..).unwrap_or_default();
        name_length(key) == Some(name.len()) && key.starts_with(name)
    }
}

/// A name that is looked for, with what its first eight bytes say of an element's.
#[derive(Clone, Copy)]
struct Name<'n> {
    bytes: &'n [u8],
    /// The name with the zero behind it, or its first eight bytes, as a little-endian word.
    word: u64,
    /// The bits of a word that are compared.
    mask: u64,
    /// The word has all of the name.
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
        // One with a zero in it has no field, and is looked at like a long one.
        let is_short = first_zero(word) == Some(bytes.len());
        Self { bytes, word, mask: u64::MAX >> (56 - 8 * bytes.len()), is_short }
    }

    /// Whether a word is the beginning of the name, and of the zero behind it if it is short.
    #[inline]
    const fn begins(self, word: u64) -> bool {
        word & self.mask == self.word
    }
}

/// At most seven bytes as a little-endian word. Of more than two bytes the first and the last are read
/// as two words that overlap, which is cheaper than a copy of variable length.
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

/// The bytes before the first zero. Names are short: one word of eight bytes usually has it.
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

/// The place of the lowest zero byte in a little-endian word.
#[inline]
const fn first_zero(word: u64) -> Option<usize> {
    // A borrow can only spoil bytes above the first zero.
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

/// The size of the values of a type: a fixed number of bytes, plus the length that stands at the
/// beginning of the value, masked by `mask` (0 for types of a fixed size).
#[derive(Clone, Copy)]
struct Shape {
    fixed: u32,
    mask: u32,
}

impl Shape {
    /// How many bytes a value of this shape at the start of `rest` takes; more than there are if it is
    /// cut off.
    #[inline]
    fn size(self, rest: &[u8]) -> Option<usize> {
        // Less than four bytes are left behind the last field of a document, if it is a short one.
        let length = match rest.first_chunk::<4>() {
            Some(length) => u32::from_le_bytes(*length) & self.mask,
            None if self.mask == 0 => 0,
            None => return None,
        };
        // A negative length is larger than any document.
        (length as usize).checked_add(self.fixed as usize)
    }
}

/// The shapes of all types by the byte on the wire. A table costs a scan less than a jump that the
/// processor has to guess for every field. What is no type, and regular expressions, have the size of
/// no document.
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

/// How many bytes the value at the start of `rest` takes; `None` if it does not fit.
#[inline]
pub(crate) fn value_size(kind: Type, rest: &[u8]) -> Option<usize> {
    if kind == Type::Regex {
        let pattern = name_length(rest)?;
        let options = name_length(rest.get(pattern + 1..)?)?;
        return Some(pattern + 1 + options + 1);
    }
    SHAPES[usize::from(kind.byte())].size(rest)
}

/// Decodes a value from its bytes; bytes that are too short read as null.
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
