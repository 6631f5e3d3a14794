//! One collection.

use quire_advisor::json_schema::{Form, json_schema};
use quire_advisor::profile::PathProfile;
use quire_advisor::{CollectionProfile, Limits};
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, ObjectId, Value, ValueKey, doc};
use std::collections::{BTreeMap, BTreeSet};

fn profile(documents: &[DocBuf]) -> CollectionProfile {
    let mut profile = CollectionProfile::new(Limits::default());
    documents.iter().for_each(|document| profile.add(document.as_doc()));
    profile
}

/// Calls `check` with the profile of a path.
fn with_path(profile: &CollectionProfile, wanted: &str, check: impl FnOnce(&PathProfile)) {
    let mut found = None;
    profile.for_each_path(&mut |path, values, _| {
        if path == wanted {
            found = Some(values);
        }
    });
    check(found.unwrap_or_else(|| panic!("no path {wanted}")));
}

/// What brute force says of a path: the number of values, of each type, and the distinct scalars.
#[derive(Default)]
struct Truth {
    present: u64,
    types: BTreeMap<&'static str, u64>,
    distinct: BTreeSet<ValueKey>,
}

fn look(value: Value<'_>, path: &str, truth: &mut BTreeMap<String, Truth>) {
    let at = truth.entry(path.to_owned()).or_default();
    at.present += 1;
    *at.types.entry(value.kind().alias()).or_default() += 1;
    match value {
        Value::Document(document) => look_at_fields(document, Some(path), truth),
        Value::Array(array) => {
            array.iter().for_each(|value| look(value, &format!("{path}[]"), truth));
        }
        scalar => {
            at.distinct.insert(ValueKey::new(scalar));
        }
    }
}

fn look_at_fields(document: Doc<'_>, path: Option<&str>, truth: &mut BTreeMap<String, Truth>) {
    for element in document.iter() {
        let name = match element.key() {
            other if other.is_empty() || other.contains('.') || other.starts_with('$') => {
                format!("['{other}']")
            }
            plain => plain.to_owned(),
        };
        let name = path.map_or(name.clone(), |path| format!("{path}.{name}"));
        look(element.value(), &name, truth);
    }
}

#[test]
fn counts_are_those_of_brute_force() {
    let mut generator = Generator::new(7);
    let documents: Vec<DocBuf> = (0..300).map(|_| generator.document()).collect();
    let mut truth = BTreeMap::new();
    documents.iter().for_each(|document| look_at_fields(document.as_doc(), None, &mut truth));
    let found = profile(&documents);
    assert_eq!((found.documents(), found.left_out()), (300, 0));
    let mut paths = 0;
    found.for_each_path(&mut |path, values, _| {
        paths += 1;
        let expected = truth.get(path).unwrap_or_else(|| panic!("{path} is in no document"));
        assert_eq!(values.present(), expected.present, "{path}");
        assert_eq!(values.types().collect::<BTreeMap<_, _>>(), expected.types, "{path}");
        let distinct = expected.distinct.len() as f64;
        assert!((values.distinct() as f64 - distinct).abs() <= distinct * 0.05 + 0.5, "{path}");
    });
    assert_eq!(paths, truth.len());
}

#[test]
fn lengths_and_their_growth() {
    let day = 86_400;
    let documents: Vec<DocBuf> = (0..200_u32)
        .map(|at| {
            let id = ObjectId::from_parts(1_700_000_000 + at * day, [0; 5], at);
            // The oldest has the most, a comment each second day.
            let comments: quire_document::ArrayBuf =
                (0..(200 - at) / 2).map(|number| number as i32).collect();
            doc! { "_id": id, "comments": &comments }
        })
        .collect();
    with_path(&profile(&documents), "comments", |comments| {
        let lengths = comments.lengths().unwrap();
        assert_eq!((lengths.at(0.0), lengths.at(1.0)), (0.0, 100.0));
        assert!((lengths.at(0.5) - 50.0).abs() <= 2.0, "{}", lengths.at(0.5));
        let growth = lengths.growth().unwrap();
        assert!((growth.per_day - 0.5).abs() < 0.01 && growth.correlation > 0.99, "{growth:?}");
    });
}

/// Names that are data would take a path each.
#[test]
fn very_many_field_names_are_one_path() {
    let documents: Vec<DocBuf> = (0..1000)
        .map(|at| {
            let mut by = DocBuf::new();
            by.append(&format!("user{at}"), &doc! { "n": at, "t": "x" });
            doc! { "by": &by }
        })
        .collect();
    let found = profile(&documents);
    with_path(&found, "by", |by| {
        let names = by.names().unwrap();
        assert!((950..=1050).contains(&names), "{names}");
        assert_eq!(by.fields().count(), 1);
    });
    with_path(&found, "by.*.n", |n| assert_eq!(n.present(), 1000));
    let mut few = CollectionProfile::new(Limits { paths_max: 5, ..Limits::default() });
    documents.iter().for_each(|document| few.add(document.as_doc()));
    assert!(few.left_out() > 0);
    let deep = (0..80).fold(doc! { "x": 1 }, |inner, _| doc! { "a": &inner });
    assert!(profile(&[deep]).left_out() > 0);
}

#[test]
fn a_schema_fits_its_documents_and_no_others() {
    let found = profile(&[
        doc! { "_id": 1, "name": "a", "tags": ["x"], "size": { "w": 1 } },
        doc! { "_id": 2, "name": "b", "tags": [1, "y"], "note": Value::Null },
    ]);
    let expected = doc! {
        "bsonType": "object",
        "required": ["_id", "name", "tags"],
        "properties": {
            "_id": { "bsonType": "int" },
            "name": { "bsonType": "string" },
            "note": { "bsonType": "null" },
            "size": {
                "bsonType": "object", "required": ["w"], "properties": { "w": { "bsonType": "int" } },
            },
            "tags": { "bsonType": "array", "items": { "bsonType": ["int", "string"] } },
        },
    };
    assert_eq!(json_schema(&found, Form::Validator), expected);
    let expanded = json_schema(&found, Form::Expanded);
    let name = expanded.get("properties").and_then(|all| all.as_document()?.get("name")).unwrap();
    let metadata = name.as_document().unwrap().get("x-metadata").unwrap();
    let metadata = metadata.as_document().unwrap().to_owned();
    assert_eq!(metadata, doc! { "hasDuplicates": false, "probability": 1.0, "count": 2_i64 });
}
