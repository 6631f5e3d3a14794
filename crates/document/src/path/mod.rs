//! Dotted paths, split once and then followed over bytes.
//!
//! There are three ways to follow a path: [`Path::get`] goes through documents only; [`Path::visit`] goes through
//! arrays as filters do; [`expand_keys`] makes the keys that an index has for a document.

mod expand;
mod visit;

use crate::{Array, Doc, Value};
use smallvec::SmallVec;
use std::fmt;

pub use expand::{ExpandError, KeyArrays, expand_keys};
pub use visit::{Found, Leaf, visit_from};

/// A dotted path in its components.
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

/// Where a path leads without looking into arrays.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'a, 'p> {
    /// Nothing stands there.
    Missing,
    /// The value at the end of the path (it may be an array).
    Value(Value<'a>),
    /// An array stands in the way; the components after it are left.
    Array(Array<'a>, &'p [Part]),
}

impl Part {
    /// A component from its name.
    pub fn new(name: &str) -> Self {
        Part { name: name.into(), index: array_index(name) }
    }

    /// Returns the name of the part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The array index that the name spells ("0", "17", never "017"), if it spells one.
    pub const fn index(&self) -> Option<u32> {
        self.index
    }
}

/// The array index that `name` spells: digits without a leading zero.
pub fn array_index(name: &str) -> Option<u32> {
    let bytes = name.as_bytes();
    let plain =
        bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || bytes.first() != Some(&b'0'));
    if plain { name.parse().ok() } else { None }
}

impl Path {
    /// Splits at every dot. Any text is a path here; empty components are names like others.
    pub fn new(text: &str) -> Self {
        Path { text: text.into(), parts: text.split('.').map(Part::new).collect() }
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The components in order; at least one.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many components it has.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Never true: the empty text is one empty component.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first component's name.
    pub fn first(&self) -> &str {
        self.parts.first().map_or("", |part| part.name())
    }

    /// The components behind the first.
    pub fn rest(&self) -> &[Part] {
        self.parts.get(1..).unwrap_or(&[])
    }

    /// True if a component spells an array index.
    pub fn has_index(&self) -> bool {
        self.parts.iter().any(|part| part.index.is_some())
    }

    /// True if `other` is this path or stands below it.
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        other.parts.starts_with(&self.parts)
    }

    /// The value that is reached through documents alone; arrays on the way end the search.
    pub fn get<'a>(&self, doc: Doc<'a>) -> Option<Value<'a>> {
        match self.lookup(doc) {
            Lookup::Value(value) => Some(value),
            Lookup::Missing | Lookup::Array(..) => None,
        }
    }

    /// Follows the path through documents and says where the first array stands.
    #[inline]
    pub fn lookup<'a>(&self, doc: Doc<'a>) -> Lookup<'a, '_> {
        lookup(doc, &self.parts)
    }
}

/// Follows `parts` through documents up to the end, the first array, or nothing.
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
        assert!(path.has_index() && Path::new("a").is_prefix_of(&path));
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
