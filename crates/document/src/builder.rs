//! Appends elements to a buffer.
//!
//! If `memory::limited` does not allow the buffer to grow, an element is left out or, if its name
//! is written already, its value is replaced by the shortest value of its type. So the buffer
//! contains valid BSON at any time.

use crate::memory::{force_room, room};
use crate::{Doc, Element, Type, Value};

/// The longest value of fixed size in bytes.
const SCALAR_BYTES_MAX: usize = 16;

/// The most digits of an array index.
const INDEX_BYTES_MAX: usize = 10;

/// The bytes of an element besides its name and value: the type, and the terminator of the name.
const HEADER_BYTES: usize = 2;

/// Writes one document at the end of a byte buffer. Nested documents are written in place. The
/// length and the terminator are written by `finish`, or when the writer is dropped.
pub struct DocWriter<'b> {
    buf: &'b mut Vec<u8>,
    start: usize,
}

/// Writes one array at the end of a byte buffer. It generates the names "0", "1", and so on.
pub struct ArrayWriter<'b> {
    doc: DocWriter<'b>,
    next: u32,
}

impl<'b> DocWriter<'b> {
    /// Begins a document at the end of `buf`.
    pub fn new(buf: &'b mut Vec<u8>) -> Self {
        let start = buf.len();
        force_room(buf, 4);
        buf.extend_from_slice(&[0; 4]);
        DocWriter { buf, start }
    }

    /// Appends a field.
    #[inline]
    pub fn append<'v>(&mut self, key: &str, value: impl Into<Value<'v>>) -> &mut Self {
        let value = value.into();
        if self.has_room(key.len() + SCALAR_BYTES_MAX) {
            self.header(value.kind(), key.as_bytes());
            write_value(self.buf, value);
        }
        self
    }

    /// Appends a field unless the value is missing.
    pub fn append_some(&mut self, key: &str, value: Option<Value<'_>>) -> &mut Self {
        if let Some(value) = value {
            self.append(key, value);
        }
        self
    }

    /// Appends a copy of an element, with its name.
    #[inline]
    pub fn append_element(&mut self, element: Element<'_>) -> &mut Self {
        if self.has_room(element.key_bytes().len() + element.value_bytes().len()) {
            self.header(element.kind(), element.key_bytes());
            self.buf.extend_from_slice(element.value_bytes());
        }
        self
    }

    /// Appends the value of an element under another name.
    pub fn append_renamed(&mut self, key: &str, element: Element<'_>) -> &mut Self {
        if self.has_room(key.len() + element.value_bytes().len()) {
            self.header(element.kind(), key.as_bytes());
            self.buf.extend_from_slice(element.value_bytes());
        }
        self
    }

    /// Appends copies of all fields of `doc`.
    pub fn append_all(&mut self, doc: Doc<'_>) -> &mut Self {
        self.append_elements(doc.element_bytes())
    }

    /// Appends copies of several fields, given as the bytes of their elements.
    pub fn append_elements(&mut self, elements: &[u8]) -> &mut Self {
        if self.has_room(elements.len()) {
            self.buf.extend_from_slice(elements);
        }
        self
    }

    /// Begins a nested document; it ends when the returned writer is finished or dropped.
    pub fn document(&mut self, key: &str) -> DocWriter<'_> {
        force_room(self.buf, HEADER_BYTES + key.len());
        self.header(Type::Document, key.as_bytes());
        DocWriter::new(self.buf)
    }

    /// Begins a nested array; it ends when the returned writer is finished or dropped.
    pub fn array(&mut self, key: &str) -> ArrayWriter<'_> {
        force_room(self.buf, HEADER_BYTES + key.len());
        self.header(Type::Array, key.as_bytes());
        ArrayWriter { doc: DocWriter::new(self.buf), next: 0 }
    }

    /// Returns the bytes written so far, without the terminator.
    pub fn len(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Returns true if no field has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 4
    }

    /// Ends the document. Dropping does the same.
    pub fn finish(self) {}

    /// Reserves room for an element whose name and value have `bytes` bytes. Returns false if the
    /// buffer may not grow.
    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        room(self.buf, HEADER_BYTES + bytes)
    }

    fn header(&mut self, kind: Type, key: &[u8]) {
        self.buf.push(kind.byte());
        self.buf.extend_from_slice(key);
        self.buf.push(0);
    }
}

impl Drop for DocWriter<'_> {
    fn drop(&mut self) {
        force_room(self.buf, 1);
        self.buf.push(0);
        let len = (self.buf.len() - self.start) as u32;
        self.buf[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
    }
}

impl<'b> ArrayWriter<'b> {
    /// Begins an array at the end of `buf`.
    pub fn new(buf: &'b mut Vec<u8>) -> Self {
        ArrayWriter { doc: DocWriter::new(buf), next: 0 }
    }

    /// Appends a value.
    #[inline]
    pub fn push<'v>(&mut self, value: impl Into<Value<'v>>) -> &mut Self {
        let value = value.into();
        if self.doc.has_room(INDEX_BYTES_MAX + SCALAR_BYTES_MAX) {
            self.header(value.kind());
            write_value(self.doc.buf, value);
        }
        self
    }

    /// Begins a nested document; it ends when the returned writer is finished or dropped.
    pub fn document(&mut self) -> DocWriter<'_> {
        force_room(self.doc.buf, HEADER_BYTES + INDEX_BYTES_MAX);
        self.header(Type::Document);
        DocWriter::new(self.doc.buf)
    }

    /// Begins a nested array; it ends when the returned writer is finished or dropped.
    pub fn array(&mut self) -> ArrayWriter<'_> {
        force_room(self.doc.buf, HEADER_BYTES + INDEX_BYTES_MAX);
        self.header(Type::Array);
        ArrayWriter::new(self.doc.buf)
    }

    /// Returns the number of elements appended so far.
    pub fn count(&self) -> u32 {
        self.next
    }

    /// Returns the bytes written so far, without the terminator.
    pub fn len(&self) -> usize {
        self.doc.len()
    }

    /// Returns true if no element has been appended.
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Ends the array. Dropping does the same.
    pub fn finish(self) {}

    fn header(&mut self, kind: Type) {
        self.doc.buf.push(kind.byte());
        Self::write_name(self.doc.buf, self.next);
        self.next += 1;
    }

    /// Appends the name of the element at `index`, with its terminator.
    pub(crate) fn write_name(buf: &mut Vec<u8>, index: u32) {
        write_index(buf, index);
        buf.push(0);
    }
}

/// Appends an element (type, name, value) to a buffer with a document under construction.
#[inline]
pub fn write_element(buf: &mut Vec<u8>, key: &[u8], value: Value<'_>) {
    if room(buf, HEADER_BYTES + key.len() + SCALAR_BYTES_MAX) {
        buf.push(value.kind().byte());
        buf.extend_from_slice(key);
        buf.push(0);
        write_value(buf, value);
    }
}

/// Appends the decimal digits of an array index.
pub fn write_index(buf: &mut Vec<u8>, index: u32) {
    if index < 10 {
        buf.push(b'0' + index as u8);
        return;
    }
    let (mut digits, mut at, mut rest) = ([0u8; 10], 10, index);
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    buf.extend_from_slice(&digits[at..]);
}

/// Appends the value's bytes in wire form, without type and name.
#[inline]
pub(crate) fn write_value(buf: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Double(number) => buf.extend_from_slice(&number.to_bits().to_le_bytes()),
        Value::String(text) | Value::Code(text) | Value::Symbol(text) => write_text(buf, text),
        Value::Document(doc) => write_document(buf, doc),
        Value::Array(array) => write_document(buf, array.as_doc()),
        Value::Binary(binary) => {
            let bytes = if room(buf, 5 + binary.bytes.len()) { binary.bytes } else { &[] };
            buf.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            buf.push(binary.subtype);
            buf.extend_from_slice(bytes);
        }
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => {}
        Value::ObjectId(id) => buf.extend_from_slice(&id.0),
        Value::Bool(flag) => buf.push(flag as u8),
        Value::Date(number) | Value::Int64(number) => buf.extend_from_slice(&number.to_le_bytes()),
        Value::Regex(regex) => {
            let (pattern, options) = match room(buf, regex.pattern.len() + regex.options.len() + 2)
            {
                true => (regex.pattern, regex.options),
                false => ("", ""),
            };
            buf.extend_from_slice(pattern.as_bytes());
            buf.push(0);
            buf.extend_from_slice(options.as_bytes());
            buf.push(0);
        }
        Value::DbPointer(pointer) => {
            write_text(buf, pointer.namespace);
            buf.extend_from_slice(&pointer.id.0);
        }
        Value::CodeWithScope(code) => {
            let start = buf.len();
            buf.extend_from_slice(&[0; 4]);
            write_text(buf, code.code);
            write_document(buf, code.scope);
            let len = (buf.len() - start) as u32;
            buf[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        Value::Int32(number) => buf.extend_from_slice(&number.to_le_bytes()),
        Value::Timestamp(timestamp) => buf.extend_from_slice(&timestamp.to_u64().to_le_bytes()),
        Value::Decimal(decimal) => buf.extend_from_slice(&decimal.0),
    }
}

#[inline]
fn write_document(buf: &mut Vec<u8>, doc: Doc<'_>) {
    let doc = if room(buf, doc.as_bytes().len()) { doc } else { Doc::empty() };
    buf.extend_from_slice(doc.as_bytes());
}

#[inline]
fn write_text(buf: &mut Vec<u8>, text: &str) {
    let text = if room(buf, text.len() + 5) { text } else { "" };
    buf.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    buf.extend_from_slice(text.as_bytes());
    buf.push(0);
}
