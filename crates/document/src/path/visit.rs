//! Follows a path as filters do: through arrays, implicitly and by index.
//!
//! At an array before the end of the path, every element that is a document is visited with the
//! rest of the path. If the next component is an index, the element at that index is visited too.
//! An array at the end of the path gives its elements, then itself.

use super::{Part, Path};
use crate::{Array, Doc, Element, Type, Value};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::ControlFlow;

/// The treatment of an array at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// The elements are visited, then the array itself.
    Elements,
    /// Only the array itself is visited.
    Whole,
}

/// A value to which a path leads.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The value; `None` if the field is missing.
    pub value: Option<Value<'a>>,
    /// The position in the outermost array whose elements were visited, to which the positional `$`
    /// of an update refers. An index in the path does not set it.
    pub position: Option<u32>,
}

impl Path {
    /// Calls `see` with every value to which the path leads, in the order of the document, until it
    /// breaks. If the field is missing, and no array is on the way, calls it once with a missing
    /// value.
    pub fn visit<'a, B>(
        &self,
        doc: Doc<'a>,
        leaf: Leaf,
        mut see: impl FnMut(Found<'a>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        visit_from(doc.find(self.first()), self.rest(), leaf, &mut see)
    }
}

/// Visits like [`Path::visit`], but from the element that the first component has found (`None`: no
/// such field), along the remaining components.
#[inline]
pub fn visit_from<'a, B, F>(
    start: Option<Element<'a>>,
    rest: &[Part],
    leaf: Leaf,
    see: &mut F,
) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    // Most paths meet no array on the way, and then need no walk.
    match through_documents(start, rest) {
        Reached::End(end) => at_end(end, leaf, None, see),
        Reached::Array(array, next, deeper) => {
            let mut walk = Walk { leaf, see, arrays: 0, seen: HashSet::default() };
            in_array(array, next, deeper, None, &mut walk)
        }
    }
}

/// The result of following a path through documents only.
enum Reached<'a, 'p> {
    /// The end of the path; `None` if a field on the way is missing or is not a document.
    End(Option<Element<'a>>),
    /// An array, the component after it, and the components after that.
    Array(Array<'a>, &'p Part, &'p [Part]),
}

#[inline]
fn through_documents<'a, 'p>(start: Option<Element<'a>>, rest: &'p [Part]) -> Reached<'a, 'p> {
    let (mut element, mut rest) = (start, rest);
    loop {
        let Some(found) = element else { return Reached::End(None) };
        let Some((next, deeper)) = rest.split_first() else { return Reached::End(element) };
        match found.kind() {
            Type::Document => {
                element = Doc::from_valid_bytes(found.value_bytes()).find(next.name());
                rest = deeper;
            }
            Type::Array => {
                let array = Array::from_valid_bytes(found.value_bytes());
                return Reached::Array(array, next, deeper);
            }
            _ => return Reached::End(None),
        }
    }
}

#[inline]
fn at_end<'a, B, F>(
    end: Option<Element<'a>>,
    leaf: Leaf,
    position: Option<u32>,
    see: &mut F,
) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    match end.map(|found| found.value()) {
        Some(Value::Array(array)) if leaf == Leaf::Elements => leaf_array(array, position, see),
        value => see(Found { value, position }),
    }
}

/// The state of one visit.
struct Walk<'s, F> {
    leaf: Leaf,
    see: &'s mut F,
    /// The number of arrays met before the end of the path.
    arrays: usize,
    /// The arrays met, with the length of the remaining path, once there are more than
    /// `ARRAYS_MAX`.
    seen: HashSet<(usize, usize, Option<u32>), BuildHasherDefault<DefaultHasher>>,
}

impl<F> Walk<'_, F> {
    /// The number of arrays after which the walk remembers where it has been. In nested arrays of
    /// documents whose field names are numbers, the number of ways through them doubles with each
    /// array. A position that is reached a second time is not visited again.
    const ARRAYS_MAX: usize = 4096;

    fn was_visited(&mut self, array: Array<'_>, deeper: &[Part], outer: Option<u32>) -> bool {
        self.arrays += 1;
        if self.arrays <= Self::ARRAYS_MAX {
            return false;
        }
        !self.seen.insert((array.as_bytes().as_ptr().addr(), deeper.len(), outer))
    }
}

fn follow<'a, B, F>(
    start: Option<Element<'a>>,
    rest: &[Part],
    position: Option<u32>,
    walk: &mut Walk<'_, F>,
) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    match through_documents(start, rest) {
        Reached::End(end) => at_end(end, walk.leaf, position, walk.see),
        Reached::Array(array, next, deeper) => in_array(array, next, deeper, position, walk),
    }
}

fn leaf_array<'a, B, F>(array: Array<'a>, position: Option<u32>, see: &mut F) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    for (value, at) in array.iter().zip(0u32..) {
        see(Found { value: Some(value), position: position.or(Some(at)) })?;
    }
    see(Found { value: Some(Value::Array(array)), position })
}

/// Visits an array before the end of a path; `next` is the component after it.
fn in_array<'a, B, F>(
    array: Array<'a>,
    next: &Part,
    deeper: &[Part],
    outer: Option<u32>,
    walk: &mut Walk<'_, F>,
) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    // Only an index gives a second way to the same position.
    if next.index().is_some() && walk.was_visited(array, deeper, outer) {
        return ControlFlow::Continue(());
    }
    for (element, at) in array.as_doc().iter().zip(0u32..) {
        if element.kind() == Type::Document {
            let doc = Doc::from_valid_bytes(element.value_bytes());
            follow(doc.find(next.name()), deeper, outer.or(Some(at)), walk)?;
        }
        if next.index() == Some(at) {
            at_index(element, deeper, outer, walk)?;
        }
    }
    ControlFlow::Continue(())
}

/// Visits the element at an index. At the end of the path it is a single value, even if it is an
/// array.
fn at_index<'a, B, F>(
    element: Element<'a>,
    deeper: &[Part],
    outer: Option<u32>,
    walk: &mut Walk<'_, F>,
) -> ControlFlow<B>
where
    F: FnMut(Found<'a>) -> ControlFlow<B>,
{
    let Some((next, beyond)) = deeper.split_first() else {
        return (walk.see)(Found { value: Some(element.value()), position: outer });
    };
    match element.kind() {
        Type::Document => {
            let doc = Doc::from_valid_bytes(element.value_bytes());
            follow(doc.find(next.name()), beyond, outer, walk)
        }
        Type::Array => {
            let array = Array::from_valid_bytes(element.value_bytes());
            in_array(array, next, beyond, outer, walk)
        }
        _ => ControlFlow::Continue(()),
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

    /// 95 nested arrays of documents whose only field is `0`, and a path of 190 zeros: the number
    /// of ways from the first to the last doubles with each array.
    #[test]
    fn the_work_of_numeric_parts_does_not_double_with_each() {
        let mut inner = doc! { "0": 1 };
        for _ in 0..95 {
            inner = doc! { "0": [&inner] };
        }
        let path = vec!["0"; 190].join(".");
        let mut seen = 0;
        let _ = Path::new(&path).visit::<()>(inner.as_doc(), Leaf::Elements, |_| {
            seen += 1;
            ControlFlow::Continue(())
        });
        assert!((1..100_000).contains(&seen), "{seen}");
    }

    #[test]
    fn by_index() {
        assert_eq!(seen(&doc! { "a": [5, 7] }, "a.1"), ["Int32(7)"]);
        assert_eq!(seen(&doc! { "a": [5, [2]] }, "a.1"), ["Array([Int32(2)])"]);
        let doc = doc! { "a": [5, { "1": 4 }] };
        assert_eq!(seen(&doc, "a.1"), ["1:Int32(4)", "Document({\"1\": Int32(4)})"]);
        assert_eq!(seen(&doc! { "a": [5, { "b": 4 }] }, "a.1.b"), ["1:-", "Int32(4)"]);
        assert_eq!(seen(&doc! { "a": [5, [{ "b": 4 }]] }, "a.1.b"), ["0:Int32(4)"]);
        let doc = doc! { "a": [{ "b": 1 }, 5, { "c": 2 }, [{ "b": 9 }]] };
        assert_eq!(seen(&doc, "a.0.b"), ["0:-", "Int32(1)", "2:-"]);
        assert_eq!(seen(&doc, "a.3.b"), ["0:-", "2:-", "0:Int32(9)"]);
    }
}
