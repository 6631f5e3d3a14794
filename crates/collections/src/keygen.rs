//! From a document to the values of its keys in an index: which documents have any, and a short
//! way for an index of one plain field.

use bumpalo::Bump;
use quire_catalog::{Index, MultikeyPaths};
use quire_document::path::{KeyArrays, expand_keys};
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_mql::{EvalContext, Shared};
use smallvec::smallvec;

/// The keys of one document in one index: `fields` values each, in document order, duplicates
/// not removed yet.
#[derive(Debug, Default)]
pub struct GeneratedKeys<'a> {
    /// Values of all keys, one key after the other; a missing field (`None`) orders as null.
    pub values: Vec<Option<Value<'a>>>,
    /// Values in each key.
    pub fields: usize,
    /// For each field which path components were arrays.
    pub multikey: KeyArrays,
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
        let GeneratedKeys { values, multikey, .. } = &mut keys;
        *multikey = expand_keys(doc, &index.paths, &mut |key| {
            if !(index.sparse && key.iter().all(Option::is_none)) {
                values.extend_from_slice(key);
            }
        })?;
        Ok(keys)
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
