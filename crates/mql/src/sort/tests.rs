//! Tests of the sort keys of documents, and of invalid sorts.

use super::*;
use crate::context::{EvalContext, ParseContext, Shared};
use bumpalo::Bump;
use quire_document::testing::Generator;
use quire_document::{Doc, DocBuf, Value, doc};

fn pattern(sort: DocBuf) -> SortPattern {
    SortPattern::parse(sort.as_doc(), &ParseContext::default()).unwrap()
}

fn error(sort: DocBuf) -> i32 {
    SortPattern::parse(sort.as_doc(), &ParseContext::default()).unwrap_err().code().number()
}

fn sorted(sort: DocBuf, docs: &[DocBuf]) -> Vec<usize> {
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let pattern = pattern(sort);
    let mut order: Vec<usize> = (0..docs.len()).collect();
    order.sort_by(|a, b| {
        let left = pattern.key(docs[*a].as_doc(), &cx).unwrap();
        let right = pattern.key(docs[*b].as_doc(), &cx).unwrap();
        pattern.compare(&left, &right)
    });
    order
}

#[test]
fn arrays_count_with_their_extremes() {
    let docs =
        [doc! { "a": [3, 9] }, doc! { "a": 5 }, doc! { "a": [] }, doc! {}, doc! { "a": [1, 4] }];
    assert_eq!(sorted(doc! { "a": 1 }, &docs), [2, 3, 4, 0, 1]);
    assert_eq!(sorted(doc! { "a": -1 }, &docs), [0, 1, 4, 3, 2]);
}

#[test]
fn parts_in_one_array_go_together() {
    let docs =
        [doc! { "a": [{ "x": 1, "y": 9 }, { "x": 2, "y": 1 }] }, doc! { "a": { "x": 1, "y": 5 } }];
    assert_eq!(sorted(doc! { "a.x": 1, "a.y": 1 }, &docs), [1, 0]);
    assert_eq!(sorted(doc! { "a.y": 1, "a.x": 1 }, &docs), [0, 1]);
    let (arena, shared) = (Bump::new(), Shared::default());
    let cx = EvalContext::new(&arena, Doc::empty(), &shared);
    let parallel = doc! { "a": [1, 2], "b": [1, 2] };
    let failed = pattern(doc! { "a": 1, "b": 1 }).key(parallel.as_doc(), &cx);
    assert_eq!(failed.unwrap_err().code().number(), 2);
}

#[test]
fn refused_patterns() {
    assert_eq!(error(doc! { "a": 2 }), 15975);
    assert_eq!(error(doc! { "a": "asc" }), 15974);
    assert_eq!(error(doc! { "a": { "$foo": 1 } }), 17312);
    assert_eq!(error(doc! { "a": { "$meta": "nope" } }), 31138);
    assert_eq!(error(doc! { "a": { "$meta": "textScore" } }), 40218);
    assert_eq!(error(doc! { "": 1 }), 40352);
    assert_eq!(error(doc! { "a.": 1 }), 40353);
    assert_eq!(error(doc! { "a..b": 1 }), 15998);
    assert_eq!(error(doc! { "$a": 1 }), 16410);
    assert_eq!(error(doc! { "a": 1, "b": 1, "a": -1 }), 7472500);
    let many = DocBuf::build(|writer| {
        for at in 0..33 {
            writer.append(&format!("f{at}"), 1);
        }
    });
    assert_eq!(error(many), 13103);
    let stage = |value| SortPattern::parse_stage(value, &ParseContext::default()).unwrap_err();
    assert_eq!(stage(Value::Int32(1)).code().number(), 15973);
    assert_eq!(stage(Value::Document(Doc::empty())).code().number(), 15976);
}

#[test]
fn natural_order() {
    assert_eq!(natural(doc! { "$natural": -1.0 }.as_doc()).unwrap(), Some(Direction::Descending));
    assert_eq!(natural(doc! { "a": 1 }.as_doc()).unwrap(), None);
    assert!(natural(doc! { "$natural": 1, "a": 1 }.as_doc()).is_err());
}

/// What begins beyond a key is beyond it, and of keys of one part everything that is beyond begins so,
/// arrays apart.
#[test]
fn keys_that_begin_beyond_are_beyond() {
    let mut random = Generator::new(3);
    let (arena, shared, mut scratch) = (Bump::new(), Shared::new(0), Vec::new());
    let patterns =
        [doc! { "a": 1 }, doc! { "a": -1 }, doc! { "a": -1, "b": 1 }, doc! { "a.b": 1, "b": -1 }];
    let patterns = patterns.map(pattern);
    let mut beyond = 0;
    for _ in 0..2000 {
        let docs = [0, 1].map(|_| {
            let mut doc = doc! { "a": &random.value(), "b": random.below(3) as i32 };
            if random.one_in(4) {
                doc = doc! { "b": &random.value() };
            }
            doc
        });
        for pattern in &patterns {
            let key = |doc: &DocBuf| {
                let cx = EvalContext::new(&arena, doc.as_doc(), &shared);
                let mut bytes = Vec::new();
                pattern.append_bytes(&pattern.key(doc.as_doc(), &cx).ok()?, &mut bytes);
                Some(bytes)
            };
            let [Some(key), Some(bound)] = [key(&docs[0]), key(&docs[1])] else { continue };
            let found = pattern.begins_beyond(docs[0].as_doc(), &bound, &mut scratch);
            assert!(!found || key > bound, "{docs:?} {pattern:?}");
            let is_array = docs[0].get("a").is_some_and(|value| matches!(value, Value::Array(_)));
            if pattern.parts().len() == 1 && !is_array {
                assert_eq!(found, key > bound, "{docs:?} {pattern:?}");
            }
            beyond += usize::from(found);
        }
    }
    assert!(beyond > 1000, "{beyond}");
}
