//! Tests of each operator on small documents: which documents match, and which filters are refused.

use super::*;
use crate::context::Shared;
use bumpalo::Bump;
use quire_document::{Binary, Decimal128, Value, doc};

fn filter(doc: DocBuf) -> Filter {
    Filter::parse(doc.as_doc(), &ParseContext::default()).unwrap()
}

fn matches(query: DocBuf, doc: DocBuf) -> bool {
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    filter(query).matches(doc.as_doc(), &cx).unwrap()
}

fn error(query: DocBuf) -> i32 {
    Filter::parse(query.as_doc(), &ParseContext::default()).unwrap_err().code().number()
}

fn position(query: DocBuf, doc: DocBuf) -> Option<Option<u32>> {
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    filter(query).find_position(doc.as_doc(), &cx).unwrap()
}

fn parsed(query: DocBuf) -> DocBuf {
    filter(query).to_bson()
}

#[test]
fn comparison_stays_within_a_type() {
    assert!(matches(doc! { "a": 5 }, doc! { "a": 5.0 }));
    assert!(matches(doc! { "a": { "$gt": 4 } }, doc! { "a": [1, 5] }));
    assert!(!matches(doc! { "a": { "$gt": 4 } }, doc! { "a": "5" }));
    assert!(matches(doc! { "a": { "$gt": Value::MinKey } }, doc! { "a": "5" }));
    assert!(matches(doc! { "a": { "$lt": Value::MaxKey } }, doc! {}));
    assert!(!matches(doc! { "a": { "$gt": Value::MinKey } }, doc! { "a": Value::MinKey }));
    assert!(matches(doc! { "a": { "$gte": Value::Null } }, doc! {}));
    assert!(!matches(doc! { "a": { "$gt": Value::Null } }, doc! { "a": Value::Null }));
    assert!(!matches(doc! { "a": Value::Null }, doc! { "a": Value::Undefined }));
    assert!(matches(doc! { "a": { "$lte": f64::NAN } }, doc! { "a": Decimal128::NAN }));
    assert!(!matches(doc! { "a": { "$lt": 5 } }, doc! { "a": f64::NAN }));
    assert!(matches(doc! { "a": { "$ne": 5 } }, doc! {}));
    assert!(!matches(doc! { "a": { "$ne": 5 } }, doc! { "a": [4, 5] }));
    assert!(matches(doc! { "a": { "$eq": { "$gt": 1 } } }, doc! { "a": { "$gt": 1 } }));
    assert_eq!(error(doc! { "a": Value::Undefined }), 2);
    assert_eq!(error(doc! { "a": { "$foo": 1 } }), 2);
    assert_eq!(error(doc! { "$foo": 1 }), 2);
    assert_eq!(error(doc! { "a": { "$gt": 1, "b": 2 } }), 2);
}

#[test]
fn arrays_and_paths() {
    assert!(matches(doc! { "a.b": 1 }, doc! { "a": [{ "b": 2 }, { "b": 1 }] }));
    assert!(matches(doc! { "a.0.b": 1 }, doc! { "a": [{ "b": 1 }] }));
    assert!(!matches(doc! { "a.0": 1 }, doc! { "a": [[1, 2]] }));
    assert!(matches(doc! { "a.0": [1, 2] }, doc! { "a": [[1, 2]] }));
    assert!(matches(doc! { "a": [1, 2] }, doc! { "a": [[1, 2], 3] }));
    assert!(matches(doc! { "a.b": Value::Null }, doc! { "a": [{ "b": 2 }, {}] }));
    assert!(!matches(doc! { "a.b": Value::Null }, doc! { "a": [1, 2] }));
    assert!(matches(doc! { "a.b": Value::Null }, doc! { "a": 1 }));
    assert!(matches(doc! { "": 5 }, doc! { "": 5 }));
    assert!(matches(doc! { "a.": 6 }, doc! { "a": { "": 6 } }));
}

#[test]
fn in_lists() {
    let list = || doc! { "a": { "$in": [3, "x", Value::Null, 1, 1.0] } };
    assert!(matches(list(), doc! { "a": 3.0 }));
    assert!(matches(list(), doc! {}));
    assert!(matches(list(), doc! { "a": [9, "x"] }));
    assert!(!matches(list(), doc! { "a": 2 }));
    assert_eq!(parsed(list()), doc! { "a": { "$in": [Value::Null, 1, 3, "x"] } });
    let regex = Value::Regex(quire_document::Regex { pattern: "^x", options: "i" });
    assert!(matches(doc! { "a": { "$in": [regex, 5] } }, doc! { "a": "Xy" }));
    assert!(matches(doc! { "a": { "$nin": [regex, 5] } }, doc! { "a": "y" }));
    assert!(!matches(doc! { "a": { "$in": [] } }, doc! {}));
    assert_eq!(parsed(doc! { "a": { "$in": [7] } }), doc! { "a": { "$eq": 7 } });
    assert_eq!(error(doc! { "a": { "$in": 1 } }), 2);
    assert_eq!(error(doc! { "a": { "$in": [{ "$gt": 1 }] } }), 2);
}

#[test]
fn elements() {
    let scores = || doc! { "a": [{ "x": 1, "y": 9 }, { "x": 5, "y": 2 }] };
    assert!(matches(doc! { "a": { "$elemMatch": { "x": 5, "y": { "$lt": 3 } } } }, scores()));
    assert!(!matches(doc! { "a": { "$elemMatch": { "x": 1, "y": 2 } } }, scores()));
    assert!(matches(doc! { "a": { "$elemMatch": { "$gt": 2, "$lt": 6 } } }, doc! { "a": [1, 4] }));
    assert!(!matches(doc! { "a": { "$elemMatch": { "$gt": 2 } } }, doc! { "a": 4 }));
    assert!(matches(
        doc! { "a": { "$elemMatch": { "$elemMatch": { "$eq": 1 } } } },
        doc! { "a": [[1]] }
    ));
    assert!(matches(
        doc! { "a": { "$elemMatch": { "$not": { "$gt": 2 } } } },
        doc! { "a": [1, 4] }
    ));
    assert!(matches(doc! { "a": { "$elemMatch": { "$or": [{ "x": 5 }, { "x": 7 }] } } }, scores()));
    assert!(matches(doc! { "a": { "$elemMatch": { "0": 5 } } }, doc! { "a": [[5]] }));
    assert!(matches(doc! { "a": { "$size": 2i64 } }, scores()));
    assert!(!matches(doc! { "a": { "$size": 0 } }, doc! { "a": [[]] }));
    assert!(matches(doc! { "a": { "$all": [1, [2]] } }, doc! { "a": [1, [2]] }));
    assert!(!matches(doc! { "a": { "$all": [] } }, doc! { "a": [] }));
    assert!(matches(
        doc! { "a": { "$all": [{ "$elemMatch": { "x": 1 } }, { "$elemMatch": { "y": 2 } }] } },
        scores()
    ));
    assert_eq!(error(doc! { "a": { "$all": [{ "$elemMatch": { "x": 1 } }, 5] } }), 2);
    assert_eq!(error(doc! { "a": { "$all": [{ "$gt": 1 }] } }), 2);
    // The name is not that of an operator, so the document is a value.
    let unknown = doc! { "$unknown": 1 };
    assert!(matches(doc! { "a": { "$all": [&unknown] } }, doc! { "a": [&unknown] }));
    assert!(!matches(doc! { "a": { "$all": [&unknown] } }, doc! { "a": [1] }));
    assert_eq!(error(doc! { "a": { "$elemMatch": [] } }), 2);
    assert_eq!(error(doc! { "a": { "$size": -1 } }), 2);
    assert_eq!(error(doc! { "a": { "$size": 1.5 } }), 2);
}

#[test]
fn types_and_existence() {
    assert!(matches(doc! { "a": { "$type": "array" } }, doc! { "a": [] }));
    assert!(matches(doc! { "a": { "$type": "number" } }, doc! { "a": [Decimal128::ONE] }));
    assert!(matches(doc! { "a": { "$type": [2, "null"] } }, doc! { "a": Value::Null }));
    assert!(!matches(doc! { "a": { "$type": "null" } }, doc! {}));
    assert!(matches(doc! { "a": { "$exists": true } }, doc! { "a": Value::Null }));
    assert!(matches(doc! { "a.b": { "$exists": false } }, doc! { "a": [1] }));
    assert_eq!(error(doc! { "a": { "$type": 0 } }), 2);
    assert_eq!(error(doc! { "a": { "$type": [] } }), 9);
    assert_eq!(error(doc! { "a": { "$type": true } }), 14);
}

#[test]
fn arithmetic() {
    assert!(matches(doc! { "a": { "$mod": [3, 1] } }, doc! { "a": 7.9 }));
    assert!(matches(doc! { "a": { "$mod": [-1, 0] } }, doc! { "a": i64::MIN }));
    assert!(!matches(doc! { "a": { "$mod": [3, 0] } }, doc! { "a": f64::INFINITY }));
    assert_eq!(error(doc! { "a": { "$mod": [0, 1] } }), 2);
    let divisor = quire_document::literal::parse("NumberDecimal(\"4.5\")").unwrap();
    assert!(matches(doc! { "a": { "$mod": [&divisor, 0] } }, doc! { "a": 8 }));
    let divisor = Decimal128([45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3e, 0x30]);
    assert!(matches(doc! { "a": { "$mod": [divisor, 0] } }, doc! { "a": 8 }));
    assert!(matches(doc! { "a": { "$bitsAllSet": [1, 200] } }, doc! { "a": -1 }));
    assert!(!matches(doc! { "a": { "$bitsAllSet": 20 } }, doc! { "a": 20.5 }));
    let bytes = Value::Binary(Binary { subtype: 0, bytes: &[0x66] });
    assert!(matches(doc! { "a": { "$bitsAnySet": [5] } }, doc! { "a": bytes }));
    assert!(matches(doc! { "a": { "$bitsAllClear": [500] } }, doc! { "a": bytes }));
    assert!(matches(doc! { "a": { "$bitsAnyClear": bytes } }, doc! { "a": 2 }));
    assert_eq!(error(doc! { "a": { "$bitsAllSet": -1 } }), 9);
    assert_eq!(error(doc! { "a": { "$bitsAllSet": [-1] } }), 2);
}

#[test]
fn logic() {
    let both = || doc! { "$and": [{ "a": 1 }, { "$or": [{ "b": 1 }, { "b": { "$gt": 5 } }] }] };
    assert!(matches(both(), doc! { "a": 1, "b": 9 }));
    assert!(!matches(both(), doc! { "a": 1, "b": 3 }));
    assert!(matches(doc! { "$nor": [{ "a": 1 }, { "b": 1 }] }, doc! {}));
    assert!(matches(doc! { "a": { "$not": { "$gt": 10, "$lt": 20 } } }, doc! {}));
    assert!(!matches(doc! { "a": { "$not": { "$gt": 10, "$lt": 20 } } }, doc! { "a": [1, 100] }));
    for query in [doc! { "$and": [] }, doc! { "$or": 1 }, doc! { "$nor": [1] }] {
        assert_eq!(error(query), 2);
    }
    assert_eq!(error(doc! { "a": { "$not": {} } }), 2);
    assert_eq!(error(doc! { "a": { "$not": 5 } }), 2);
    let mut deep = doc! { "a": 1 };
    for _ in 0..150 {
        deep = doc! { "$and": [&deep] };
    }
    assert_eq!(error(deep), 2);
}

#[test]
fn one_form_for_equal_filters() {
    assert_eq!(
        parsed(doc! { "b": 1, "a": { "$gt": 2 }, "$and": [{ "c": 3 }] }),
        doc! { "$and": [{ "b": { "$eq": 1 } }, { "c": { "$eq": 3 } }, { "a": { "$gt": 2 } }] }
    );
    assert_eq!(parsed(doc! { "$or": [{ "a": 1 }, { "a": 2 }] }), doc! { "a": { "$in": [1, 2] } });
    assert_eq!(parsed(doc! { "$or": [{ "a": 1 }] }), doc! { "a": { "$eq": 1 } });
    assert_eq!(parsed(doc! { "a": { "$ne": 1 } }), doc! { "a": { "$not": { "$eq": 1 } } });
    assert_eq!(parsed(doc! {}), doc! {});
    assert_eq!(parsed(doc! { "a": { "$in": [] } }), doc! { "$alwaysFalse": 1 });
    assert_eq!(parsed(doc! { "$or": [{ "a": 1 }, { "a": 1 }] }), doc! { "a": { "$eq": 1 } });
    assert_eq!(
        parsed(doc! { "a": { "$elemMatch": { "$lt": 5, "$all": [1, 2] } } }),
        doc! { "a": { "$elemMatch": { "$eq": 1, "$eq": 2, "$lt": 5 } } }
    );
}

#[test]
fn an_expression_implies_comparisons() {
    let widened = |doc: DocBuf| filter(doc).into_node().with_implied();
    let node =
        widened(doc! { "$expr": { "$and": [{ "$lt": [5, "$a.b"] }, { "$eq": ["$c", "$d"] }] } });
    assert_eq!(
        node.to_bson(),
        doc! { "$and": [
            { "$expr": { "$and": [{ "$lt": [{ "$const": 5 }, "$a.b"] }, { "$eq": ["$c", "$d"] }] } },
            { "a.b": { "$_internalExprGt": 5 } },
        ] }
    );
    let narrow = Filter::from_node(node.without_implied());
    assert!(!narrow.to_bson().as_doc().contains("$and"));
    let either = widened(doc! { "$expr": { "$or": [{ "$eq": ["$a", 1] }, { "$eq": ["$b", 2] }] } });
    assert_eq!(either.conjuncts().len(), 2);
    assert_eq!(either.without_implied().conjuncts().len(), 1);
    let none = widened(doc! { "$expr": { "$or": [{ "$eq": ["$a", 1] }, "$b"] } });
    assert_eq!(none.conjuncts().len(), 1);
}

#[test]
fn positions() {
    assert_eq!(position(doc! { "a": 3 }, doc! { "a": [1, 3] }), Some(Some(1)));
    assert_eq!(
        position(doc! { "a.b": 3 }, doc! { "a": [{ "b": 1 }, { "b": [3] }] }),
        Some(Some(1))
    );
    assert_eq!(position(doc! { "a.1": 3 }, doc! { "a": [1, 3] }), Some(None));
    assert_eq!(
        position(doc! { "a": { "$elemMatch": { "$gt": 2 } } }, doc! { "a": [1, 3] }),
        Some(Some(1))
    );
    assert_eq!(
        position(doc! { "$or": [{ "a": 3 }, { "b": 1 }] }, doc! { "a": [1, 3] }),
        Some(None)
    );
    assert_eq!(position(doc! { "a": 3, "b": 1 }, doc! { "a": [1, 3], "b": 1 }), Some(Some(1)));
    assert_eq!(position(doc! { "a": 4 }, doc! { "a": [1, 3] }), None);
}

#[test]
fn features_can_be_taken_away() {
    let parse = |doc: DocBuf| {
        Filter::parse_with(doc.as_doc(), &ParseContext::default(), Features::PARTS)
            .unwrap_err()
            .code()
            .number()
    };
    assert_eq!(parse(doc! { "$expr": true }), 224);
    assert_eq!(parse(doc! { "$jsonSchema": {} }), 224);
    assert_eq!(parse(doc! { "a": { "$near": [0, 0] } }), 5626500);
    assert_eq!(error(doc! { "a": { "$elemMatch": { "$expr": true } } }), 2);
    assert_eq!(error(doc! { "a": { "$elemMatch": { "$text": { "$search": "x" } } } }), 2);
    assert_eq!(error(doc! { "$where": "true" }), 115);
}

#[test]
fn constants() {
    assert!(matches(doc! { "$alwaysTrue": 1, "$comment": "x" }, doc! {}));
    assert!(!matches(doc! { "$alwaysFalse": 1 }, doc! {}));
    assert!(matches(doc! { "$sampleRate": 1.0 }, doc! {}));
    assert_eq!(error(doc! { "$sampleRate": 2 }), 2);
}

#[test]
fn keys_give_the_same_result_as_documents() {
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let filter = filter(doc! { "a": { "$gt": 3 }, "b": { "$in": [1, 2] } });
    let key = |a: i32, b: i32| {
        let lookup = move |path: &str| Some(Value::Int32(if path == "a" { a } else { b }));
        filter.root().matches_key(&lookup, &cx).unwrap()
    };
    assert!(key(4, 2));
    assert!(!key(4, 3));
    assert!(!key(3, 2));
}

/// A match that exceeded its limits counted as "no match", so that with `$not` a delete removed too
/// many documents.
#[test]
fn a_regular_expression_past_its_limits_fails_the_filter() {
    let doc = doc! { "a": format!("{}b", "a".repeat(64)).as_str(), "b": ["x"] };
    let pattern = "(a+)+$";
    for query in [
        doc! { "a": { "$regex": pattern } },
        doc! { "a": { "$not": { "$regex": pattern } } },
        doc! { "a": { "$in": [Value::Regex(quire_document::Regex { pattern, options: "" })] } },
        doc! { "$nor": [{ "a": { "$regex": pattern } }] },
        doc! { "$expr": { "$regexMatch": { "input": "$a", "regex": pattern } } },
        doc! { "$jsonSchema": { "properties": { "a": { "pattern": pattern } } } },
        doc! { "$jsonSchema": { "not": { "patternProperties": { "b": { "items": { "not": {} } } }, "properties": { "a": { "pattern": pattern } } } } },
    ] {
        let (arena, shared) = (Bump::new(), Shared::default());
        let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
        let error = filter(query.clone()).matches(doc.as_doc(), &cx).unwrap_err();
        assert_eq!(error.code().number(), 51156, "{query:?}");
    }
}
