//! Dotted paths as filters read them, and the walk over a document's bytes that they name.
//!
//! An array on the way is walked element by element: documents continue the path, and a numeric
//! component also names the element at that index. At the end of the path an array yields its
//! elements, then itself (`Leaf::Expand`), or only itself (`Leaf::Whole`).

use quire_document::{Array, Doc, Element, Type, Value};
use quire_error::Result;
use std::fmt;

/// A parsed path. Empty components are components like any other (`"a."`, `""`).
#[derive(Clone)]
pub struct Path {
    text: Box<str>,
    parts: Box<[Part]>,
    /// Which of its scope's top-level fields the path starts with.
    pub(super) slot: usize,
}

/// One component of a path.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: Box<str>,
    /// The index that the component names in an array: decimal digits without leading zeros.
    pub(crate) index: Option<u32>,
}

/// What the end of a path yields for an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// Its elements, then itself.
    Expand,
    /// Itself.
    Whole,
}

impl Path {
    /// Parses a dotted path; any text is one.
    pub fn new(text: &str) -> Path {
        let parts = text.split('.').map(Part::new).collect();
        Path { text: text.into(), parts, slot: 0 }
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The components.
    pub fn components(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parts.iter().map(|part| &*part.name)
    }

    /// The first component: a top-level field's name.
    pub fn first(&self) -> &str {
        self.parts.first().map_or("", |part| &part.name)
    }

    /// The components behind the first.
    pub(crate) fn rest(&self) -> &[Part] {
        self.parts.get(1..).unwrap_or(&[])
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Part {
    fn new(name: &str) -> Part {
        Part { name: name.into(), index: array_index(name) }
    }
}

/// The index that a component names in an array, if it names one.
pub(crate) fn array_index(name: &str) -> Option<u32> {
    let canonical = name == "0" || (!name.starts_with('0') && !name.is_empty());
    let digits = name.len() <= 9 && name.bytes().all(|byte| byte.is_ascii_digit());
    if canonical && digits { name.parse().ok() } else { None }
}

/// Calls `visit` with each value that the path names, from `start`, the element that its first
/// component found, until it answers true. The number is the index in the outermost array on the
/// way. A field that is missing yields one `None`.
#[inline]
pub(crate) fn walk<'a, F>(
    start: Option<Element<'a>>,
    rest: &[Part],
    leaf: Leaf,
    visit: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<Value<'a>>, Option<u32>) -> Result<bool>,
{
    walk_from(start, rest, leaf, None, visit)
}

fn walk_from<'a, F>(
    start: Option<Element<'a>>,
    rest: &[Part],
    leaf: Leaf,
    outer: Option<u32>,
    visit: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<Value<'a>>, Option<u32>) -> Result<bool>,
{
    let (mut element, mut rest) = (start, rest);
    loop {
        let Some(found) = element else { return visit(None, outer) };
        let Some((next, deeper)) = rest.split_first() else {
            let value = found.value();
            return match value {
                Value::Array(array) if leaf == Leaf::Expand => expand(array, outer, visit),
                _ => visit(Some(value), outer),
            };
        };
        match found.kind() {
            Type::Document => {
                let doc = Doc::from_valid_bytes(found.value_bytes());
                (element, rest) = (doc.find(&next.name), deeper);
            }
            Type::Array => {
                let array = Array::from_valid_bytes(found.value_bytes());
                return walk_array(array, rest, leaf, outer, visit);
            }
            _ => return visit(None, outer),
        }
    }
}

fn expand<'a, F>(array: Array<'a>, outer: Option<u32>, visit: &mut F) -> Result<bool>
where
    F: FnMut(Option<Value<'a>>, Option<u32>) -> Result<bool>,
{
    for (index, value) in array.iter().enumerate() {
        if visit(Some(value), outer.or(Some(index as u32)))? {
            return Ok(true);
        }
    }
    visit(Some(Value::Array(array)), outer)
}

/// An array in the middle of a path. `rest` is not empty.
fn walk_array<'a, F>(
    array: Array<'a>,
    rest: &[Part],
    leaf: Leaf,
    outer: Option<u32>,
    visit: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<Value<'a>>, Option<u32>) -> Result<bool>,
{
    let Some((next, deeper)) = rest.split_first() else { return Ok(false) };
    for (index, element) in array.as_doc().iter().enumerate() {
        let index = index as u32;
        let here = outer.or(Some(index));
        if element.kind() == Type::Document {
            let doc = Doc::from_valid_bytes(element.value_bytes());
            if walk_from(doc.find(&next.name), deeper, leaf, here, visit)? {
                return Ok(true);
            }
        }
        if next.index == Some(index) && walk_indexed(element, deeper, leaf, outer, visit)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The element that a numeric component names: at the end of the path it is taken whole, and the
/// index is not reported, for the path itself says it.
fn walk_indexed<'a, F>(
    element: Element<'a>,
    deeper: &[Part],
    leaf: Leaf,
    outer: Option<u32>,
    visit: &mut F,
) -> Result<bool>
where
    F: FnMut(Option<Value<'a>>, Option<u32>) -> Result<bool>,
{
    let Some((next, beyond)) = deeper.split_first() else {
        return visit(Some(element.value()), outer);
    };
    match element.kind() {
        Type::Document => {
            let doc = Doc::from_valid_bytes(element.value_bytes());
            walk_from(doc.find(&next.name), beyond, leaf, outer, visit)
        }
        Type::Array => {
            let array = Array::from_valid_bytes(element.value_bytes());
            walk_array(array, deeper, leaf, outer, visit)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn values(doc: Doc<'_>, path: &str, leaf: Leaf) -> Vec<String> {
        let path = Path::new(path);
        let mut seen = Vec::new();
        let start = doc.find(path.first());
        walk(start, path.rest(), leaf, &mut |value, index| {
            seen.push(match value {
                Some(value) => format!("{value:?}@{index:?}"),
                None => "missing".into(),
            });
            Ok(false)
        })
        .unwrap();
        seen
    }

    #[test]
    fn arrays_on_the_way() {
        let doc = doc! { "a": [{ "b": 1 }, 5, { "c": 2 }, [{ "b": 9 }]] };
        let doc = doc.as_doc();
        assert_eq!(values(doc, "a.b", Leaf::Expand), ["Int32(1)@Some(0)", "missing"]);
        assert_eq!(values(doc, "a.0.b", Leaf::Expand), ["missing", "Int32(1)@None", "missing"]);
        assert_eq!(values(doc, "a.1", Leaf::Expand), ["missing", "Int32(5)@None", "missing"]);
        assert_eq!(values(doc, "a.3.b", Leaf::Expand), ["missing", "missing", "Int32(9)@Some(0)"]);
        assert_eq!(values(doc, "x.y", Leaf::Expand), ["missing"]);
        assert!(values(doc! { "a": [] }.as_doc(), "a.b", Leaf::Expand).is_empty());
    }

    #[test]
    fn arrays_at_the_end() {
        let doc = doc! { "a": [1, [2]], "b": [{ "c": [3, 4] }] };
        let doc = doc.as_doc();
        assert_eq!(values(doc, "a", Leaf::Expand).len(), 3);
        assert_eq!(values(doc, "a", Leaf::Whole).len(), 1);
        assert_eq!(values(doc, "b.c", Leaf::Expand)[1], "Int32(4)@Some(0)");
        assert_eq!(values(doc, "a.1", Leaf::Expand).len(), 1);
    }

    #[test]
    fn indexes_are_canonical_digits() {
        assert_eq!(array_index("0"), Some(0));
        assert_eq!(array_index("12"), Some(12));
        for name in ["00", "01", "-1", "", "1a", "+1", "99999999999"] {
            assert_eq!(array_index(name), None, "{name}");
        }
    }
}
