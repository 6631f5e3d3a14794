//! Tests of projections on small documents, of the order of fields, and of refused projections.

use super::*;
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::{Doc, DocBuf, Value, doc};

fn with_context<T>(run: impl FnOnce(&EvalContext<'_>) -> T) -> T {
    let (arena, shared) = (Bump::new(), Shared::default());
    run(&EvalContext::new(&arena, Doc::empty(), &shared))
}

fn find(projection: DocBuf, doc: DocBuf) -> DocBuf {
    find_where(DocBuf::new(), projection, doc)
}

fn find_where(filter: DocBuf, projection: DocBuf, doc: DocBuf) -> DocBuf {
    let context = ParseContext::default();
    let projection =
        Projection::parse_find(projection.as_doc(), Some(filter.as_doc()), &context).unwrap();
    with_context(|cx| projection.apply_to(doc.as_doc(), cx).unwrap())
}

fn add_fields(spec: DocBuf, doc: DocBuf) -> DocBuf {
    let projection =
        Projection::parse_add_fields("$set", Value::from(&spec), &ParseContext::default()).unwrap();
    with_context(|cx| projection.apply_to(doc.as_doc(), cx).unwrap())
}

fn error(projection: DocBuf) -> i32 {
    let context = ParseContext::default();
    Projection::parse_find(projection.as_doc(), None, &context).unwrap_err().code().number()
}

fn project_error(projection: DocBuf) -> i32 {
    let context = ParseContext::default();
    Projection::parse_project(Value::from(&projection), &context).unwrap_err().code().number()
}

#[test]
fn inclusion_and_exclusion() {
    let doc = || doc! { "_id": 1, "a": 2, "b": { "c": 3, "d": 4 }, "e": [{ "c": 1, "d": 2 }, 5, [{ "c": 6 }]] };
    assert_eq!(
        find(doc! { "b": 1, "a": 1 }, doc()),
        doc! { "_id": 1, "a": 2, "b": { "c": 3, "d": 4 } }
    );
    assert_eq!(find(doc! { "_id": 0, "b.c": 1 }, doc()), doc! { "b": { "c": 3 } });
    assert_eq!(
        find(doc! { "e": { "c": 1 } }, doc()),
        doc! { "_id": 1, "e": [{ "c": 1 }, [{ "c": 6 }]] }
    );
    assert_eq!(
        find(doc! { "e.c": 0, "b": 0 }, doc()),
        doc! { "_id": 1, "a": 2, "e": [{ "d": 2 }, 5, [{}]] }
    );
    assert_eq!(find(doc! { "a.x": 1 }, doc()), doc! { "_id": 1 });
    assert_eq!(find(doc! { "_id": 1 }, doc()), doc! { "_id": 1 });
    assert_eq!(find(doc! { "_id": 1, "b": 0, "e": 0 }, doc()), doc! { "_id": 1, "a": 2 });
    assert_eq!(find(doc! {}, doc()), doc());
    assert_eq!(find(doc! { "_id": 0, "a": 0 }, doc! { "_id": 1, "a": 1 }), doc! {});
}

#[test]
fn computed_fields_follow() {
    let doc = || doc! { "_id": 1, "a": 2, "b": 3, "c": [1, { "x": 1 }] };
    assert_eq!(find(doc! { "x": "$a", "b": 1 }, doc()), doc! { "_id": 1, "b": 3, "x": 2 });
    assert_eq!(find(doc! { "b": "$a", "a": "$b" }, doc()), doc! { "_id": 1, "b": 2, "a": 3 });
    assert_eq!(find(doc! { "a.n": "$b" }, doc()), doc! { "_id": 1, "a": { "n": 3 } });
    assert_eq!(find(doc! { "z.n": "$b" }, doc()), doc! { "_id": 1, "z": { "n": 3 } });
    assert_eq!(find(doc! { "c.n": "$b" }, doc()), doc! { "_id": 1, "c": [{ "n": 3 }, { "n": 3 }] });
    assert_eq!(find(doc! { "a": 1, "r": "$$REMOVE" }, doc()), doc! { "_id": 1, "a": 2 });
    assert_eq!(
        find(doc! { "x": "text", "n": Value::Null }, doc()),
        doc! { "_id": 1, "x": "text", "n": Value::Null }
    );
}

#[test]
fn slices() {
    let doc = || doc! { "_id": 1, "l": [1, 2, 3, 4], "m": [{ "t": [1, 2] }, 5], "x": 9 };
    assert_eq!(
        find(doc! { "l": { "$slice": 2 }, "m": 0 }, doc()),
        doc! { "_id": 1, "l": [1, 2], "x": 9 }
    );
    assert_eq!(
        find(doc! { "l": { "$slice": -1 }, "x": 1 }, doc()),
        doc! { "_id": 1, "l": [4], "x": 9 }
    );
    assert_eq!(
        find(doc! { "l": { "$slice": [-3, 2] }, "_id": 1 }, doc()),
        doc! { "_id": 1, "l": [2, 3] }
    );
    assert_eq!(
        find(doc! { "m.t": { "$slice": 1 }, "l": 0 }, doc()),
        doc! { "_id": 1, "m": [{ "t": [1] }, 5], "x": 9 }
    );
    assert_eq!(
        find(doc! { "l": { "$slice": f64::NAN }, "m": 0 }, doc()),
        doc! { "_id": 1, "l": [], "x": 9 }
    );
}

#[test]
fn elements_by_condition() {
    let doc = || doc! { "_id": 1, "z": 0, "arr": [1, 2, 3], "x": 5 };
    let condition = || doc! { "$elemMatch": { "$gte": 2 } };
    assert_eq!(find(doc! { "arr": &condition() }, doc()), doc! { "_id": 1, "arr": [2] });
    assert_eq!(
        find(doc! { "arr": &condition(), "x": 1, "z": 1 }, doc()),
        doc! { "_id": 1, "z": 0, "x": 5, "arr": [2] }
    );
    assert_eq!(
        find(doc! { "arr": &condition(), "z": 0 }, doc()),
        doc! { "_id": 1, "arr": [2], "x": 5 }
    );
    assert_eq!(find(doc! { "arr": { "$elemMatch": { "$gt": 9 } } }, doc()), doc! { "_id": 1 });
    assert_eq!(find(doc! { "x": &condition() }, doc()), doc! { "_id": 1 });
    assert_eq!(error(doc! { "a": { "$elemMatch": 1 } }), 31274);
    assert_eq!(error(doc! { "a.b": { "$elemMatch": {} } }), 31275);
    assert_eq!(error(doc! { "a": { "$elemMatch": { "$jsonSchema": {} } } }), 224);
    assert_eq!(error(doc! { "a": { "$elemMatch": { "$expr": true } } }), 2);
    assert_eq!(error(doc! { "a": { "$elemMatch": { "p": { "$near": [0, 0] } } } }), 5626500);
}

#[test]
fn the_matched_element() {
    let doc = || doc! { "_id": 1, "l": [{ "k": 1, "v": 5 }, { "k": 2, "v": 6 }], "s": "t", "p": ["a", "b"] };
    let filter = || doc! { "l.k": 2 };
    assert_eq!(
        find_where(filter(), doc! { "l.$": 1 }, doc()),
        doc! { "_id": 1, "l": [{ "k": 2, "v": 6 }] }
    );
    assert_eq!(
        find_where(filter(), doc! { "s": 1, "l.v.$": 1 }, doc()),
        doc! { "_id": 1, "l": [{ "v": 6 }], "s": "t" }
    );
    assert_eq!(find_where(filter(), doc! { "p.$": 1 }, doc()), doc! { "_id": 1, "p": ["b"] });
    assert_eq!(find_where(filter(), doc! { "s.$": 1 }, doc()), doc! { "_id": 1, "s": "t" });
    let fails = |filter: DocBuf, projection: DocBuf, doc: DocBuf| {
        let context = ParseContext::default();
        let projection =
            Projection::parse_find(projection.as_doc(), Some(filter.as_doc()), &context).unwrap();
        with_context(|cx| projection.apply_to(doc.as_doc(), cx).unwrap_err().code().number())
    };
    assert_eq!(fails(doc! { "_id": 1 }, doc! { "l.$": 1 }, doc()), 51246);
    assert_eq!(
        fails(filter(), doc! { "q.$": 1 }, doc! { "l": [{ "k": 1 }, { "k": 2 }], "q": [1] }),
        51247
    );
    assert_eq!(error(doc! { "a.$.b": 1 }), 31394);
    assert_eq!(error(doc! { "a.$": 1, "b.$": 1 }), 31276);
    assert_eq!(error(doc! { "a.$": 0 }), 31395);
    assert_eq!(error(doc! { "a.$": "x" }), 31308);
    assert_eq!(error(doc! { "a.$": { "$slice": 1 } }), 31271);
    assert_eq!(error(doc! { "a.$": 1, "b": { "$elemMatch": {} } }), 31255);
    assert_eq!(error(doc! { "b": { "$elemMatch": {} }, "a.$": 1 }), 31256);
    assert_eq!(error(doc! { "a.$": 1, "a.b": 1 }), 31249);
    assert_eq!(error(doc! { "$": 1 }), 16410);
    assert_eq!(project_error(doc! { "a.$": 1 }), 31324);
}

#[test]
fn refused_projections() {
    assert_eq!(error(doc! { "a": 1, "b": 0 }), 31254);
    assert_eq!(error(doc! { "a": 0, "b": 1 }), 31253);
    assert_eq!(error(doc! { "a": 1, "a.b": 1 }), 31249);
    assert_eq!(error(doc! { "a.b": 1, "a": 1 }), 31250);
    assert_eq!(error(doc! { "a": {} }), 51270);
    assert_eq!(error(doc! { "a": { "$bogus": 1 } }), 31325);
    assert_eq!(error(doc! { "a": 0, "b": "$a" }), 31310);
    assert_eq!(error(doc! { "a.": 1 }), 40353);
    assert_eq!(error(doc! { "": 1 }), 40352);
    assert_eq!(error(doc! { "a..b": 1 }), 15998);
    assert_eq!(error(doc! { "a": { "$elemMatch": {}, "$slice": 1 } }), 16410);
    assert_eq!(
        error(DocBuf::build(|writer| {
            writer.append(&vec!["a"; 201].join("."), 1);
        })),
        15
    );
    assert_eq!(project_error(doc! {}), 51272);
    assert_eq!(project_error(doc! { "a": { "$elemMatch": { "x": 1 } } }), 168);
}

#[test]
fn added_fields_stay_in_place() {
    let doc = || doc! { "_id": 1, "a": { "b": 1 }, "c": 2, "l": [{ "x": 1 }, 5] };
    assert_eq!(
        add_fields(doc! { "c": "$_id", "d": 4 }, doc()),
        doc! { "_id": 1, "a": { "b": 1 }, "c": 1, "l": [{ "x": 1 }, 5], "d": 4 }
    );
    assert_eq!(
        add_fields(doc! { "a": { "e": 7 }, "a.b": 8, "l": "$$REMOVE" }, doc()),
        doc! { "_id": 1, "a": { "b": 8, "e": 7 }, "c": 2 }
    );
    assert_eq!(
        add_fields(doc! { "c.x": 1, "l.y": 2 }, doc()),
        doc! { "_id": 1, "a": { "b": 1 }, "c": { "x": 1 }, "l": [{ "x": 1, "y": 2 }, { "y": 2 }] }
    );
    assert_eq!(add_fields(doc! { "a": {} }, doc! { "a": { "b": 1 } }), doc! { "a": {} });
    let error = |spec: DocBuf| {
        let parsed =
            Projection::parse_add_fields("$set", Value::from(&spec), &ParseContext::default());
        parsed.unwrap_err().code().number()
    };
    assert_eq!(error(doc! { "a": 1, "a.b": 2 }), 40176);
    assert_eq!(error(doc! { "a": { "b": 1, "$add": [1] } }), 40181);
    assert_eq!(error(doc! { "a": { "b.c": 1 } }), 40183);
}

#[test]
fn unset_drops() {
    let paths = quire_document::array!["a", "b.c"];
    let context = ParseContext::default();
    let projection = Projection::parse_unset(Value::from(&paths), &context).unwrap();
    let doc = doc! { "_id": 1, "a": 1, "b": [{ "c": 1, "d": 2 }] };
    let result = with_context(|cx| projection.apply_to(doc.as_doc(), cx).unwrap());
    assert_eq!(result, doc! { "_id": 1, "b": [{ "d": 2 }] });
    let code =
        |value: Value<'_>| Projection::parse_unset(value, &context).unwrap_err().code().number();
    assert_eq!(code(Value::Int32(1)), 31002);
    assert_eq!(code(Value::Array(quire_document::Array::empty())), 31119);
    assert_eq!(code(Value::String("")), 40352);
}

#[test]
fn what_is_read() {
    let parse =
        |doc: DocBuf| Projection::parse_find(doc.as_doc(), None, &ParseContext::default()).unwrap();
    let needs = parse(doc! { "a.b": 1, "x": "$c.d" }).needs();
    assert!(!needs.whole_document);
    assert_eq!(needs.paths.iter().map(String::as_str).collect::<Vec<_>>(), ["_id", "a.b", "c.d"]);
    assert!(parse(doc! { "a": 0 }).needs().whole_document);
    let score = doc! { "$meta": "recordId" };
    let nested = doc! { "a": 1, "s": &score, "b": { "t": { "$ifNull": [&score, "$c"] } }, "d": { "$slice": 1 } };
    let projection = parse(nested);
    assert_eq!(projection.metadata(), projection.needs().metadata);
    assert_eq!(projection.metadata().len(), 1);
}
