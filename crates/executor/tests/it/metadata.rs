//! `$meta` in pipelines, in every stage that reads it, up to a `$group`.

use super::*;
use quire_document::{Value, doc};
use quire_executor::open;
use quire_planner::AggregateRequest;

/// Runs a pipeline over three documents, with an index on `a`.
fn run(pipeline: Vec<DocBuf>) -> Vec<DocBuf> {
    let store = store();
    let docs: Vec<DocBuf> =
        (0..3).map(|at| doc! { "_id": at, "a": (5 - at), "b": [at, (at + 1)] }).collect();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    create_indexes(&store, "db.c", std::iter::once(index.as_doc())).unwrap();
    let request =
        AggregateRequest { namespace: "db.c".into(), pipeline, ..AggregateRequest::default() };
    let views = FreshViews::new(&store).unwrap();
    let mut execution = open(&request, &views, params()).unwrap();
    try_drain(&store, &mut execution, 1000).unwrap()
}

fn meta(kind: &str) -> DocBuf {
    doc! { "$meta": kind }
}

#[test]
fn record_ids_go_through_stages_into_a_group() {
    let added = run(vec![
        doc! { "$match": { "b": 2 } },
        doc! { "$unwind": "$b" },
        doc! { "$replaceWith": { "b": "$b" } },
        doc! { "$addFields": { "r": &meta("recordId") } },
        doc! { "$match": { "b": 2 } },
    ]);
    assert_eq!(added, [doc! { "b": 2, "r": 2i64 }, doc! { "b": 2, "r": 3i64 }]);
    let kept = doc! { "$cond": [{ "$gt": [&meta("recordId"), 2] }, "$$KEEP", "$$PRUNE"] };
    let ids = doc! { "$project": { "_id": 1 } };
    assert_eq!(run(vec![doc! { "$redact": &kept }, ids]), [doc! { "_id": 2 }]);
    let all = doc! { "$group": { "_id": (Value::Null), "r": { "$push": &meta("recordId") } } };
    assert_eq!(run(vec![all]), [doc! { "_id": (Value::Null), "r": [1i64, 2i64, 3i64] }]);
}

#[test]
fn a_group_lets_no_metadata_through() {
    let grouped = run(vec![
        doc! { "$sort": { "a": 1 } },
        doc! { "$group": { "_id": "$a" } },
        doc! { "$match": { "_id": 4 } },
        doc! { "$addFields": { "r": &meta("recordId"), "s": &meta("sortKey") } },
    ]);
    assert_eq!(grouped, [doc! { "_id": 4 }]);
}

#[test]
fn sort_keys_come_from_sorts_indexes_and_later_sorts() {
    let key = doc! { "$project": { "_id": 0, "k": &meta("sortKey") } };
    let keys = |docs: [i32; 3]| docs.map(|key| doc! { "k": [key] }).to_vec();
    let shown = |sort: DocBuf| run(vec![doc! { "$sort": &sort }, key.clone()]);
    assert_eq!(shown(doc! { "a": 1 }), keys([3, 4, 5]), "by the index");
    assert_eq!(shown(doc! { "b": 1 }), keys([0, 1, 2]), "by a sort");
    let late = run(vec![
        doc! { "$addFields": { "x": { "$multiply": ["$a", 2] } } },
        doc! { "$sort": { "x": (-1) } },
        doc! { "$unset": "x" },
        key.clone(),
    ]);
    assert_eq!(late, keys([10, 8, 6]));
    let pushed = doc! { "$group": { "_id": (Value::Null), "k": { "$push": &meta("sortKey") } } };
    let pushed = run(vec![doc! { "$sort": { "a": (-1) } }, pushed]);
    assert_eq!(pushed, [doc! { "_id": (Value::Null), "k": [[5], [4], [3]] }]);
}

#[test]
fn index_keys_are_read_where_an_index_led_to_the_document() {
    let shown = doc! { "$addFields": { "i": &meta("indexKey") } };
    let by_index = run(vec![doc! { "$match": { "a": 4 } }, shown.clone()]);
    assert_eq!(by_index, [doc! { "_id": 1, "a": 4, "b": [1, 2], "i": { "a": 4 } }]);
    let by_scan = run(vec![doc! { "$match": { "b": 0 } }, shown]);
    assert_eq!(by_scan, [doc! { "_id": 0, "a": 5, "b": [0, 1] }]);
}
