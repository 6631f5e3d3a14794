//! The keys of a document in an index: every combination of the elements of its arrays.
//!
//! All paths of an index may pass through the same array, whose elements then give one key each,
//! but not through two different arrays. A missing field is `None` (indexed as null; sparse indexes
//! check it), and an empty array at the end of a path is `undefined`.

use super::{Part, Path};
use crate::{Array, Doc, Value};
use quire_error::{Error, ErrorCode};
use smallvec::SmallVec;
use std::fmt;

/// For each path, the components that led to arrays: bit i is component i (bit 63 is 63 and all
/// after it).
pub type KeyArrays = SmallVec<[u64; 4]>;

/// The reason why a document has no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpandError {
    /// Two paths go through different arrays.
    ParallelArrays(String, String),
    /// A component names both an element of an array and a field of a document in the array.
    AmbiguousField(String),
}

/// The state of the expansion at one depth of the document.
#[derive(Clone)]
struct Level<'a, 'p> {
    rest: SmallVec<[&'p [Part]; 4]>,
    fixed: SmallVec<[Option<Value<'a>>; 4]>,
    picked: SmallVec<[Picked<'a, 'p>; 4]>,
}

/// The element that an array index in a path selects, and the value that the rest of the path leads
/// to.
#[derive(Clone, Copy, Default)]
struct Picked<'a, 'p> {
    element: Option<Value<'a>>,
    end: Option<Value<'a>>,
    rest: &'p [Part],
}

struct Expander<'p, 'e, 'a> {
    paths: &'p [Path],
    arrays: KeyArrays,
    emit: &'e mut dyn FnMut(&[Option<Value<'a>>]),
}

/// Calls `emit` with each key of `doc` under `paths`, possibly with the same key more than once.
/// Returns the components that were arrays.
pub fn expand_keys<'a>(
    doc: Doc<'a>,
    paths: &[Path],
    emit: &mut dyn FnMut(&[Option<Value<'a>>]),
) -> Result<KeyArrays, ExpandError> {
    let level = Level {
        rest: paths.iter().map(|path| path.parts()).collect(),
        fixed: SmallVec::from_elem(None, paths.len()),
        picked: SmallVec::from_elem(Picked::default(), paths.len()),
    };
    let arrays = SmallVec::from_elem(0, paths.len());
    let mut expander = Expander { paths, arrays, emit };
    expander.expand(doc, level)?;
    Ok(expander.arrays)
}

impl<'a, 'p> Expander<'p, '_, 'a> {
    fn expand(&mut self, doc: Doc<'a>, mut level: Level<'a, 'p>) -> Result<(), ExpandError> {
        let mut array: Option<(Array<'a>, usize)> = None;
        let mut through: SmallVec<[usize; 4]> = SmallVec::new();
        let mut spread = true;
        for i in 0..level.rest.len() {
            if level.rest[i].is_empty() {
                continue;
            }
            let (value, nested) = next_value(doc, level.picked[i], &mut level.rest[i])?;
            match value {
                None => {
                    level.fixed[i] = None;
                    level.rest[i] = &[];
                }
                Some(Value::Array(found)) => {
                    through.push(i);
                    spread &= !(nested && level.rest[i].is_empty());
                    match array {
                        None => array = Some((found, i)),
                        Some((first, _)) if same_place(first, found) => {}
                        Some((_, other)) => return Err(self.parallel(&level, i, other)),
                    }
                }
                Some(value) => level.fixed[i] = Some(value),
            }
        }
        match array {
            None => (self.emit)(&level.fixed),
            Some((array, _)) if array.is_empty() => {
                self.mark(&level, &through, |_| true);
                level.picked.iter_mut().for_each(|picked| *picked = Picked::default());
                self.element(Value::Undefined, array, &level, &through, true)?;
            }
            Some((array, _)) => self.spread(array, level, &through, spread)?,
        }
        Ok(())
    }

    /// Emits at least one key for each element of the array that the paths in `through` have
    /// reached.
    fn spread(
        &mut self,
        array: Array<'a>,
        mut level: Level<'a, 'p>,
        through: &[usize],
        spread: bool,
    ) -> Result<(), ExpandError> {
        level.picked.iter_mut().for_each(|picked| *picked = Picked::default());
        for &i in through {
            let mut rest = level.rest[i];
            let index = rest.first().and_then(|part| part.index());
            let element = index.and_then(|index| array.get(index as usize));
            if element.is_some() {
                let end = value_or_array(array.as_doc(), &mut rest);
                level.picked[i] = Picked { element, end, rest };
            }
        }
        self.mark(&level, through, |i| match level.rest[i].is_empty() {
            true => spread,
            false => level.picked[i].element.is_none(),
        });
        for value in array.iter() {
            self.element(value, array, &level, through, spread)?;
        }
        Ok(())
    }

    fn element(
        &mut self,
        value: Value<'a>,
        array: Array<'a>,
        level: &Level<'a, 'p>,
        through: &[usize],
        spread: bool,
    ) -> Result<(), ExpandError> {
        let mut level = level.clone();
        for &i in through {
            if level.rest[i].is_empty() {
                level.fixed[i] = Some(if spread { value } else { Value::Array(array) });
            }
        }
        self.expand(value.as_document().unwrap_or_else(Doc::empty), level)
    }

    /// Records that the array just reached makes the index multikey in these paths.
    fn mark(&mut self, level: &Level<'a, 'p>, through: &[usize], when: impl Fn(usize) -> bool) {
        for &i in through {
            if when(i) {
                self.arrays[i] |= 1 << self.component(level, i).min(63);
            }
        }
    }

    /// Returns the component that was followed last.
    fn component(&self, level: &Level<'a, 'p>, i: usize) -> usize {
        (self.paths[i].len() - level.rest[i].len()).saturating_sub(1)
    }

    fn parallel(&self, level: &Level<'a, 'p>, a: usize, b: usize) -> ExpandError {
        let name = |i: usize| self.paths[i].parts()[self.component(level, i)].name().to_string();
        ExpandError::ParallelArrays(name(a), name(b))
    }
}

/// Returns the value at the next components of the path, in the document or in the element that an
/// array index has selected, and whether that element was an array within the array.
fn next_value<'a, 'p>(
    doc: Doc<'a>,
    picked: Picked<'a, 'p>,
    rest: &mut &'p [Part],
) -> Result<(Option<Value<'a>>, bool), ExpandError> {
    let Some(element) = picked.element else {
        return Ok((value_or_array(doc, rest), false));
    };
    if let Some(part) = rest.first()
        && doc.contains(part.name())
    {
        return Err(ExpandError::AmbiguousField(part.name().to_string()));
    }
    *rest = picked.rest;
    Ok((picked.end, matches!(element, Value::Array(_))))
}

/// Follows the path through documents, to its end or to the first array.
fn value_or_array<'a>(mut doc: Doc<'a>, rest: &mut &[Part]) -> Option<Value<'a>> {
    loop {
        let (part, after) = rest.split_first()?;
        *rest = after;
        match doc.get(part.name())? {
            Value::Document(inner) if !after.is_empty() => doc = inner,
            value @ Value::Array(_) => return Some(value),
            value if after.is_empty() => return Some(value),
            _ => return None,
        }
    }
}

fn same_place(a: Array<'_>, b: Array<'_>) -> bool {
    std::ptr::eq(a.as_bytes().as_ptr(), b.as_bytes().as_ptr())
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpandError::ParallelArrays(a, b) => {
                write!(f, "cannot index parallel arrays [{a}] [{b}]")
            }
            ExpandError::AmbiguousField(name) => write!(
                f,
                "Ambiguous field name found in array (do not use numeric field names in \
                 embedded elements in an array), field: '{name}'"
            ),
        }
    }
}

impl std::error::Error for ExpandError {}

impl From<ExpandError> for Error {
    fn from(error: ExpandError) -> Self {
        let code = match error {
            ExpandError::ParallelArrays(..) => ErrorCode::CannotIndexParallelArrays,
            ExpandError::AmbiguousField(_) => ErrorCode::location(16746),
        };
        Error::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DocBuf, doc};

    fn keys(doc: &DocBuf, paths: &[&str]) -> (Vec<String>, Vec<u64>) {
        let paths: Vec<Path> = paths.iter().map(|path| Path::new(path)).collect();
        let mut keys = Vec::new();
        let arrays = expand_keys(doc.as_doc(), &paths, &mut |key| {
            let parts: Vec<String> = key
                .iter()
                .map(|value| match value {
                    None => "-".to_string(),
                    Some(Value::Int32(number)) => number.to_string(),
                    Some(other) => format!("{other:?}"),
                })
                .collect();
            keys.push(parts.join(" "));
        });
        (keys, arrays.unwrap().to_vec())
    }

    #[test]
    fn plain_and_missing() {
        let doc = doc! { "a": 1, "b": { "c": 2 } };
        assert_eq!(keys(&doc, &["a", "b.c", "x", "a.y"]), (vec!["1 2 - -".into()], vec![0; 4]));
    }

    #[test]
    fn one_array_expands_to_its_elements() {
        let doc = doc! { "a": [1, 2], "b": 3 };
        assert_eq!(keys(&doc, &["b", "a"]), (vec!["3 1".into(), "3 2".into()], vec![0, 1]));
        let doc = doc! { "a": [{ "b": 1, "c": [5, 6] }, { "b": 2 }, 7] };
        assert_eq!(
            keys(&doc, &["a.b", "a.c"]),
            (vec!["1 5".into(), "1 6".into(), "2 -".into(), "- -".into()], vec![1, 3])
        );
        assert_eq!(keys(&doc! { "a": [] }, &["a"]), (vec!["Undefined".into()], vec![1]));
        assert_eq!(keys(&doc! { "a": [] }, &["a.b"]), (vec!["-".into()], vec![1]));
        assert_eq!(keys(&doc! { "a": [[1, 2], 3] }, &["a"]).0.len(), 2);
    }

    #[test]
    fn by_index() {
        assert_eq!(keys(&doc! { "a": [1, 2] }, &["a.1"]).0, ["2", "2"]);
        assert_eq!(keys(&doc! { "a": [1, 2] }, &["a.1"]).1, [0]);
        assert_eq!(keys(&doc! { "a": [[1, 2]] }, &["a.0"]).0[0], "Array([Int32(1), Int32(2)])");
        assert_eq!(
            keys(&doc! { "a": [{ "b": [1, 2] }] }, &["a.0.b"]),
            (vec!["1".into(), "2".into()], vec![4])
        );
        assert_eq!(keys(&doc! { "a": { "1": 5 } }, &["a.1"]).0, ["5"]);
        let paths = [Path::new("a.0")];
        let ambiguous = doc! { "a": [{ "0": 1 }] };
        let error = expand_keys(ambiguous.as_doc(), &paths, &mut |_| {}).unwrap_err();
        assert_eq!(Error::from(error).code().number(), 16746);
    }

    #[test]
    fn parallel_arrays_are_refused() {
        let doc = doc! { "a": [1], "b": { "c": [2] } };
        let paths = [Path::new("a"), Path::new("b.c")];
        let error = expand_keys(doc.as_doc(), &paths, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "cannot index parallel arrays [c] [a]");
        assert_eq!(Error::from(error).code(), ErrorCode::CannotIndexParallelArrays);
    }
}
