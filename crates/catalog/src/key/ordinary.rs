//! The ordinary index: ascending and descending fields, one key for each element of an array.

use quire_document::path::{array_index, expand_keys};
use quire_document::{Doc, Value};
use quire_error::Result;
use quire_mql::filter::{Comparison, Test};

use super::bounds::{bounds, wants_null};
use super::kind::Differs;
use super::{
    Arena, Bounds, Field, GeneratedKeys, KeyField, KeySpec, Kind, Part, Predicate, Tightness,
};
use crate::index_pattern::{is_negative, is_ordinary};
use crate::{IndexSpec, MultikeyPaths};

/// The registry row of this kind.
pub(super) const KIND: Kind = Kind {
    name: "",
    doc: "Keys in ascending or descending order of each field; one key for each element of an array.",
    fits: is_ordinary,
    complete: |_, _| Ok(()),
    check: |_| Ok(()),
    fields,
    generate,
    is_touched,
    bounds: field_bounds,
    tracks_arrays: true,
    needs_hash: false,
    shows_bounds: true,
    collates: true,
    is_alone: false,
    searches: None,
    options: &[],
    same_keys: |_, _| true,
    state: |_| None,
    views: None,
};

/// Returns one field for each field of the key pattern.
pub(super) fn fields(spec: &IndexSpec) -> Vec<KeyField> {
    let field = |(path, direction): (&str, Value<'_>)| KeyField {
        path: path.to_owned(),
        descending: is_negative(direction),
        part: Part::Value,
    };
    spec.key.as_doc().fields().map(field).collect()
}

fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    _: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    if let [field] = spec.fields.as_slice()
        && !field.path.contains('.')
    {
        single(keys, spec.sparse, doc.get(&field.path));
        return Ok(());
    }
    let GeneratedKeys { values, multikey, .. } = keys;
    *multikey = expand_keys(doc, &spec.paths, &mut |key| {
        if !(spec.sparse && key.iter().all(Option::is_none)) {
            values.extend_from_slice(key);
        }
    })?;
    Ok(())
}

/// Adds the keys for a single field whose path has no dots. Does not recurse, and rarely allocates.
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

/// Returns true if the first component of a path differs.
pub(super) fn is_touched(spec: &KeySpec, differs: &Differs<'_>) -> bool {
    spec.paths.iter().any(|path| differs(path.first()))
}

pub(super) fn field_bounds(spec: &KeySpec, _: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    let Predicate { test, negated, path, multikey, .. } = *predicate;
    if spec.sparse && !sparse_serves(test, negated) {
        return None;
    }
    if multikey && !multikey_serves(test, negated) {
        return None;
    }
    if path.split('.').skip(1).any(|part| array_index(part).is_some()) && !position_serves(test) {
        return None;
    }
    let last = path.rsplit('.').next().unwrap_or_default();
    let facts = Field {
        sparse_single: spec.sparse && spec.fields.len() == 1,
        whole_arrays: array_index(last).is_some(),
        collator: spec.collator(),
    };
    let (intervals, tightness) = bounds(test, negated, facts)?;
    let by_document = multikey && path.contains('.') && compares_all_types(test);
    Some((intervals, if by_document { Tightness::InexactFetch } else { tightness }))
}

/// Returns true for a comparison that values of every type pass, and a missing field too. Below an
/// array the key does not tell whether a document without the field is among the elements, which
/// passes, or only values, which do not.
fn compares_all_types(test: &Test) -> bool {
    matches!(test, Test::Compare(_, operand)
        if matches!(operand.value(), Value::MinKey | Value::MaxKey))
}

/// Returns true if a sparse index can find all matches of a test, although it has no entries for
/// documents without its fields.
pub(super) fn sparse_serves(test: &Test, negated: bool) -> bool {
    match test {
        Test::Not(inner) => sparse_serves(inner, true),
        Test::Compare(Comparison::Eq, _) if negated => wants_null(test),
        _ if negated => false,
        Test::ElemMatchValue(tests) => tests.iter().all(|test| sparse_serves(test, false)),
        other => !wants_null(other),
    }
}

/// Returns true if an index with array paths can answer a test. The entries of an array do not tell
/// that none of its elements is null, nor how an expression sees the array as a whole.
pub(super) fn multikey_serves(test: &Test, negated: bool) -> bool {
    match test {
        Test::ElemMatchValue(_) => !negated,
        test if negated => !wants_null(test),
        other => !matches!(other, Test::Implied(..)),
    }
}

/// Returns true if an index can answer a test of a path with an array position. The entry has the
/// element at the position. It does not tell that the filter also sees null, because another
/// element is a document without a field of that name, nor how an expression sees the array.
fn position_serves(test: &Test) -> bool {
    match test {
        Test::Not(inner) => position_serves(inner),
        Test::Implied(..) => false,
        other => !wants_null(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IndexSpec, debug_value};
    use quire_document::{DocBuf, doc};

    fn keys(pattern: DocBuf, sparse: bool, doc: &DocBuf) -> (Vec<String>, Vec<u64>) {
        let spec = doc! { "key": &pattern, "name": "x", "sparse": sparse };
        let spec = IndexSpec::parse(spec.as_doc(), false).unwrap();
        let arena = Arena::new();
        let keys = KeySpec::new(&spec).generate(doc.as_doc(), &arena).unwrap();
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
        let doc = doc! { "a": [1], "b": [2] };
        let error = KeySpec::new(&spec).generate(doc.as_doc(), &Arena::new()).unwrap_err();
        assert_eq!(error.code().number(), 171);
        assert_eq!(error.message(), "cannot index parallel arrays [b] [a]");
    }
}
