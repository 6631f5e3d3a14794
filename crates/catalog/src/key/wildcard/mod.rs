//! The wildcard index: one key for each path of a document. The key has the path and its value,
//! alone or between the values of regular fields.
//!
//! See "Wildcard Indexes" in MongoDB's manual. The keys have two fields for the wildcard term:
//! `$_path` and the value. Read in this order: this file, `tree.rs` (the paths that the index
//! includes), `generate.rs` (the keys of a document) and `view.rs` (the index as the index of one
//! path).

mod generate;
mod tree;
mod view;

use std::sync::Arc;

use quire_document::path::array_index;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use quire_mql::filter::{Comparison, Test};

use self::tree::Tree;
use super::bounds::bounds;
use super::kind::Differs;
use super::ordinary::{self, multikey_serves, sparse_serves};
use super::{
    Bounds, Field, Intervals, KeyField, KeySpec, Kind, KindOption, Part, Predicate, Tightness,
};
use crate::index_pattern::{cannot, is_wildcard_path, must_be, plugin_of};
use crate::{IndexSpec, debug_doc};

/// The name of the kind in messages.
const NAME: &str = "wildcard";
/// The option that selects the fields to index.
const PROJECTION: &str = "wildcardProjection";
/// The most bytes of this option, which is read several times during the creation.
const PROJECTION_BYTES_MAX: usize = 256 << 10;
/// The name of the path field.
const PATH: &str = "$_path";

/// The registry row of this kind.
pub(super) const KIND: Kind = Kind {
    name: NAME,
    doc: "Keys with the path and the value of every field, or of the fields that a projection selects.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete: |_, _| Ok(()),
    check,
    fields,
    generate: generate::generate,
    is_touched,
    bounds: field_bounds,
    tracks_arrays: true,
    needs_hash: false,
    shows_bounds: true,
    collates: true,
    is_alone: false,
    searches: None,
    options: &[KindOption { name: PROJECTION, check: check_projection }],
    same_keys: same_paths,
    state: |spec| Some(Arc::new(Wildcard::of(spec)?)),
    views: Some(&view::VIEWS),
};

/// The wildcard term of a key specification.
#[derive(Debug, Clone)]
pub(super) struct Wildcard {
    /// The position of the path field. The field of the values follows it.
    at: usize,
    /// The indexed paths.
    tree: Arc<Tree>,
    covered: Covered,
}

/// The paths that a view covers.
#[derive(Debug, Clone)]
enum Covered {
    /// All paths of the documents.
    All,
    /// Only these paths.
    Only(Vec<String>),
}

impl Wildcard {
    /// Returns the wildcard term of a specification, if it has one.
    fn of(spec: &IndexSpec) -> Option<Self> {
        let is_term = |(path, direction): (&str, Value<'_>)| {
            is_wildcard_path(path) && !matches!(direction, Value::String(_))
        };
        let at = spec.key.as_doc().fields().position(is_term)?;
        let (term, _) = spec.key.as_doc().fields().nth(at)?;
        let projection = projection(spec);
        Some(Wildcard { at, tree: Arc::new(Tree::new(term, projection)), covered: Covered::All })
    }

    /// Returns the wildcard term of a wildcard index.
    fn in_keys(keys: &KeySpec) -> Option<&Self> {
        keys.state.as_ref()?.downcast_ref()
    }
}

fn projection(spec: &IndexSpec) -> Option<Doc<'_>> {
    spec.kind_options.get(PROJECTION)?.as_document()
}

/// Checks the type of `wildcardProjection`, and that the key pattern has a wildcard term.
fn check_projection(spec: Doc<'_>, value: Value<'_>) -> Result<()> {
    let Value::Document(projection) = value else {
        return Err(must_be(PROJECTION, "a non-empty object", value));
    };
    let is_term = |(path, direction): (&str, Value<'_>)| {
        is_wildcard_path(path) && !matches!(direction, Value::String(_))
    };
    if !matches!(spec.get("key"), Some(Value::Document(key)) if key.fields().any(is_term)) {
        return Err(Error::bad_value(
            "The field 'wildcardProjection' is only allowed in an 'wildcard' index",
        ));
    }
    if projection.is_empty() {
        return Err(Error::failed_to_parse(
            "The 'wildcardProjection' field can't be an empty object",
        ));
    }
    Ok(())
}

/// Returns true if two specifications with the same key pattern index the same paths.
fn same_paths(a: &IndexSpec, b: &IndexSpec) -> bool {
    match (Wildcard::of(a), Wildcard::of(b)) {
        (Some(a), Some(b)) => a.tree == b.tree,
        _ => true,
    }
}

/// The suffix that marks the path of an array with arrays among its elements. No path contains this
/// byte.
const NESTED: &str = "\0";

/// Returns the marked path of an array with arrays among its elements.
fn nested_mark(path: &str) -> String {
    format!("{path}{NESTED}")
}

fn check(spec: &IndexSpec) -> Result<()> {
    let key = spec.key.as_doc();
    if key.fields().filter(|(path, _)| is_wildcard_path(path)).count() > 1 {
        return Err(Error::location(
            7246201,
            format!("A wildcard index can have one wildcard term only: {}", debug_doc(key)),
        ));
    }
    if let Some(projection) = projection(spec) {
        if !key.contains("$**") {
            return Err(Error::failed_to_parse(
                "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": ±1}",
            ));
        }
        if projection.len() > PROJECTION_BYTES_MAX {
            return Err(cannot("the projection of a wildcard index may have at most 256 KiB"));
        }
        tree::check(projection)?;
    }
    let unsupported = |option: &str| {
        Err(cannot(format!("Index type 'wildcard' does not support the {option} option")))
    };
    if spec.unique {
        return unsupported("unique");
    }
    if spec.sparse == Some(true) {
        return unsupported("sparse");
    }
    if spec.expire_after_seconds.is_some() {
        return Err(cannot("Index type 'wildcard' cannot be a TTL index"));
    }
    if spec.version == 1 {
        return Err(cannot(format!(
            "bad index key pattern {}: 'wildcard' index plugin is not allowed with index version v:1",
            debug_doc(key)
        )));
    }
    check_regular_fields(spec)
}

/// Checks that no path is both a regular field and covered by the wildcard term.
fn check_regular_fields(spec: &IndexSpec) -> Result<()> {
    let key = spec.key.as_doc();
    if key.count() == 1 {
        return Ok(());
    }
    if key.contains("$**") && projection(spec).is_none() {
        return Err(cannot(
            "A compound wildcard index on all fields must have a 'wildcardProjection'",
        ));
    }
    let Some(Wildcard { tree, .. }) = Wildcard::of(spec) else { return Ok(()) };
    let mut regular = key.fields().filter(|(path, _)| !is_wildcard_path(path));
    match regular.find(|(path, _)| tree.touches(path)) {
        None => Ok(()),
        Some((path, _)) if projection(spec).is_some() => Err(Error::location(
            7246209,
            format!("The 'wildcardProjection' must exclude the regular field '{path}'"),
        )),
        Some((path, _)) => Err(Error::location(
            7246204,
            format!("The regular field '{path}' overlaps with the wildcard field"),
        )),
    }
}

/// Returns a field for each field of the key pattern, and two for the wildcard term.
fn fields(spec: &IndexSpec) -> Vec<KeyField> {
    let fields = ordinary::fields(spec).into_iter().flat_map(|field| {
        let path = is_wildcard_path(&field.path).then(|| KeyField {
            path: PATH.to_owned(),
            part: Part::Path,
            ..field
        });
        [path, Some(field)].into_iter().flatten()
    });
    fields.collect()
}

/// Returns true if a change of these fields can change keys. That is always so, unless the index
/// includes only certain fields.
fn is_touched(spec: &KeySpec, differs: &Differs<'_>) -> bool {
    let Some(wildcard) = Wildcard::in_keys(spec) else { return true };
    let regular = spec.fields.iter().zip(&spec.paths).enumerate();
    let mut regular = regular.filter(|(at, _)| *at != wildcard.at && *at != wildcard.at + 1);
    let below = match &*wildcard.tree {
        Tree::Only(fields) => fields.keys().any(|name| differs(name)),
        _ => true,
    };
    below || regular.any(|(_, (_, path))| differs(path.first()))
}

fn field_bounds(spec: &KeySpec, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    let wildcard = Wildcard::in_keys(spec)?;
    if field != wildcard.at + 1 {
        return ordinary::field_bounds(spec, field, predicate);
    }
    let Covered::Only(paths) = &wildcard.covered else { return None };
    let Predicate { test, negated, path, multikey, .. } = *predicate;
    // A document without the path has no key.
    if !sparse_serves(test, negated) || compares_whole(test) {
        return None;
    }
    if multikey && !multikey_serves(test, negated) {
        return None;
    }
    let last = path.rsplit('.').next().unwrap_or_default();
    let facts = Field {
        sparse_single: true,
        whole_arrays: array_index(last).is_some(),
        collator: spec.collator(),
    };
    let (intervals, tightness) = bounds(test, negated, facts)?;
    if view::hold_documents(&intervals) && !intervals.is_all() {
        // The view of the regular fields: any key of a document may be that of a match.
        return Some((Intervals::all(), Tightness::InexactFetch));
    }
    Some((intervals, if paths.len() > 1 { Tightness::InexactFetch } else { tightness }))
}

/// Returns true if a test compares with a document or an array that is not empty. The index has a
/// key for each value inside, but none for the whole.
fn compares_whole(test: &Test) -> bool {
    let whole = |value: Value<'_>| match value {
        Value::Document(doc) => !doc.is_empty(),
        Value::Array(array) => !array.is_empty(),
        _ => false,
    };
    // Of all documents only the empty one is at most empty, and it has a key.
    let finds_others = |comparison: Comparison, value: Value<'_>| match value {
        Value::Document(_) => !matches!(comparison, Comparison::Eq | Comparison::Lte),
        Value::Array(_) => comparison != Comparison::Eq,
        _ => false,
    };
    match test {
        Test::Compare(comparison, operand) | Test::Implied(comparison, operand) => {
            let value = operand.value();
            whole(value) || finds_others(*comparison, value)
        }
        Test::In(list) => list.values().any(whole),
        Test::Not(inner) => compares_whole(inner),
        Test::ElemMatchValue(tests) | Test::All(tests) => tests.iter().any(compares_whole),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Arena, GeneratedKeys};
    use crate::{Facts, FactsBuf, Multikey, debug_value};
    use quire_document::{DocBuf, doc};

    fn keys_of(spec: &DocBuf) -> KeySpec {
        KeySpec::new(&IndexSpec::parse(spec.as_doc(), false).unwrap())
    }

    fn texts(keys: &GeneratedKeys<'_>) -> Vec<String> {
        let text = |key: &[Option<Value<'_>>]| {
            let shown = key.iter().map(|value| value.map_or("-".into(), debug_value));
            shown.collect::<Vec<_>>().join(" ")
        };
        keys.keys().map(text).collect()
    }

    #[test]
    fn each_path_has_keys() {
        let spec = keys_of(&doc! { "key": { "$**": 1 }, "name": "w" });
        let doc = doc! {
            "_id": 1, "a": { "b": 2, "c": {} }, "d": [3, { "e": 4 }, [5]], "f": [], "g.h": 6,
        };
        let arena = Arena::new();
        let keys = spec.generate(doc.as_doc(), &arena).unwrap();
        let expected =
            ["\"a.b\" 2", "\"a.c\" {}", "\"d\" 3", "\"d.e\" 4", "\"d\" [ 5 ]", "\"f\" undefined"];
        assert_eq!(texts(&keys), expected);
        assert_eq!(keys.arrays.iter().copied().collect::<Vec<_>>(), ["d", "d\0", "f"]);
    }

    #[test]
    fn an_empty_name_is_a_component_of_its_own() {
        // The path of a field below an empty name begins with a dot: a query of ".a" must find it.
        let spec = keys_of(&doc! { "key": { "$**": 1 }, "name": "w" });
        let doc = doc! { "": { "a": 1, "": [2, { "": 3 }] }, "a": { "": 4 } };
        let arena = Arena::new();
        let keys = spec.generate(doc.as_doc(), &arena).unwrap();
        let expected = ["\".a\" 1", "\".\" 2", "\"..\" 3", "\"a.\" 4"];
        assert_eq!(texts(&keys), expected);
        assert_eq!(keys.arrays.iter().copied().collect::<Vec<_>>(), ["."]);
    }

    #[test]
    fn the_paths_of_one_document_are_bounded() {
        // 1,000 values below a name of 100,000 bytes would need 100 MB for their paths.
        let spec = keys_of(&doc! { "key": { "$**": 1 }, "name": "w" });
        let name = "n".repeat(100_000);
        let below = |values: i32| {
            let fields = DocBuf::build(|out| {
                (0..values).for_each(|at| {
                    out.append(&at.to_string(), at);
                });
            });
            DocBuf::build(|out| {
                out.append(&name, &fields);
            })
        };
        let arena = Arena::new();
        let (few, many) = (below(600), below(1000));
        assert_eq!(spec.generate(few.as_doc(), &arena).unwrap().keys().count(), 600);
        let refused = spec.generate(many.as_doc(), &arena).unwrap_err();
        assert_eq!(refused.code(), quire_error::ErrorCode::CannotBuildIndexKeys);
        // The elements of an array share one copy of the path.
        let array = DocBuf::build(|out| {
            let mut elements = out.array(&name);
            (0..1000).for_each(|at| {
                elements.push(at);
            });
        });
        assert_eq!(spec.generate(array.as_doc(), &arena).unwrap().keys().count(), 1000);
    }

    #[test]
    fn regular_fields_stand_in_each_key_and_hold_no_arrays() {
        let spec = doc! {
            "key": { "k": 1, "$**": 1 }, "name": "w", "wildcardProjection": { "a": 1 },
        };
        let (spec, arena) = (keys_of(&spec), Arena::new());
        let keys = |doc: &DocBuf| Ok::<_, Error>(texts(&spec.generate(doc.as_doc(), &arena)?));
        assert_eq!(keys(&doc! { "k": 7, "a": [1, 2] }).unwrap(), ["7 \"a\" 1", "7 \"a\" 2"]);
        assert_eq!(keys(&doc! { "b": 1 }).unwrap(), ["- MinKey MinKey"]);
        assert_eq!(keys(&doc! { "k": [1] }).unwrap_err().code().number(), 7246301);
    }

    #[test]
    fn a_view_knows_the_arrays_of_its_path() {
        let spec = keys_of(&doc! { "key": { "$**": 1 }, "name": "w" });
        let facts = Multikey::new(2);
        let view = |path: &str| view::view_of_path(&spec, path, &facts);
        let covered = |path: &str| match Wildcard::in_keys(&view(path).unwrap().keys) {
            Some(Wildcard { covered: Covered::Only(paths), .. }) => paths.clone(),
            _ => Vec::new(),
        };
        assert_eq!(covered("a.0.b"), ["a.0.b"]);
        assert!(view("_id").is_none());
        let mut grown = FactsBuf { paths: vec![0, 0], ..FactsBuf::default() };
        let arrays = ["a", "n", "n\0"].into_iter().collect();
        grown.merge(&Facts { paths: &[0, 1], long_keys: false, arrays: &arrays });
        facts.grow(&grown);
        assert_eq!(covered("a.0.b"), ["a.b", "a.0.b"]);
        assert_eq!(view("a.0.b").unwrap().multikey.0, [0, 1]);
        assert_eq!(view("b").unwrap().multikey.0, [0, 0]);
        assert!(view("n.0").is_none() && view("n.x").is_some());
    }

    #[test]
    fn specifications_are_checked() {
        let code = |spec: DocBuf| {
            IndexSpec::parse(spec.as_doc(), false).map_or_else(|error| error.code().number(), |_| 0)
        };

        assert_eq!(code(doc! { "key": { "$**": 1 }, "name": "w", "unique": true }), 67);
        assert_eq!(code(doc! { "key": { "$**": 1, "a.$**": 1 }, "name": "w" }), 7246201);
        assert_eq!(code(doc! { "key": { "a": 1, "$**": 1 }, "name": "w" }), 67);
        assert_eq!(code(doc! { "key": { "a.b": 1, "a.$**": 1 }, "name": "w" }), 7246204);
        assert_eq!(code(doc! { "key": { "a": "hashed", "b.$**": 1 }, "name": "w" }), 67);
        let overlap =
            doc! { "key": { "a": 1, "$**": 1 }, "name": "w", "wildcardProjection": { "b": 0 } };
        assert_eq!(code(overlap), 7246209);
        let projected = |fields: usize| {
            let mut projection = DocBuf::new();
            for at in 0..fields {
                projection.append(&format!("f{at}"), 1);
            }
            doc! { "key": { "$**": 1 }, "name": "w", "wildcardProjection": projection.as_doc() }
        };
        assert_eq!(code(projected(10_000)), 0);
        assert_eq!(code(projected(30_000)), 67);
    }
}
