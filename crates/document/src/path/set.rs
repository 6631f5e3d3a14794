//! Many paths taken out of a document in one pass.

use super::{Part, Path};
use crate::{Array, Doc, Value};
use std::collections::BTreeMap;

/// Paths merged into a tree, so that a document is walked once for all of them.
#[derive(Clone, Debug)]
pub struct PathSet {
    root: Node,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    name: Box<str>,
    /// The places of the paths that end here.
    ends: Vec<u32>,
    children: Vec<Node>,
}

/// What one path of a set leads to.
#[derive(Clone, Copy, Debug, Default)]
pub enum Extracted<'a> {
    /// Nothing.
    #[default]
    Missing,
    /// The value at the end of the path (it may be an array).
    Value(Value<'a>),
    /// An array in the way; the path goes on inside it from this component.
    Array(Array<'a>, u32),
}

impl<'a> Extracted<'a> {
    /// The value, if the path was followed to its end.
    pub fn value(self) -> Option<Value<'a>> {
        if let Extracted::Value(value) = self { Some(value) } else { None }
    }
}

impl PathSet {
    /// A set; results come in the order of `paths`.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut builder = Builder::default();
        let mut len = 0;
        for path in paths {
            builder.insert(path.parts(), len as u32);
            len += 1;
        }
        PathSet { root: builder.node("".into()), len }
    }

    /// How many paths it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fills `out` with one result for each path; `out` is cleared first.
    pub fn extract<'a>(&self, doc: Doc<'a>, out: &mut Vec<Extracted<'a>>) {
        out.clear();
        out.resize(self.len, Extracted::Missing);
        self.root.extract(doc, 1, out);
    }
}

#[derive(Default)]
struct Builder {
    ends: Vec<u32>,
    children: BTreeMap<Box<str>, Builder>,
}

impl Builder {
    fn insert(&mut self, parts: &[Part], place: u32) {
        match parts.split_first() {
            None => self.ends.push(place),
            Some((part, rest)) => {
                self.children.entry(part.name().into()).or_default().insert(rest, place);
            }
        }
    }

    fn node(self, name: Box<str>) -> Node {
        let children = self.children.into_iter().map(|(name, child)| child.node(name)).collect();
        Node { name, ends: self.ends, children }
    }
}

impl Node {
    fn extract<'a>(&self, doc: Doc<'a>, depth: u32, out: &mut [Extracted<'a>]) {
        // The first field of a name wins; with more than 64 names a second one is not told apart
        // by the bits, so nothing is stopped early and places already filled are left alone.
        let (mut open, few) = (self.children.len(), self.children.len() <= 64);
        let mut seen = 0u64;
        for element in doc.iter() {
            let key = element.key_bytes();
            let Some(at) = self.children.iter().position(|child| child.name.as_bytes() == key)
            else {
                continue;
            };
            let bit = 1u64 << (at % 64);
            if few && seen & bit != 0 {
                continue;
            }
            seen |= bit;
            self.children[at].take(element.value(), depth, out);
            open = open.saturating_sub(1);
            if open == 0 && few {
                return;
            }
        }
    }

    fn take<'a>(&self, value: Value<'a>, depth: u32, out: &mut [Extracted<'a>]) {
        for &end in &self.ends {
            fill(out, end, Extracted::Value(value));
        }
        match value {
            _ if self.children.is_empty() => {}
            Value::Document(doc) => self.extract(doc, depth + 1, out),
            Value::Array(array) => {
                self.children.iter().for_each(|child| child.stop(array, depth, out));
            }
            _ => {}
        }
    }

    /// Marks every path below as stopped at an array.
    fn stop<'a>(&self, array: Array<'a>, depth: u32, out: &mut [Extracted<'a>]) {
        for &end in &self.ends {
            fill(out, end, Extracted::Array(array, depth));
        }
        self.children.iter().for_each(|child| child.stop(array, depth, out));
    }
}

fn fill<'a>(out: &mut [Extracted<'a>], place: u32, with: Extracted<'a>) {
    if let Some(slot @ Extracted::Missing) = out.get_mut(place as usize) {
        *slot = with;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn one_pass() {
        let doc = doc! { "a": 1, "b": { "c": 2, "d": { "e": 3 } }, "l": [{ "x": 1 }], "a": 9 };
        let paths: Vec<Path> =
            ["b.d.e", "a", "l.x", "zz", "b.c", "b", "a", "l", "a.b"].map(Path::new).into();
        let set = PathSet::new(&paths);
        let mut out = Vec::new();
        set.extract(doc.as_doc(), &mut out);
        assert_eq!(set.len(), 9);
        for (path, extracted) in paths.iter().zip(&out) {
            let plain = path.get(doc.as_doc());
            assert_eq!(format!("{:?}", extracted.value()), format!("{plain:?}"), "{path}");
        }
        assert!(matches!(out[2], Extracted::Array(_, 1)));
    }
}
