//! Collations: the `collation` document, and the order of strings that it defines.
//!
//! See "Collation" in MongoDB's manual. The simple collation, which compares bytes, is not a
//! [`Collation`]: it is the `None` of an `Option`.

mod key_thread;
mod locales;
mod long_key;
mod marks;
mod order;
mod parse;
mod spec;

pub use order::SHORT_BYTES_MAX;
pub use spec::{Alternate, CaseFirst, CollationSpec, MaxVariable, VERSION};

use crate::context::work::ELEMENTS_AT_ONCE;
use crate::context::{Collator, work_or_unwind};
use order::Order;
use parse::Given;
use quire_document::{ArrayBuf, Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A collation other than the simple one. Two collations are equal if they order strings in the
/// same way.
pub struct Collation {
    spec: CollationSpec,
    order: Order,
}

impl Collation {
    /// Parses the collation of an operation or an index. Returns `None` for the simple collation.
    ///
    /// # Errors
    /// 40414, 40415, `TypeMismatch` and `BadValue` for a malformed document,
    /// `IncompatibleCollationVersion` for a version other than [`VERSION`], `CommandNotSupported`
    /// for a variant without data.
    pub fn parse(doc: Doc<'_>) -> Result<Option<Arc<Self>>> {
        let spec = Given::read(doc, "collation")?.complete(doc)?;
        spec.map(Self::new).transpose()
    }

    /// Parses the collation of `create`, which uses the general defaults instead of the locale's,
    /// except for `backwards`. Errors as [`Collation::parse`].
    pub fn parse_default(doc: Doc<'_>) -> Result<Option<Arc<Self>>> {
        let given = Given::read(doc, "create.collation")?.with_general_defaults();
        let spec = given.complete(given.to_document().as_doc())?;
        spec.map(Self::new).transpose()
    }

    fn new(spec: CollationSpec) -> Result<Arc<Self>> {
        let order = Order::new(&spec)?;
        Ok(Arc::new(Collation { spec, order }))
    }

    /// Returns the options of this collation.
    pub fn spec(&self) -> &CollationSpec {
        &self.spec
    }

    /// Returns the value with all strings replaced by the hexadecimal digits of their sort keys, as
    /// the error of a duplicate key shows it.
    pub fn hex_value(&self, value: Value<'_>) -> ValueBuf {
        with_strings(value, &|text| {
            let mut sort_key = Vec::with_capacity(text.len() * 2);
            self.order.sort_key(text, &mut sort_key);
            let mut digits = String::with_capacity(2 + sort_key.len() * 2);
            digits.push_str("0x");
            for piece in sort_key.chunks(ELEMENTS_AT_ONCE) {
                work_or_unwind(ELEMENTS_AT_ONCE as u32);
                for digit in piece.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
                    digits.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
                }
            }
            digits
        })
    }

    /// Returns the complete document, as listings and explain show it.
    pub fn to_document(&self) -> DocBuf {
        self.spec.to_document()
    }
}

fn with_strings(value: Value<'_>, change: &dyn Fn(&str) -> String) -> ValueBuf {
    match value {
        Value::String(text) => ValueBuf::new(change(text).as_str()),
        Value::Symbol(text) => ValueBuf::new(Value::Symbol(&change(text))),
        Value::Document(doc) => ValueBuf::new(&DocBuf::build(|writer| {
            for (name, value) in doc.fields() {
                writer.append(name, &with_strings(value, change));
            }
        })),
        Value::Array(array) => {
            let values: Vec<ValueBuf> =
                array.iter().map(|value| with_strings(value, change)).collect();
            let values: ArrayBuf = values.iter().collect();
            ValueBuf::new(&values)
        }
        other => ValueBuf::new(other),
    }
}

impl Collator for Collation {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        self.order.compare(a, b)
    }

    fn sort_key(&self, text: &str, key: &mut Vec<u8>) {
        self.order.sort_key(text, key);
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

/// The collation that the user gave for an operation or an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AskedCollation {
    /// None was given: the collection's default applies.
    #[default]
    Default,
    /// The given one; `None` for the simple collation.
    Own(Option<Arc<Collation>>),
}

impl AskedCollation {
    /// Parses the collation of an operation. An empty document means that none was given. Errors as
    /// [`Collation::parse`].
    pub fn parse(doc: Doc<'_>) -> Result<Self> {
        match doc.is_empty() {
            true => Ok(AskedCollation::Default),
            false => Collation::parse(doc).map(AskedCollation::Own),
        }
    }

    /// Returns the collation that applies if `default` is the collection's.
    pub fn or<'c>(&'c self, default: Option<&'c Arc<Collation>>) -> Option<&'c Arc<Collation>> {
        match self {
            AskedCollation::Default => default,
            AskedCollation::Own(own) => own.as_ref(),
        }
    }
}

/// Returns the collation in the form that comparisons use.
pub fn as_collator(collation: Option<&Arc<Collation>>) -> Option<Arc<dyn Collator>> {
    collation.map(|collation| Arc::clone(collation) as Arc<dyn Collator>)
}

#[cfg(test)]
mod tests;
