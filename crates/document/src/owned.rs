//! Documents, arrays and values that own their bytes.

use crate::builder::write_value;
use crate::doc::{EMPTY, decode};
use crate::memory::unlimited;
use crate::{Array, ArrayWriter, Doc, DocWriter, Type, Value};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A document that owns its bytes. The empty document has no bytes and needs no allocation.
#[derive(Clone)]
pub struct DocBuf(Vec<u8>);

/// An array that owns its bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ArrayBuf(Vec<u8>);

/// A value that owns its bytes. Scalars of up to 16 bytes need no allocation.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ValueBuf {
    kind: Type,
    bytes: SmallVec<[u8; 16]>,
}

/// A list of optional values, stored in one buffer.
#[derive(Clone, Default)]
pub struct ValuesBuf {
    bytes: Vec<u8>,
    /// The type of each value, or `None`, and the end of its bytes.
    ends: Vec<(Option<Type>, usize)>,
}

impl DocBuf {
    /// Returns the empty document.
    pub const fn new() -> Self {
        DocBuf(Vec::new())
    }

    /// Wraps bytes that are known to be exactly one valid document.
    pub const fn from_valid_bytes(bytes: Vec<u8>) -> Self {
        DocBuf(bytes)
    }

    /// Builds a document with a writer.
    pub fn build(fill: impl FnOnce(&mut DocWriter<'_>)) -> Self {
        let mut bytes = Vec::with_capacity(128);
        unlimited(|| fill(&mut DocWriter::new(&mut bytes)));
        DocBuf(bytes)
    }

    /// Returns a view of the document.
    pub fn as_doc(&self) -> Doc<'_> {
        Doc::from_valid_bytes(self.as_bytes())
    }

    /// Returns all bytes, with length and terminator.
    pub fn as_bytes(&self) -> &[u8] {
        if self.0.is_empty() { EMPTY } else { &self.0 }
    }

    /// Returns the bytes and consumes the document.
    pub fn into_bytes(self) -> Vec<u8> {
        if self.0.is_empty() { EMPTY.to_vec() } else { self.0 }
    }

    /// Returns the value of the first field with this name.
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        self.as_doc().get(name)
    }

    /// Appends a field at the end.
    pub fn append<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) -> &mut Self {
        self.extend(|writer| {
            writer.append(key, value);
        })
    }

    /// Appends fields at the end with a writer.
    pub fn extend(&mut self, fill: impl FnOnce(&mut DocWriter<'_>)) -> &mut Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 64);
        unlimited(|| {
            let mut writer = DocWriter::new(&mut bytes);
            writer.append_all(self.as_doc());
            fill(&mut writer);
        });
        self.0 = bytes;
        self
    }
}

impl PartialEq for DocBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for DocBuf {}

impl Hash for DocBuf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Default for DocBuf {
    fn default() -> Self {
        DocBuf::new()
    }
}

impl ArrayBuf {
    /// Returns the empty array.
    pub fn new() -> Self {
        ArrayBuf(EMPTY.to_vec())
    }

    /// Wraps bytes that are known to be exactly one valid array.
    pub const fn from_valid_bytes(bytes: Vec<u8>) -> Self {
        ArrayBuf(bytes)
    }

    /// Builds an array with a writer.
    pub fn build(fill: impl FnOnce(&mut ArrayWriter<'_>)) -> Self {
        Self::build_sized(64, fill)
    }

    /// Builds an array of about `bytes_expected` bytes with a writer. A large array that grows in
    /// steps would be copied, and would leave as many pages again to the allocator.
    pub fn build_sized(bytes_expected: usize, fill: impl FnOnce(&mut ArrayWriter<'_>)) -> Self {
        let mut bytes = Vec::with_capacity(bytes_expected);
        unlimited(|| fill(&mut ArrayWriter::new(&mut bytes)));
        ArrayBuf(bytes)
    }

    /// Returns a view of the array.
    pub fn as_array(&self) -> Array<'_> {
        Array::from_valid_bytes(&self.0)
    }

    /// Returns all bytes, with length and terminator.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Default for ArrayBuf {
    fn default() -> Self {
        ArrayBuf::new()
    }
}

impl<'v, V: Into<Value<'v>>> FromIterator<V> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        ArrayBuf::build(|writer| {
            for value in values {
                writer.push(value);
            }
        })
    }
}

impl ValueBuf {
    /// Returns a copy of the value.
    pub fn new<'v>(value: impl Into<Value<'v>>) -> Self {
        let value = value.into();
        let bytes = match value {
            Value::Document(doc) => SmallVec::from_slice(doc.as_bytes()),
            Value::Array(array) => SmallVec::from_slice(array.as_bytes()),
            Value::Int32(number) => SmallVec::from_slice(&number.to_le_bytes()),
            Value::Int64(number) => SmallVec::from_slice(&number.to_le_bytes()),
            Value::Double(number) => SmallVec::from_slice(&number.to_bits().to_le_bytes()),
            Value::ObjectId(id) => SmallVec::from_slice(&id.0),
            Value::Date(number) => SmallVec::from_slice(&number.to_le_bytes()),
            Value::Bool(flag) => SmallVec::from_slice(&[flag as u8]),
            Value::String(text) | Value::Code(text) | Value::Symbol(text) => {
                let mut bytes = SmallVec::with_capacity(text.len() + 5);
                bytes.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(0);
                bytes
            }
            other => {
                let mut bytes = Vec::new();
                unlimited(|| write_value(&mut bytes, other));
                if bytes.len() <= 16 {
                    SmallVec::from_slice(&bytes)
                } else {
                    SmallVec::from_vec(bytes)
                }
            }
        };
        ValueBuf { kind: value.kind(), bytes }
    }

    /// Returns a view of the value.
    pub fn as_value(&self) -> Value<'_> {
        decode(self.kind, &self.bytes)
    }

    /// Returns the type of the value.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// Returns the length of the value in BSON, without its type and its name.
    pub fn bson_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the memory of the value in bytes, inline and on the heap, for memory accounting.
    pub fn size(&self) -> usize {
        std::mem::size_of::<Self>() + if self.bytes.spilled() { self.bytes.len() } else { 0 }
    }
}

impl ValuesBuf {
    /// Returns an empty list.
    pub const fn new() -> Self {
        ValuesBuf { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Appends a copy of a value.
    pub fn push(&mut self, value: Option<Value<'_>>) {
        if let Some(value) = value {
            unlimited(|| write_value(&mut self.bytes, value));
        }
        self.ends.push((value.map(|value| value.kind()), self.bytes.len()));
    }

    /// Returns all values.
    pub fn iter(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        let mut start = 0;
        self.ends.iter().map(move |(kind, end)| {
            let bytes = self.bytes.get(std::mem::replace(&mut start, *end)..*end);
            kind.map(|kind| decode(kind, bytes.unwrap_or_default()))
        })
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the memory of the list in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + size_of_val(&*self.ends)
    }
}

impl<'v> Extend<Option<Value<'v>>> for ValuesBuf {
    fn extend<I: IntoIterator<Item = Option<Value<'v>>>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl From<DocBuf> for ValueBuf {
    fn from(doc: DocBuf) -> Self {
        ValueBuf { kind: Type::Document, bytes: SmallVec::from_vec(doc.into_bytes()) }
    }
}

impl From<ArrayBuf> for ValueBuf {
    fn from(array: ArrayBuf) -> Self {
        ValueBuf { kind: Type::Array, bytes: SmallVec::from_vec(array.0) }
    }
}

impl fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_doc().fmt(f)
    }
}

impl fmt::Debug for ArrayBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_array().fmt(f)
    }
}

impl fmt::Debug for ValueBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_value().fmt(f)
    }
}

impl fmt::Debug for ValuesBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
