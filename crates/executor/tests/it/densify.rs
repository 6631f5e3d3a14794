//! `$densify` and `$fill`: the added documents are between the others, on the grid of the bounds.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, doc};
use quire_error::ErrorCode;
use quire_executor::open;
use quire_planner::AggregateRequest;

fn aggregate(docs: &[DocBuf], stage: DocBuf, batch: usize) -> Result<Vec<DocBuf>> {
    let store = store();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    let request = AggregateRequest {
        namespace: "db.c".into(),
        pipeline: vec![stage],
        ..AggregateRequest::default()
    };
    try_drain(&store, &mut open(&request, &FreshViews::new(&store)?, params())?, batch)
}

fn int(doc: &DocBuf, field: &str) -> Option<i32> {
    match doc.get(field) {
        Some(Value::Int32(number)) => Some(number),
        _ => None,
    }
}

/// Returns the partition and the value of each document, and whether it was there before.
fn shown(docs: &[DocBuf]) -> Vec<(Option<i32>, Option<i32>, bool)> {
    docs.iter().map(|doc| (int(doc, "p"), int(doc, "v"), doc.get("_id").is_some())).collect()
}

fn points(points: &[(i32, i32)]) -> Vec<DocBuf> {
    let doc = |(id, (p, v)): (usize, &(i32, i32))| doc! { "_id": id as i32, "p": *p, "v": *v };
    points.iter().enumerate().map(doc).collect()
}

fn densify(bounds: impl Into<quire_document::ValueBuf>, partitions: bool) -> DocBuf {
    let bounds = bounds.into();
    let fields: ArrayBuf = partitions.then_some("p").into_iter().collect();
    doc! { "$densify": {
        "field": "v", "partitionByFields": &fields, "range": { "step": 10, "bounds": &bounds }
    } }
}

#[test]
fn full_bounds_fill_each_partition_to_the_ends_of_all() {
    let docs = points(&[(1, 5), (1, 12), (2, 31), (2, 45)]);
    let full = densify(quire_document::ValueBuf::new("full"), true);
    let found = shown(&aggregate(&docs, full, 2).unwrap());
    let (old, new) = (|p, v| (Some(p), Some(v), true), |p, v| (Some(p), Some(v), false));
    assert_eq!(
        found,
        [
            old(1, 5),
            old(1, 12),
            new(2, 5),
            new(2, 15),
            new(2, 25),
            old(2, 31),
            new(2, 35),
            old(2, 45),
            new(1, 15),
            new(1, 25),
            new(1, 35),
            new(1, 45),
        ]
    );
}

#[test]
fn partition_and_explicit_bounds() {
    let docs = points(&[(1, 5), (1, 26), (2, 31), (2, 51)]);
    let (old, new) = (|p, v| (Some(p), Some(v), true), |p, v| (Some(p), Some(v), false));
    let own = densify(quire_document::ValueBuf::new("partition"), true);
    assert_eq!(
        shown(&aggregate(&docs, own, 1).unwrap()),
        [old(1, 5), new(1, 15), new(1, 25), old(1, 26), old(2, 31), new(2, 41), old(2, 51),]
    );
    let explicit = || densify(quire_document::array![10, 40], false);
    let made = |v| (None, Some(v), false);
    assert_eq!(
        shown(&aggregate(&docs, explicit(), 1).unwrap()),
        [old(1, 5), made(10), made(20), old(1, 26), made(30), old(2, 31), old(2, 51),]
    );
    assert_eq!(shown(&aggregate(&[], explicit(), 3).unwrap()), [made(10), made(20), made(30)]);
}

#[test]
fn every_document_stays_and_every_step_is_there() {
    let random = &mut Generator::new(77);
    for _ in 0..30 {
        let count = 1 + random.below(20) as usize;
        let values: Vec<(i32, i32)> =
            (0..count).map(|_| (random.below(3) as i32, random.below(200) as i32)).collect();
        let full = densify(quire_document::ValueBuf::new("full"), true);
        let found = aggregate(&points(&values), full, 5).unwrap();
        let (least, greatest) = (
            values.iter().map(|(_, v)| *v).min().unwrap(),
            values.iter().map(|(_, v)| *v).max().unwrap(),
        );
        assert_eq!(found.iter().filter(|doc| doc.get("_id").is_some()).count(), count);
        for p in 0..3 {
            let mut of_partition: Vec<i32> = found
                .iter()
                .filter(|doc| int(doc, "p") == Some(p))
                .filter_map(|doc| int(doc, "v"))
                .collect();
            if of_partition.is_empty() {
                continue;
            }
            of_partition.sort_unstable();
            for step in (least..=greatest).step_by(10) {
                assert!(of_partition.contains(&step), "{p} {step} {values:?}");
            }
            let made = found.iter().filter(|doc| doc.get("_id").is_none());
            assert!(made.filter_map(|doc| int(doc, "v")).all(|v| (v - least) % 10 == 0));
        }
    }
}

#[test]
fn too_many_documents_and_values_of_other_types_are_errors() {
    let code = |docs: &[DocBuf], stage| aggregate(docs, stage, 1000).unwrap_err().code();
    let wide = densify(quire_document::array![0, 10_000_000], false);
    assert_eq!(code(&[], wide), ErrorCode::location(5897900));
    let text = [doc! { "_id": 1, "v": "text" }];
    let full = || densify(quire_document::ValueBuf::new("full"), false);
    assert_eq!(code(&text, full()), ErrorCode::location(5733201));
    let date = [doc! { "_id": 1, "v": Value::Date(0) }];
    assert_eq!(code(&date, full()), ErrorCode::location(6053600));
    let passed = [doc! { "_id": 1, "v": Value::Null }, doc! { "_id": 2 }];
    assert_eq!(aggregate(&passed, full(), 10).unwrap().len(), 2);
}

#[test]
fn fill_takes_values_lines_and_the_last_ones() {
    let docs = [
        doc! { "_id": 1, "t": 0, "a": 10, "b": 1 },
        doc! { "_id": 2, "t": 1, "b": Value::Null, "c": 7 },
        doc! { "_id": 3, "t": 4, "a": 50 },
    ];
    let stage = doc! { "$fill": { "sortBy": { "t": 1 }, "output": {
        "a": { "method": "linear" }, "b": { "method": "locf" }, "c": { "value": { "$add": ["$t", 1] } }
    } } };
    let found = aggregate(&docs, stage, 1).unwrap();
    let field = |at: usize, name: &str| found[at].get(name).and_then(|value| value.to_f64());
    assert_eq!([0, 1, 2].map(|at| field(at, "a")), [Some(10.0), Some(20.0), Some(50.0)]);
    assert_eq!([0, 1, 2].map(|at| field(at, "b")), [Some(1.0); 3]);
    assert_eq!([0, 1, 2].map(|at| field(at, "c")), [Some(1.0), Some(7.0), Some(5.0)]);
}

/// Partition values that are equal but not identical: added documents have the latest.
#[test]
fn made_documents_have_the_partition_of_the_document_behind_them() {
    let docs = [doc! { "_id": 1, "p": 1, "v": 0 }, doc! { "_id": 2, "p": 1.0, "v": 20 }];
    let stage = densify(quire_document::ValueBuf::new("partition"), true);
    let found = aggregate(&docs, stage, 10).unwrap();
    let made: Vec<_> = found.iter().filter(|doc| doc.get("_id").is_none()).collect();
    assert_eq!(made.len(), 1, "{found:?}");
    assert!(matches!(made[0].get("p"), Some(Value::Double(_))), "{found:?}");
}
