//! Appends elements to a buffer.
//!
//! If `memory::limited` does not allow the buffer to grow, an element is left out or, if its name
//! is written already, its value is replaced by the shortest value of its type. So the buffer
//! contains valid BSON at any time.

use crate::memory::{force_room, room};
use crate::{Array, Doc, Element, Type, Value};

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
    next: IndexName,
}

/// An array that owns its bytes and grows at its end, in time proportional to what is appended.
#[derive(Debug)]
pub struct GrowingArray {
    bytes: Vec<u8>,
    next: IndexName,
}

/// The name of an array's element: its index in decimal digits. The next name is made of it without
/// a division.
#[derive(Clone, Copy, Debug)]
struct IndexName {
    number: u32,
    /// Room for the type, the digits from the left, and zeros.
    header: [u8; INDEX_BYTES_MAX + HEADER_BYTES],
    /// The number of digits.
    len: usize,
}

impl IndexName {
    fn new(number: u32) -> Self {
        let mut header = [0; INDEX_BYTES_MAX + HEADER_BYTES];
        let len = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        let mut rest = number;
        for digit in header[1..=len].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        IndexName { number, header, len }
    }

    fn advance(&mut self) {
        self.number += 1;
        for digit in self.header[1..=self.len].iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        // After nines alone there is a digit more: 1, then zeros.
        self.header[1] = b'1';
        self.len += 1;
        self.header[self.len] = b'0';
    }

    /// Appends the type and the name of an element, with the name's terminator. The buffer should
    /// have room for the longest name.
    #[inline]
    fn write_header(&self, kind: Type, buf: &mut Vec<u8>) {
        let mut header = self.header;
        header[0] = kind.byte();
        // A copy of a fixed length is faster than one of the right length.
        buf.extend_from_slice(&header);
        buf.truncate(buf.len() - (INDEX_BYTES_MAX - self.len));
    }
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
        ArrayWriter { doc: DocWriter::new(self.buf), next: IndexName::new(0) }
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
        ArrayWriter { doc: DocWriter::new(buf), next: IndexName::new(0) }
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

    /// Appends a copy of the value of another array's element, without decoding it.
    #[inline]
    pub fn push_element(&mut self, element: Element<'_>) -> &mut Self {
        if self.doc.has_room(INDEX_BYTES_MAX + element.value_bytes().len()) {
            self.header(element.kind());
            self.doc.buf.extend_from_slice(element.value_bytes());
        }
        self
    }

    /// Appends copies of all elements of an array. The first elements keep their names, so that they
    /// are copied together.
    pub fn append_all(&mut self, array: Array<'_>) -> &mut Self {
        if !self.is_empty() {
            array.as_doc().iter().for_each(|element| {
                self.push_element(element);
            });
        } else if self.doc.has_room(array.as_bytes().len()) {
            self.doc.buf.extend_from_slice(array.as_doc().element_bytes());
            self.next = IndexName::new(array.count() as u32);
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
        self.next.number
    }

    /// Returns the bytes written so far, without the terminator.
    pub fn len(&self) -> usize {
        self.doc.len()
    }

    /// Returns true if no element has been appended.
    pub fn is_empty(&self) -> bool {
        self.next.number == 0
    }

    /// Ends the array. Dropping does the same.
    pub fn finish(self) {}

    fn header(&mut self, kind: Type) {
        self.next.write_header(kind, self.doc.buf);
        self.next.advance();
    }

    /// Appends the name of the element at `index`, with its terminator.
    pub(crate) fn write_name(buf: &mut Vec<u8>, index: u32) {
        write_index(buf, index);
        buf.push(0);
    }
}

impl GrowingArray {
    /// Returns a copy of an array.
    pub fn new(array: Array<'_>) -> Self {
        GrowingArray {
            bytes: array.as_bytes().to_vec(),
            next: IndexName::new(array.count() as u32),
        }
    }

    /// Returns a view of the array.
    pub fn as_array(&self) -> Array<'_> {
        Array::from_valid_bytes(&self.bytes)
    }

    /// Returns the number of elements.
    pub fn count(&self) -> u32 {
        self.next.number
    }

    /// Appends elements with a writer.
    pub fn extend<T>(&mut self, fill: impl FnOnce(&mut ArrayWriter<'_>) -> T) -> T {
        // The writer writes the terminator again.
        self.bytes.pop();
        let doc = DocWriter { buf: &mut self.bytes, start: 0 };
        let mut writer = ArrayWriter { doc, next: self.next };
        let result = fill(&mut writer);
        self.next = writer.next;
        result
    }

    /// Returns the bytes of the array and consumes it.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayBuf, array, identical};

    fn numbers(count: i32) -> ArrayBuf {
        (0..count).map(|number| Value::Int32(number * 7)).collect()
    }

    #[test]
    fn names_of_elements_are_their_indexes() {
        let mut name = IndexName::new(0);
        for number in 0..120_000u32 {
            let mut written = Vec::new();
            name.write_header(Type::Null, &mut written);
            assert_eq!(written, format!("\n{number}\0").as_bytes());
            let again = IndexName::new(number);
            assert_eq!((again.header, again.len), (name.header, name.len), "{number}");
            name.advance();
        }
        let mut written = Vec::new();
        IndexName::new(u32::MAX).write_header(Type::Null, &mut written);
        assert_eq!(written, b"\n4294967295\0");
    }

    #[test]
    fn appended_arrays_equal_pushed_values() {
        for (first, second) in [(0, 3), (9, 4), (95, 20), (1, 0), (0, 0), (998, 1200)] {
            let (a, b) = (numbers(first), numbers(second));
            let values = || a.as_array().iter().chain(b.as_array().iter());
            let pushed: ArrayBuf = values().collect();
            let appended = ArrayBuf::build(|writer| {
                writer.append_all(a.as_array()).append_all(b.as_array());
            });
            assert_eq!(appended.as_bytes(), pushed.as_bytes());
            let mut growing = GrowingArray::new(a.as_array());
            growing.extend(|writer| {
                writer.append_all(b.as_array());
            });
            assert_eq!(growing.count(), (first + second) as u32);
            assert!(identical(growing.as_array().into(), pushed.as_array().into()));
            growing.extend(|writer| {
                writer.push("last");
            });
            let with_last: ArrayBuf = values().chain(["last".into()]).collect();
            assert_eq!(growing.into_bytes(), with_last.as_bytes());
        }
        assert_eq!(array![1].as_bytes(), GrowingArray::new(array![1].as_array()).into_bytes());
    }
}
