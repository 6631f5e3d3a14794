//! Dotted paths: split once, then followed in documents.
//!
//! There are three ways to follow a path: [`Path::get`] passes through documents only,
//! [`Path::visit`] passes through arrays as filters do, and [`expand_keys`] generates the keys of a
//! document in an index.

mod expand;
mod visit;

use crate::{Array, Doc, Value};
use smallvec::SmallVec;
use std::fmt;

pub use expand::{ExpandError, KeyArrays, expand_keys};
pub use visit::{Found, Leaf, visit_from};

/// A dotted path, split into components.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Path {
    text: Box<str>,
    parts: SmallVec<[Part; 2]>,
}

/// One component of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part {
    name: Box<str>,
    index: Option<u32>,
}

/// The result of following a path up to the first array.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'a, 'p> {
    /// The path leads to no value.
    Missing,
    /// The value at the end of the path, which may be an array.
    Value(Value<'a>),
    /// An array before the end of the path, and the components after it.
    Array(Array<'a>, &'p [Part]),
}

impl Part {
    /// Returns the component with this name.
    pub fn new(name: &str) -> Self {
        Part { name: name.into(), index: array_index(name) }
    }

    /// Returns the name of the component.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the array index in the name ("0", "17", not "017"), if it is one.
    pub const fn index(&self) -> Option<u32> {
        self.index
    }
}

/// Returns the array index in `name`, if it is one: digits without a leading zero.
pub fn array_index(name: &str) -> Option<u32> {
    let bytes = name.as_bytes();
    let plain =
        bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || bytes.first() != Some(&b'0'));
    if plain { name.parse().ok() } else { None }
}

impl Path {
    /// Splits at every dot. Every text is a path; a component may be empty.
    pub fn new(text: &str) -> Self {
        Path { text: text.into(), parts: text.split('.').map(Part::new).collect() }
    }

    /// Returns the text of the whole path.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the components in order. There is at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the number of components.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns false: the empty text is one empty component.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the name of the first component.
    pub fn first(&self) -> &str {
        self.parts.first().map_or("", |part| part.name())
    }

    /// Returns the components after the first.
    pub fn rest(&self) -> &[Part] {
        self.parts.get(1..).unwrap_or(&[])
    }

    /// Returns the value that the path reaches through documents only; `None` if an array comes
    /// before the end.
    pub fn get<'a>(&self, doc: Doc<'a>) -> Option<Value<'a>> {
        match self.lookup(doc) {
            Lookup::Value(value) => Some(value),
            Lookup::Missing | Lookup::Array(..) => None,
        }
    }

    /// Follows the path through documents, to its end or to the first array.
    #[inline]
    pub fn lookup<'a>(&self, doc: Doc<'a>) -> Lookup<'a, '_> {
        lookup(doc, &self.parts)
    }
}

/// Follows `parts` through documents, to the end or to the first array.
#[inline]
pub fn lookup<'a, 'p>(mut doc: Doc<'a>, mut parts: &'p [Part]) -> Lookup<'a, 'p> {
    while let Some((part, rest)) = parts.split_first() {
        let Some(value) = doc.get(&part.name) else {
            return Lookup::Missing;
        };
        if rest.is_empty() {
            return Lookup::Value(value);
        }
        match value {
            Value::Document(inner) => (doc, parts) = (inner, rest),
            Value::Array(array) => return Lookup::Array(array, rest),
            _ => return Lookup::Missing,
        }
    }
    Lookup::Missing
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({:?})", self.text)
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Self {
        Path::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn components() {
        let path = Path::new("a.0.b");
        assert_eq!(path.len(), 3);
        assert_eq!(path.parts()[1].index(), Some(0));
        assert_eq!(array_index("01"), None);
        assert_eq!(array_index(""), None);
        assert_eq!(array_index("99999999999"), None);
        assert_eq!(Path::new("").len(), 1);
        assert_eq!(Path::new("a..").len(), 3);
    }

    #[test]
    fn plain_lookups() {
        let doc = doc! { "a": { "b": { "c": 1 }, "": 2 }, "l": [{ "x": 1 }], "0": { "1": 5 } };
        let get = |path: &str| Path::new(path).get(doc.as_doc()).map(|v| format!("{v:?}"));
        assert_eq!(get("a.b.c").as_deref(), Some("Int32(1)"));
        assert_eq!(get("a.").as_deref(), Some("Int32(2)"));
        assert_eq!(get("0.1").as_deref(), Some("Int32(5)"));
        assert_eq!(get("a.b.c.d"), None);
        assert_eq!(get("l.x"), None);
        let path = Path::new("l.x");
        assert!(
            matches!(path.lookup(doc.as_doc()), Lookup::Array(_, [part]) if part.name() == "x")
        );
    }
}
