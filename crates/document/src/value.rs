//! A BSON value that borrows from the bytes of its document.

use crate::{Array, Decimal128, Doc, ObjectId, Timestamp, Type};

/// A BSON value. It is `Copy` and at most three words long, so pass it by value. A missing value is
/// the `None` of an `Option<Value>`, not a variant.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Double(f64),
    String(&'a str),
    Document(Doc<'a>),
    Array(Array<'a>),
    Binary(Binary<'a>),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since the Unix epoch.
    Date(i64),
    Null,
    Regex(Regex<'a>),
    DbPointer(DbPointer<'a>),
    Code(&'a str),
    Symbol(&'a str),
    CodeWithScope(CodeWithScope<'a>),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal(Decimal128),
    MinKey,
    MaxKey,
}

/// Binary data with its subtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary<'a> {
    /// 0 generic, 4 UUID, 5 MD5, 128 and up user defined.
    pub subtype: u8,
    /// The payload in wire form. For subtype 2 it includes the inner length.
    pub bytes: &'a [u8],
}

/// A regular expression value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regex<'a> {
    /// The pattern between the slashes.
    pub pattern: &'a str,
    /// The option letters.
    pub options: &'a str,
}

/// A DBPointer value (deprecated).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbPointer<'a> {
    /// The namespace that the pointer refers to.
    pub namespace: &'a str,
    /// The id of the document that it refers to.
    pub id: ObjectId,
}

/// JavaScript code with its scope (deprecated).
#[derive(Clone, Copy, Debug)]
pub struct CodeWithScope<'a> {
    /// The source of the code.
    pub code: &'a str,
    /// The variables of the scope.
    pub scope: Doc<'a>,
}

impl<'a> Value<'a> {
    /// Returns the type of the value.
    #[inline]
    pub const fn kind(&self) -> Type {
        match self {
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Document(_) => Type::Document,
            Value::Array(_) => Type::Array,
            Value::Binary(_) => Type::Binary,
            Value::Undefined => Type::Undefined,
            Value::ObjectId(_) => Type::ObjectId,
            Value::Bool(_) => Type::Bool,
            Value::Date(_) => Type::Date,
            Value::Null => Type::Null,
            Value::Regex(_) => Type::Regex,
            Value::DbPointer(_) => Type::DbPointer,
            Value::Code(_) => Type::Code,
            Value::Symbol(_) => Type::Symbol,
            Value::CodeWithScope(_) => Type::CodeWithScope,
            Value::Int32(_) => Type::Int32,
            Value::Timestamp(_) => Type::Timestamp,
            Value::Int64(_) => Type::Int64,
            Value::Decimal(_) => Type::Decimal,
            Value::MinKey => Type::MinKey,
            Value::MaxKey => Type::MaxKey,
        }
    }

    /// Returns MongoDB's name of the type, as messages show it.
    pub const fn type_name(&self) -> &'static str {
        self.kind().alias()
    }

    /// Returns true for int, long, double and decimal.
    #[inline]
    pub const fn is_number(&self) -> bool {
        self.kind().is_number()
    }

    /// Returns true for null and undefined.
    #[inline]
    pub const fn is_nullish(&self) -> bool {
        matches!(self, Value::Null | Value::Undefined)
    }

    /// Returns the document, if the value is one.
    pub fn as_document(&self) -> Option<Doc<'a>> {
        if let Value::Document(doc) = self { Some(*doc) } else { None }
    }

    /// Returns the array, if the value is one.
    pub fn as_array(&self) -> Option<Array<'a>> {
        if let Value::Array(array) = self { Some(*array) } else { None }
    }

    /// Returns the string, if the value is one.
    pub fn as_str(&self) -> Option<&'a str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// Returns the boolean, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(flag) = self { Some(*flag) } else { None }
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}
impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Value::Int32(number)
    }
}
impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int64(number)
    }
}
impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}
impl From<ObjectId> for Value<'_> {
    fn from(id: ObjectId) -> Self {
        Value::ObjectId(id)
    }
}
impl From<Timestamp> for Value<'_> {
    fn from(timestamp: Timestamp) -> Self {
        Value::Timestamp(timestamp)
    }
}
impl From<Decimal128> for Value<'_> {
    fn from(decimal: Decimal128) -> Self {
        Value::Decimal(decimal)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(text)
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::String(text)
    }
}
impl<'a> From<Doc<'a>> for Value<'a> {
    fn from(doc: Doc<'a>) -> Self {
        Value::Document(doc)
    }
}
impl<'a> From<Array<'a>> for Value<'a> {
    fn from(array: Array<'a>) -> Self {
        Value::Array(array)
    }
}
impl<'a> From<&'a crate::DocBuf> for Value<'a> {
    fn from(doc: &'a crate::DocBuf) -> Self {
        Value::Document(doc.as_doc())
    }
}
impl<'a> From<&'a crate::ArrayBuf> for Value<'a> {
    fn from(array: &'a crate::ArrayBuf) -> Self {
        Value::Array(array.as_array())
    }
}
impl<'a> From<&'a crate::ValueBuf> for Value<'a> {
    fn from(value: &'a crate::ValueBuf) -> Self {
        value.as_value()
    }
}
