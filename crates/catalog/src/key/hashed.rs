//! The hashed index: one field has the hash of its value, and other fields may have values.
//!
//! See "Hashed Indexes" in MongoDB's manual. Equal numbers of different types have the same hash,
//! and so have numbers with the same integer part. Therefore each match is checked on its document.

use quire_document::path::{Lookup, Path};
use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_mql::expression::hashed_key;
use quire_mql::filter::{Comparison, Test};

use super::ordinary::{self, sparse_serves};
use super::{
    Arena, Bounds, GeneratedKeys, Intervals, KeyField, KeySpec, Kind, Part, Predicate, Tightness,
};
use crate::index_pattern::plugin_of;
use crate::{IndexSpec, debug_doc};

/// The name in a key pattern.
const NAME: &str = "hashed";

/// The registry row of this kind.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    doc: "Keys with the hash of one field, for equality; no field may be an array.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete: |_, _| Ok(()),
    check,
    fields,
    generate,
    is_touched: ordinary::is_touched,
    bounds: field_bounds,
    tracks_arrays: false,
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

fn check(spec: &IndexSpec) -> Result<()> {
    let is_hashed = |(_, direction): &(&str, Value<'_>)| direction.as_str() == Some(NAME);
    let hashed = spec.key.as_doc().fields().filter(is_hashed).count();
    if hashed > 1 {
        return Err(Error::location(
            31303,
            format!(
                "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {}",
                debug_doc(spec.key.as_doc())
            ),
        ));
    }
    if spec.unique {
        return Err(Error::location(
            16764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        ));
    }
    Ok(())
}

fn fields(spec: &IndexSpec) -> Vec<KeyField> {
    let mut fields = ordinary::fields(spec);
    for (field, (_, direction)) in fields.iter_mut().zip(spec.key.as_doc().fields()) {
        if direction.as_str() == Some(NAME) {
            field.part = Part::Hash;
        }
    }
    fields
}

fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    _: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    let mut found = false;
    for (field, path) in spec.fields.iter().zip(&spec.paths) {
        let value = scalar(path, doc)?;
        found |= value.is_some();
        keys.values.push(match field.part {
            Part::Hash => Some(Value::Int64(hash(spec, value))),
            _ => value,
        });
    }
    if spec.sparse && !found {
        keys.values.clear();
    }
    Ok(())
}

/// Returns the value at a path; `None` if it is missing. Fails with 16766 if the path leads to or
/// through an array.
fn scalar<'a>(path: &Path, doc: Doc<'a>) -> Result<Option<Value<'a>>> {
    let components = match path.lookup(doc) {
        Lookup::Missing => return Ok(None),
        Lookup::Value(Value::Array(_)) => path.len(),
        Lookup::Value(value) => return Ok(Some(value)),
        Lookup::Array(_, rest) => path.len() - rest.len(),
    };
    let prefix: Vec<&str> = path.as_str().split('.').take(components).collect();
    Err(Error::location(
        16766,
        format!(
            "Error: hashed indexes do not currently support array values. Found array at path: {}",
            prefix.join(".")
        ),
    ))
}

/// Returns the hash of a document's value. A missing value has the hash of null.
fn hash(spec: &KeySpec, value: Option<Value<'_>>) -> i64 {
    match value {
        Some(value) if spec.collation.is_some() => {
            hashed_key(Some(spec.key_value(value).as_value()))
        }
        value => hashed_key(value),
    }
}

fn field_bounds(spec: &KeySpec, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    if spec.fields.get(field).is_some_and(|field| field.part != Part::Hash) {
        return ordinary::field_bounds(spec, field, predicate);
    }
    let Predicate { test, negated, .. } = *predicate;
    if spec.sparse && !sparse_serves(test, negated) {
        return None;
    }
    let intervals = match (test, negated) {
        (Test::Exists, false) => Intervals::all(),
        (Test::Exists, true) => Intervals::point(hash(spec, None)),
        (Test::Compare(Comparison::Eq, operand), false) => points(spec, operand.value())?,
        (Test::Implied(Comparison::Eq, operand), false) if !operand.value().is_nullish() => {
            points(spec, operand.value())?
        }
        (Test::In(list), false) if list.regexes().is_empty() => {
            let all: Option<Vec<Intervals>> =
                list.values().map(|value| points(spec, value)).collect();
            Intervals::union_of(all?)
        }
        _ => return None,
    };
    Some((intervals, Tightness::InexactFetch))
}

/// Returns the hash of `value` as a point interval; `None` for an array, which may also equal an
/// element.
fn points(spec: &KeySpec, value: Value<'_>) -> Option<Intervals> {
    let point = |value| Intervals::point(hash(spec, Some(value)));
    match value {
        Value::Array(_) => None,
        Value::Null | Value::Undefined => Some(point(Value::Null).union(point(Value::Undefined))),
        value => Some(point(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    fn spec(pattern: quire_document::DocBuf) -> KeySpec {
        let spec = doc! { "key": &pattern, "name": "x" };
        KeySpec::new(&IndexSpec::parse(spec.as_doc(), false).unwrap())
    }

    #[test]
    fn keys_hold_the_hash() {
        let spec = spec(doc! { "a": 1, "b.c": "hashed" });
        let (doc, arena) = (doc! { "a": "x", "b": { "c": 1.5 } }, Arena::new());
        let keys = spec.generate(doc.as_doc(), &arena).unwrap();
        let one = hashed_key(Some(Value::Int32(1)));
        let key = keys.keys().next().unwrap();
        assert!(
            matches!(key, [Some(Value::String("x")), Some(Value::Int64(hash))] if *hash == one)
        );
        assert!(spec.gives_value(0, &Intervals::all()) && !spec.gives_value(1, &Intervals::all()));
        assert!(!spec.gives_order(1, &Intervals::all(), None));
    }

    #[test]
    fn arrays_are_refused() {
        let spec = spec(doc! { "a": 1, "b.c": "hashed" });
        for (doc, path) in [
            (doc! { "a": [1] }, "a"),
            (doc! { "b": [{ "c": 1 }] }, "b"),
            (doc! { "b": { "c": [] } }, "b.c"),
        ] {
            let error = spec.generate(doc.as_doc(), &Arena::new()).unwrap_err();
            assert_eq!(error.code().number(), 16766);
            assert!(error.message().ends_with(&format!("path: {path}")));
        }
    }
}
