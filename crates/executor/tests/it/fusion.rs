//! `$rankFusion`, `$scoreFusion` and `$score` compared with a naive evaluation, with and without an
//! index, in small batches, with and without spilling.

use super::*;
use quire_document::testing::Generator;
use quire_document::{Value, doc};
use quire_error::ErrorCode;
use quire_executor::open;
use quire_planner::AggregateRequest;

/// Returns documents with few different values of `a` and `b`, some without these fields.
fn documents(random: &mut Generator, count: i32) -> Vec<DocBuf> {
    let document = |id| {
        let mut doc = doc! { "_id": id };
        for field in ["a", "b"] {
            if random.below(6) > 0 {
                doc.append(field, random.below(20) as i32);
            }
        }
        doc
    };
    (0..count).map(document).collect()
}

/// Returns a store with the documents in `db.c`, and perhaps an index on `a`.
fn filled(docs: &[DocBuf], indexed: bool) -> Arc<Store> {
    let store = store();
    insert_all(&store, "db.c", docs.iter().map(DocBuf::as_doc));
    if indexed {
        let index = doc! { "key": { "a": 1 }, "name": "a_1" };
        create_indexes(&store, "db.c", std::iter::once(index.as_doc())).unwrap();
    }
    store
}

fn aggregate(
    store: &Arc<Store>,
    pipeline: &[DocBuf],
    params: ExecParams,
    batch: usize,
) -> Result<Vec<DocBuf>> {
    let request = AggregateRequest {
        namespace: "db.c".into(),
        pipeline: pipeline.to_vec(),
        allow_disk_use: Some(true),
        ..AggregateRequest::default()
    };
    try_drain(store, &mut open(&request, &FreshViews::new(store)?, params)?, batch)
}

/// Runs a pipeline in every way, and checks that the results are equal.
fn in_every_way(docs: &[DocBuf], pipeline: &[DocBuf]) -> Vec<DocBuf> {
    let plain = aggregate(&filled(docs, false), pipeline, params(), 1000).unwrap();
    let mut small = params();
    (small.stage_bytes_max, small.group_bytes_max) = (2000, 2000);
    let spilled = aggregate(&filled(docs, false), pipeline, small, 1000).unwrap();
    assert_eq!(spilled, plain, "spilled");
    for batch in [1, 7] {
        let indexed = aggregate(&filled(docs, true), pipeline, params(), batch).unwrap();
        assert_eq!(indexed, plain, "with an index, in batches of {batch}");
    }
    plain
}

fn error(pipeline: &[DocBuf]) -> ErrorCode {
    aggregate(&filled(&[], false), pipeline, params(), 10).unwrap_err().code()
}

fn number(doc: &DocBuf, field: &str) -> Option<f64> {
    doc.as_doc().get(field).and_then(|value| value.to_f64())
}

fn shown() -> DocBuf {
    doc! { "$project": { "score": { "$meta": "score" } } }
}

/// Returns the documents with a result of `score`, best first, then by `_id`.
fn best_first(docs: &[DocBuf], score: impl Fn(&DocBuf) -> Option<f64>) -> Vec<(i32, f64)> {
    let mut scores: Vec<(i32, f64)> =
        docs.iter().filter_map(|doc| Some((number(doc, "_id")? as i32, score(doc)?))).collect();
    scores.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    scores
}

fn check(found: &[DocBuf], wanted: &[(i32, f64)]) {
    let found: Vec<(i32, f64)> = found
        .iter()
        .map(|doc| (number(doc, "_id").unwrap() as i32, number(doc, "score").unwrap()))
        .collect();
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.0 == wanted.0 && (found.1 - wanted.1).abs() < 1e-12, "{found:?} {wanted:?}");
    }
}

#[test]
fn ranks_are_those_of_a_naive_evaluation() {
    for seed in 0..4 {
        let docs = documents(&mut Generator::new(seed), 150);
        let fusion = doc! { "$rankFusion": {
            "input": { "pipelines": {
                "up": [{ "$match": { "a": { "$gte": 3 } } }, { "$sort": { "a": 1 } }],
                "down": [{ "$sort": { "b": -1 } }],
            } },
            "combination": { "weights": { "up": 2.5 } },
        } };
        let found = in_every_way(&docs, &[fusion, shown()]);
        let value = |doc: &DocBuf, field: &str| number(doc, field).unwrap_or(-1.0);
        let wanted = best_first(&docs, |doc| {
            let down = docs.iter().filter(|other| value(other, "b") > value(doc, "b")).count() + 1;
            let before =
                |other: &&DocBuf| value(other, "a") >= 3.0 && value(other, "a") < value(doc, "a");
            let up = docs.iter().filter(before).count() + 1;
            let first = if value(doc, "a") >= 3.0 { 2.5 / (60.0 + up as f64) } else { 0.0 };
            Some(first + 1.0 / (60.0 + down as f64))
        });
        check(&found, &wanted);
    }
}

#[test]
fn scores_are_those_of_a_naive_evaluation() {
    let docs = documents(&mut Generator::new(9), 150);
    let has = |doc: &DocBuf, field: &str| number(doc, field);
    for normalization in ["none", "sigmoid", "minMaxScaler"] {
        let fusion = doc! { "$scoreFusion": {
            "input": {
                "pipelines": {
                    "x": [{ "$match": { "a": { "$gte": 0 } } }, { "$score": { "score": "$a" } }],
                    "y": [{ "$match": { "b": { "$gte": 0 } } }, { "$score": { "score": "$b" } }],
                },
                "normalization": normalization,
            },
            "combination": { "weights": { "y": 3 } },
        } };
        let found = in_every_way(&docs, &[fusion, shown()]);
        let scaled = |field: &str, raw: f64| {
            let all = || docs.iter().filter_map(|doc| has(doc, field));
            let (low, high) =
                (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
            match normalization {
                "none" => raw,
                "sigmoid" => 1.0 / (1.0 + (-raw).exp()),
                _ => (raw - low) / (high - low),
            }
        };
        let wanted = best_first(&docs, |doc| {
            let (x, y) = (has(doc, "a"), has(doc, "b"));
            x.or(y)?;
            let x = x.map_or(0.0, |raw| scaled("a", raw));
            let y = y.map_or(0.0, |raw| 3.0 * scaled("b", raw));
            Some((x + y) / 2.0)
        });
        check(&found, &wanted);
    }
}

#[test]
fn scores_and_details_stay_through_later_stages() {
    let docs = [doc! { "_id": 1, "a": 4 }, doc! { "_id": 2, "a": 2 }];
    let score = doc! { "$score": {
        "score": { "$multiply": ["$a", 2] }, "weight": 0.5, "scoreDetails": true
    } };
    let later = [
        score,
        doc! { "$sort": { "a": 1 } },
        doc! { "$lookup": { "from": "c", "localField": "a", "foreignField": "a", "as": "j" } },
        doc! { "$unwind": "$j" },
        doc! { "$sort": { "s": { "$meta": "score" } } },
        doc! { "$project": {
            "s": { "$meta": "score" },
            "raw": { "$getField": { "field": "rawScore", "input": { "$meta": "scoreDetails" } } },
        } },
    ];
    let wanted = [doc! { "_id": 1, "s": 4.0, "raw": 8.0 }, doc! { "_id": 2, "s": 2.0, "raw": 4.0 }];
    assert_eq!(in_every_way(&docs, &later), wanted);
}

#[test]
fn details_tell_of_each_pipeline() {
    let docs = [doc! { "_id": 1, "a": 4 }, doc! { "_id": 2, "a": 2 }];
    let pipelines = doc! {
        "all": [{ "$score": { "score": "$a" } }, { "$sort": { "a": 1 } }],
        "some": [{ "$match": { "a": 4 } }, { "$sort": { "a": 1 } }],
    };
    let fusion =
        doc! { "$rankFusion": { "input": { "pipelines": &pipelines }, "scoreDetails": true } };
    let details =
        doc! { "$getField": { "field": "details", "input": { "$meta": "scoreDetails" } } };
    let found = in_every_way(&docs, &[fusion, doc! { "$project": { "d": &details } }]);
    let all = |rank: i32, value: f64| {
        doc! { "inputPipelineName": "all", "rank": rank, "weight": 1.0, "value": value, "details": [] }
    };
    let some = doc! { "inputPipelineName": "some", "rank": 1, "weight": 1.0, "details": [] };
    let none = doc! { "inputPipelineName": "some", "rank": "NA" };
    let wanted = [
        doc! { "_id": 1, "d": [&all(2, 4.0), &some] },
        doc! { "_id": 2, "d": [&all(1, 2.0), &none] },
    ];
    assert_eq!(found, wanted);
}

#[test]
fn stages_that_no_fusion_allows_are_refused() {
    let score_fusion = |combination: &DocBuf, stages: &DocBuf| {
        let pipelines = doc! { "p": [stages] };
        error(&[doc! { "$scoreFusion": {
            "input": { "pipelines": &pipelines, "normalization": "none" },
            "combination": combination,
        } }])
        .number()
    };
    let (plain, score) = (doc! {}, doc! { "$score": { "score": "$a" } });
    assert_eq!(score_fusion(&plain, &doc! { "$sort": { "a": 1 } }), 9191100);
    assert_eq!(score_fusion(&plain, &doc! { "$unset": "a" }), 9191103);
    assert_eq!(score_fusion(&doc! { "method": "expression" }, &score), 2);
    assert_eq!(score_fusion(&doc! { "expression": 1 }, &score), 2);
    assert_eq!(score_fusion(&doc! { "weights": { "p": -1 } }, &score), 9460300);
    let unavailable =
        |kind: &str| error(&[doc! { "$project": { "m": { "$meta": kind } } }]).number();
    assert_eq!((unavailable("score"), unavailable("scoreDetails")), (40218, 40218));
    let text = aggregate(&filled(&[doc! { "a": "x" }], false), &[score], params(), 10).unwrap_err();
    assert_eq!(text.code(), ErrorCode::TypeMismatch);
    let weight = doc! { "$score": { "score": 1, "weight": 1.5 } };
    assert_eq!(error(&[weight]).number(), 2);
    let null = doc! { "$score": { "score": (Value::Null) } };
    let null = aggregate(&filled(&[doc! { "a": 1 }], false), &[null], params(), 10).unwrap_err();
    assert_eq!(null.code(), ErrorCode::TypeMismatch);
}
