//! From a document to the values of its index keys, arrays expanded as mongod expands them: one
//! key for each element, at most one array among the fields of a key, positional components
//! (`a.0.b`) looked up in arrays, a missing field as null and an empty array as undefined.

use bumpalo::Bump;
use quire_catalog::{Index, MultikeyPaths};
use quire_document::{Array, Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::{EvalContext, Shared};
use smallvec::{SmallVec, smallvec};

/// The keys of one document in one index: `fields` values each, in document order, duplicates
/// not removed yet.
#[derive(Debug, Default)]
pub struct GeneratedKeys<'a> {
    /// Values of all keys, one key after the other; a missing field (`None`) orders as null.
    pub values: Vec<Option<Value<'a>>>,
    /// Values in each key.
    pub fields: usize,
    /// For each field which path components were arrays.
    pub multikey: SmallVec<[u64; 4]>,
}

impl<'a> GeneratedKeys<'a> {
    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &[Option<Value<'a>>]> {
        self.values.chunks_exact(self.fields.max(1))
    }
}

/// Generates keys for one index.
pub struct KeyGenerator;

impl KeyGenerator {
    /// The keys of `doc` in `index`, or 171 CannotIndexParallelArrays. A sparse index has none
    /// for a document without any of the fields, a partial one none for a document that its filter
    /// does not pass.
    pub fn generate<'a>(index: &Index, doc: Doc<'a>) -> Result<GeneratedKeys<'a>> {
        let fields = index.fields.len();
        let mut keys = GeneratedKeys { values: Vec::new(), fields, multikey: smallvec![0; fields] };
        if let Some(partial) = &index.partial {
            let (arena, shared) = (Bump::new(), Shared::default());
            if !partial.matches(doc, &EvalContext::new(&arena, doc, &shared))? {
                return Ok(keys);
            }
        }
        if let [field] = index.fields.as_slice()
            && !field.path.contains('.')
        {
            single(&mut keys, index.sparse, doc.get(&field.path));
            return Ok(keys);
        }
        let frame = Frame {
            rest: index.fields.iter().map(|field| Some(field.path.as_str())).collect(),
            consumed: smallvec![0; fields],
            fixed: smallvec![None; fields],
            missing: 0,
        };
        let mut expansion = Expansion { keys, sparse: index.sparse };
        expansion.expand(frame, doc, &smallvec![None; fields])?;
        Ok(expansion.keys)
    }
}

/// One field without dots: no recursion, hardly an allocation.
fn single<'a>(keys: &mut GeneratedKeys<'a>, sparse: bool, value: Option<Value<'a>>) {
    match value {
        None if sparse => {}
        None => keys.values.push(None),
        Some(Value::Array(array)) => {
            if let Some(bits) = keys.multikey.first_mut() {
                *bits |= MultikeyPaths::bit(0);
            }
            keys.values.extend(array.iter().map(Some));
            if keys.values.is_empty() {
                keys.values.push(Some(Value::Undefined));
            }
        }
        Some(value) => keys.values.push(Some(value)),
    }
}

/// How far the paths of a key have been followed.
#[derive(Clone)]
struct Frame<'p, 'a> {
    /// What is left of each path; `None` once its value is fixed.
    rest: SmallVec<[Option<&'p str>; 4]>,
    /// Components followed so far.
    consumed: SmallVec<[usize; 4]>,
    fixed: SmallVec<[Option<Value<'a>>; 4]>,
    missing: usize,
}

/// A path component that names an array element by its position, already followed.
#[derive(Clone, Copy)]
struct Positional<'p, 'a> {
    element: Value<'a>,
    found: Found<'p, 'a>,
}

type Positions<'p, 'a> = SmallVec<[Option<Positional<'p, 'a>>; 4]>;

/// Where following a path ended: at its end, or at an array on the way.
#[derive(Clone, Copy)]
struct Found<'p, 'a> {
    value: Option<Value<'a>>,
    rest: Option<&'p str>,
    consumed: usize,
    name: &'p str,
}

struct Expansion<'a> {
    keys: GeneratedKeys<'a>,
    sparse: bool,
}

impl<'a> Expansion<'a> {
    fn expand<'p>(
        &mut self,
        mut frame: Frame<'p, 'a>,
        doc: Doc<'a>,
        positions: &Positions<'p, 'a>,
    ) -> Result<()> {
        let mut array: Option<(Array<'a>, &'p str)> = None;
        let mut arrays: SmallVec<[usize; 4]> = SmallVec::new();
        let mut expand_unembedded = true;
        for at in 0..frame.rest.len() {
            let Some(path) = frame.rest[at] else { continue };
            let (found, nested) = next_element(doc, path, frame.consumed[at], &positions[at])?;
            frame.rest[at] = found.rest;
            frame.consumed[at] = found.consumed;
            match found.value {
                None => {
                    frame.fixed[at] = None;
                    frame.rest[at] = None;
                    frame.missing += 1;
                }
                Some(Value::Array(met)) => {
                    arrays.push(at);
                    if nested && found.rest.is_none() {
                        expand_unembedded = false;
                    }
                    match array {
                        None => array = Some((met, found.name)),
                        Some((first, name)) if !same(first, met) => {
                            return Err(parallel(found.name, name));
                        }
                        Some(_) => {}
                    }
                }
                Some(value) => {
                    frame.fixed[at] = Some(value);
                    frame.rest[at] = None;
                }
            }
        }
        match array {
            None => {
                if !(self.sparse && frame.missing == frame.fixed.len()) {
                    self.keys.values.extend(frame.fixed);
                }
                Ok(())
            }
            Some((array, _)) => self.expand_array(&frame, array, &arrays, expand_unembedded),
        }
    }

    fn expand_array<'p>(
        &mut self,
        frame: &Frame<'p, 'a>,
        array: Array<'a>,
        arrays: &[usize],
        expand_unembedded: bool,
    ) -> Result<()> {
        let none: Positions<'p, 'a> = smallvec![None; frame.rest.len()];
        if array.is_empty() {
            arrays.iter().for_each(|at| self.mark(frame, *at));
            let entry = Value::Undefined;
            return self.expand_element(frame, array, arrays, true, entry, &none);
        }
        let mut positions = none;
        for at in 0..frame.rest.len() {
            let is_array = arrays.contains(&at);
            let Some(path) = frame.rest[at] else {
                if is_array && expand_unembedded {
                    self.mark(frame, at);
                }
                continue;
            };
            if !is_array {
                continue;
            }
            let part = path.split_once('.').map_or(path, |(part, _)| part);
            match array.as_doc().get(part) {
                None => self.mark(frame, at),
                Some(element) => {
                    let found = follow(array.as_doc(), path, frame.consumed[at]);
                    positions[at] = Some(Positional { element, found });
                }
            }
        }
        for element in array.iter() {
            self.expand_element(frame, array, arrays, expand_unembedded, element, &positions)?;
        }
        Ok(())
    }

    fn expand_element<'p>(
        &mut self,
        frame: &Frame<'p, 'a>,
        array: Array<'a>,
        arrays: &[usize],
        expand_unembedded: bool,
        element: Value<'a>,
        positions: &Positions<'p, 'a>,
    ) -> Result<()> {
        let mut next = frame.clone();
        for at in arrays {
            if frame.rest[*at].is_none() {
                next.fixed[*at] =
                    Some(if expand_unembedded { element } else { Value::Array(array) });
            }
        }
        let doc = element.as_document().unwrap_or(Doc::empty());
        self.expand(next, doc, positions)
    }

    fn mark(&mut self, frame: &Frame<'_, '_>, at: usize) {
        let component = frame.consumed[at].saturating_sub(1);
        self.keys.multikey[at] |= MultikeyPaths::bit(component);
    }
}

/// The next value on a path, and whether it is an array that stands directly in an array.
fn next_element<'p, 'a>(
    doc: Doc<'a>,
    path: &'p str,
    consumed: usize,
    position: &Option<Positional<'p, 'a>>,
) -> Result<(Found<'p, 'a>, bool)> {
    let part = path.split_once('.').map_or(path, |(part, _)| part);
    let in_doc = doc.contains(part);
    match position {
        Some(_) if in_doc => Err(Error::location(
            16746,
            format!(
                "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '{part}'"
            ),
        )),
        Some(position) => Ok((position.found, matches!(position.element, Value::Array(_)))),
        None => Ok((follow(doc, path, consumed), false)),
    }
}

/// Follows a path through documents until it ends, meets an array, or leads nowhere.
fn follow<'p, 'a>(mut doc: Doc<'a>, mut path: &'p str, mut consumed: usize) -> Found<'p, 'a> {
    loop {
        let (name, rest) = match path.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (path, None),
        };
        consumed += 1;
        match (doc.get(name), rest) {
            (Some(Value::Document(inner)), Some(more)) => {
                doc = inner;
                path = more;
            }
            (Some(value @ Value::Array(_)), rest) => {
                return Found { value: Some(value), rest, consumed, name };
            }
            (value @ Some(_), None) => return Found { value, rest: None, consumed, name },
            _ => return Found { value: None, rest: None, consumed, name },
        }
    }
}

/// Whether two views are of the same array in the same document.
fn same(left: Array<'_>, right: Array<'_>) -> bool {
    std::ptr::eq(left.as_bytes(), right.as_bytes())
}

fn parallel(one: &str, other: &str) -> Error {
    Error::new(
        ErrorCode::CannotIndexParallelArrays,
        format!("cannot index parallel arrays [{one}] [{other}]"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_catalog::{IndexId, IndexSpec, IndexState, debug_value};
    use quire_document::{DocBuf, doc};

    fn keys(pattern: DocBuf, sparse: bool, doc: &DocBuf) -> (Vec<String>, Vec<u64>) {
        let spec = doc! { "key": &pattern, "name": "x", "sparse": sparse };
        let spec = IndexSpec::parse(spec.as_doc(), false).unwrap();
        let index = Index::new(IndexId(1), spec, IndexState::Ready);
        let keys = KeyGenerator::generate(&index, doc.as_doc()).unwrap();
        let text = |key: &[Option<Value<'_>>]| {
            let shown = key.iter().map(|value| value.map_or("-".into(), debug_value));
            shown.collect::<Vec<_>>().join(",")
        };
        (keys.keys().map(text).collect(), keys.multikey.to_vec())
    }

    #[test]
    fn scalars_missing_and_sparse() {
        assert_eq!(keys(doc! { "a": 1 }, false, &doc! { "a": 5 }), (vec!["5".into()], vec![0]));
        assert_eq!(keys(doc! { "a": 1 }, false, &doc! {}).0, ["-"]);
        assert!(keys(doc! { "a": 1 }, true, &doc! {}).0.is_empty());
        assert_eq!(keys(doc! { "a": 1, "b.c": 1 }, true, &doc! { "b": { "c": 2 } }).0, ["-,2"]);
        assert!(keys(doc! { "a": 1, "b.c": 1 }, true, &doc! { "b": 1 }).0.is_empty());
    }

    #[test]
    fn arrays_expand() {
        let two = doc! { "a": [5, 6], "b": 1 };
        assert_eq!(keys(doc! { "a": 1 }, false, &two), (vec!["5".into(), "6".into()], vec![1]));
        assert_eq!(
            keys(doc! { "b": 1, "a": 1 }, false, &two),
            (vec!["1,5".into(), "1,6".into()], vec![0, 1])
        );
        assert_eq!(
            keys(doc! { "a": 1 }, false, &doc! { "a": [] }),
            (vec!["undefined".into()], vec![1])
        );
        assert_eq!(keys(doc! { "a.b": 1 }, false, &doc! { "a": [] }), (vec!["-".into()], vec![1]));
        assert_eq!(keys(doc! { "a": 1 }, false, &doc! { "a": [[1, 2], 3] }).0, ["[ 1, 2 ]", "3"]);
        let deep = doc! { "a": [{ "b": [1, 2], "c": 7 }, { "b": 3 }, 4] };
        assert_eq!(
            keys(doc! { "a.b": 1, "a.c": 1 }, false, &deep),
            (vec!["1,7".into(), "2,7".into(), "3,-".into(), "-,-".into()], vec![3, 1])
        );
    }

    #[test]
    fn positional_components() {
        let doc = doc! { "a": [{ "b": 5 }, { "b": 6 }] };
        assert_eq!(keys(doc! { "a.0.b": 1 }, false, &doc), (vec!["5".into(), "5".into()], vec![0]));
        let nested = keys(doc! { "a.1": 1 }, false, &doc! { "a": [1, [2, 3]] }).0;
        assert!(nested.iter().all(|key| key == "[ 2, 3 ]") && !nested.is_empty());
    }

    #[test]
    fn parallel_arrays_are_refused() {
        let spec = doc! { "key": { "a": 1, "b": 1 }, "name": "x" };
        let spec = IndexSpec::parse(spec.as_doc(), false).unwrap();
        let index = Index::new(IndexId(1), spec, IndexState::Ready);
        let doc = doc! { "a": [1], "b": [2] };
        let error = KeyGenerator::generate(&index, doc.as_doc()).unwrap_err();
        assert_eq!(error.code().number(), 171);
        assert_eq!(error.message(), "cannot index parallel arrays [b] [a]");
    }
}
