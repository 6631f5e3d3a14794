//! Following a path as filters do: through arrays, implicitly and by index.
//!
//! At an array in the middle of the path every element that is a document is entered with the
//! rest of the path, and where the next component is an index, the element there is entered (or
//! found) as well. An array at the end of the path gives its elements, then itself.

use super::{Part, Path};
use crate::{Array, Doc, Value};
use std::ops::ControlFlow;

/// What happens to an array at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Its elements are visited, then the array itself.
    Elements,
    /// Only the array itself is visited.
    Whole,
}

/// One value that a path leads to.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The value; `None` where the path ends in nothing.
    pub value: Option<Value<'a>>,
    /// The place in the outermost array that was gone through element by element: what the
    /// positional `$` of an update refers to.
    pub position: Option<u32>,
    /// True for an element of an array that stands at the end of the path.
    pub in_leaf_array: bool,
}

impl Path {
    /// Calls `see` with every value that the path leads to, until it breaks. Order is that of the
    /// document. A path that ends in nothing outside of arrays is seen once, as a missing value.
    pub fn visit<'a, B>(
        &self,
        doc: Doc<'a>,
        leaf: Leaf,
        mut see: impl FnMut(Found<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        in_document(doc, &self.parts, leaf, None, &mut see)
    }

    /// True if `test` holds for any value that the path leads to.
    pub fn any<'a>(
        &self,
        doc: Doc<'a>,
        leaf: Leaf,
        mut test: impl FnMut(Option<Value<'a>>) -> bool,
    ) -> bool {
        let see = |found: Found<'a>| match test(found.value) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        self.visit(doc, leaf, see).is_break()
    }
}

fn in_document<'a, B>(
    mut doc: Doc<'a>,
    mut parts: &[Part],
    leaf: Leaf,
    position: Option<u32>,
    see: &mut impl FnMut(Found<'a>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    while let Some((part, rest)) = parts.split_first() {
        match (doc.get(part.name()), rest.is_empty()) {
            (Some(Value::Array(array)), true) if leaf == Leaf::Elements => {
                return leaf_array(array, position, see);
            }
            (Some(value), true) => return see(Found::new(Some(value), position)),
            (Some(Value::Document(inner)), false) => (doc, parts) = (inner, rest),
            (Some(Value::Array(array)), false) => {
                return in_array(array, rest, leaf, position, see);
            }
            _ => break,
        }
    }
    see(Found::new(None, position))
}

fn leaf_array<'a, B>(
    array: Array<'a>,
    position: Option<u32>,
    see: &mut impl FnMut(Found<'a>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for (value, at) in array.iter().zip(0u32..) {
        let position = position.or(Some(at));
        see(Found { value: Some(value), position, in_leaf_array: true })?;
    }
    see(Found::new(Some(Value::Array(array)), position))
}

fn in_array<'a, B>(
    array: Array<'a>,
    parts: &[Part],
    leaf: Leaf,
    outer: Option<u32>,
    see: &mut impl FnMut(Found<'a>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Some((part, rest)) = parts.split_first() else {
        return ControlFlow::Continue(());
    };
    for (value, at) in array.iter().zip(0u32..) {
        if let Value::Document(doc) = value {
            in_document(doc, parts, leaf, outer.or(Some(at)), see)?;
        }
        if part.index() != Some(at) {
            continue;
        }
        match value {
            _ if rest.is_empty() => see(Found::new(Some(value), outer.or(Some(at))))?,
            Value::Document(doc) => in_document(doc, rest, leaf, outer, see)?,
            Value::Array(inner) => in_array(inner, rest, leaf, outer, see)?,
            _ => {}
        }
    }
    ControlFlow::Continue(())
}

impl<'a> Found<'a> {
    const fn new(value: Option<Value<'a>>, position: Option<u32>) -> Self {
        Found { value, position, in_leaf_array: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocBuf, doc};

    fn seen(doc: &DocBuf, path: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let _ = Path::new(path).visit::<()>(doc.as_doc(), Leaf::Elements, |found| {
            let value = found.value.map_or("-".to_string(), |value| format!("{value:?}"));
            seen.push(match found.position {
                Some(at) => format!("{at}:{value}"),
                None => value,
            });
            ControlFlow::Continue(())
        });
        seen
    }

    #[test]
    fn through_arrays() {
        let doc = doc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 4, { "c": 5 }], "n": { "m": 1 } };
        assert_eq!(
            seen(&doc, "a.b"),
            ["0:Int32(1)", "1:Int32(2)", "1:Int32(3)", "1:Array([Int32(2), Int32(3)])", "3:-"]
        );
        assert_eq!(seen(&doc, "n.m"), ["Int32(1)"]);
        assert_eq!(seen(&doc, "n.x"), ["-"]);
        assert_eq!(seen(&doc, "n.m.x"), ["-"]);
        assert_eq!(seen(&doc! { "a": [] }, "a.b"), [""; 0]);
        assert_eq!(seen(&doc! { "a": [] }, "a"), ["Array([])"]);
    }

    #[test]
    fn by_index() {
        assert_eq!(seen(&doc! { "a": [5, 7] }, "a.1"), ["1:Int32(7)"]);
        assert_eq!(seen(&doc! { "a": [5, [2]] }, "a.1"), ["1:Array([Int32(2)])"]);
        let doc = doc! { "a": [5, { "1": 4 }] };
        assert_eq!(seen(&doc, "a.1"), ["1:Int32(4)", "1:Document({\"1\": Int32(4)})"]);
        assert_eq!(seen(&doc! { "a": [5, { "b": 4 }] }, "a.1.b"), ["1:-", "Int32(4)"]);
        assert_eq!(seen(&doc! { "a": [5, [{ "b": 4 }]] }, "a.1.b"), ["0:Int32(4)"]);
    }
}
