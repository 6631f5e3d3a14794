//! Tests of the keywords on small documents.

use super::*;
use quire_document::{DocBuf, doc};

fn accepts(schema: DocBuf, doc: DocBuf) -> bool {
    Schema::parse(schema.as_doc(), &ParseContext::default())
        .unwrap()
        .matches(doc.as_doc(), &crate::context::Shared::default())
        .unwrap()
}

fn error(schema: DocBuf) -> i32 {
    Schema::parse(schema.as_doc(), &ParseContext::default()).unwrap_err().code().number()
}

fn property(rules: DocBuf) -> DocBuf {
    doc! { "properties": { "a": &rules } }
}

#[test]
fn types() {
    let int = || property(doc! { "bsonType": "int" });
    assert!(accepts(int(), doc! { "a": 1 }));
    assert!(accepts(int(), doc! {}));
    assert!(!accepts(int(), doc! { "a": 1.0 }));
    assert!(!accepts(int(), doc! { "a": [1] }));
    assert!(accepts(doc! { "type": "object" }, doc! {}));
    assert!(!accepts(doc! { "type": "array" }, doc! {}));
    assert_eq!(error(property(doc! { "type": "integer" })), 9);
    assert_eq!(error(property(doc! { "type": "int" })), 2);
    assert_eq!(error(property(doc! { "bsonType": "int", "type": "number" })), 9);
}

#[test]
fn numbers() {
    assert!(accepts(property(doc! { "multipleOf": 0.01 }), doc! { "a": 4.35 }));
    assert!(!accepts(property(doc! { "multipleOf": 3 }), doc! { "a": 1e20 }));
    assert!(accepts(property(doc! { "multipleOf": 4 }), doc! { "a": 1e20 }));
    assert!(!accepts(property(doc! { "maximum": 5, "exclusiveMaximum": true }), doc! { "a": 5 }));
    assert!(accepts(property(doc! { "maximum": 5 }), doc! { "a": "x" }));
    assert_eq!(error(doc! { "exclusiveMinimum": true }), 9);
    assert_eq!(error(doc! { "multipleOf": 0 }), 9);
}

#[test]
fn texts_and_arrays() {
    assert!(accepts(property(doc! { "maxLength": 2 }), doc! { "a": "éé" }));
    assert!(!accepts(property(doc! { "pattern": "^x" }), doc! { "a": "yx" }));
    assert!(!accepts(
        property(doc! { "uniqueItems": true }),
        doc! { "a": [{ "x": 1, "y": 2 }, { "y": 2, "x": 1 }] }
    ));
    assert!(!accepts(property(doc! { "items": { "type": "string" } }), doc! { "a": ["x", 1] }));
    let tuple = || property(doc! { "items": [{ "type": "string" }], "additionalItems": false });
    assert!(accepts(tuple(), doc! { "a": ["x"] }));
    assert!(!accepts(tuple(), doc! { "a": ["x", "y"] }));
    assert!(accepts(tuple(), doc! { "a": [] }));
}

#[test]
fn unique_items_of_every_size() {
    use super::compare::first_duplicate;
    use crate::context::Shared;
    use quire_document::Value::{Double, Int32};
    let shared = Shared::default();
    let values = [Int32(3), Int32(1), Double(1.0), Double(3.0)];
    assert!(matches!(first_duplicate(&values, &shared), Ok(Some(Double(1.0)))));
    let many: Vec<_> = (0..200_000).map(Int32).collect();
    assert!(first_duplicate(&many, &shared).unwrap().is_none());
}

#[test]
fn objects() {
    assert!(!accepts(doc! { "required": ["a", "b"] }, doc! { "a": 1 }));
    let closed = || doc! { "properties": { "a": {} }, "patternProperties": { "^n_": { "type": "number" } }, "additionalProperties": false };
    assert!(accepts(closed(), doc! { "a": 1, "n_x": 2 }));
    assert!(!accepts(closed(), doc! { "n_x": "2" }));
    assert!(!accepts(closed(), doc! { "b": 2 }));
    assert!(!accepts(doc! { "dependencies": { "a": ["b"] } }, doc! { "a": 1 }));
    assert!(accepts(doc! { "dependencies": { "a": ["b"] } }, doc! { "c": 1 }));
    assert!(!accepts(
        doc! { "properties": { "a.b": { "bsonType": "int" } } },
        doc! { "a": { "b": "x" } }
    ));
    assert_eq!(error(doc! { "required": ["a", "a"] }), 9);
    assert_eq!(error(doc! { "$ref": "x" }), 9);
    assert_eq!(error(doc! { "bogus": "x" }), 9);
}

#[test]
fn combinations() {
    let one = || doc! { "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] };
    assert!(accepts(one(), doc! { "a": 1 }));
    assert!(!accepts(one(), doc! { "a": 1, "b": 1 }));
    assert!(!accepts(doc! { "not": { "required": ["a"] } }, doc! { "a": 1 }));
    assert!(accepts(
        property(doc! { "enum": [1, { "x": 1, "y": 2 }] }),
        doc! { "a": { "y": 2, "x": 1.0 } }
    ));
    assert!(!accepts(property(doc! { "enum": [1] }), doc! { "a": [1] }));
    assert_eq!(error(doc! { "anyOf": [] }), 2);
    assert_eq!(error(doc! { "enum": [1, 1.0] }), 9);
}
