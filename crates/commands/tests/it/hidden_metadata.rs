//! What a view leaves out is not shown by the metadata of its rows.

use super::{Client, Server, at};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};

/// Returns a server with the collection `t`, whose field `ssn` the view `v` leaves out, the view `w`
/// over `v`, the view `sorted`, which sorts by the field, and the view `scored`, whose scores are its
/// lengths.
fn server() -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! {
        "insert": "t", "documents": [
            { "_id": 1, "pub": 1, "ssn": "HIDDEN-1" }, { "_id": 2, "pub": 2, "ssn": "HIDDEN-2" },
        ], "$db": "d"
    });
    let index = doc! { "key": { "pub": 1, "ssn": 1 }, "name": "both" };
    client.works(doc! { "createIndexes": "t", "indexes": [&index], "$db": "d" });
    let length = doc! { "$strLenCP": "$ssn" };
    for (view, on, stages) in [
        ("v", "t", vec![doc! { "$project": { "ssn": 0 } }]),
        ("w", "v", vec![doc! { "$match": { "pub": { "$gte": 0 } } }]),
        ("sorted", "t", vec![doc! { "$sort": { "ssn": -1 } }, doc! { "$unset": "ssn" }]),
        (
            "scored",
            "t",
            vec![
                doc! { "$score": { "score": &length, "scoreDetails": true } },
                doc! { "$unset": "ssn" },
            ],
        ),
    ] {
        let stages: ArrayBuf = stages.iter().map(Value::from).collect();
        client.works(doc! { "create": view, "viewOn": on, "pipeline": &stages, "$db": "d" });
    }
    (server, client)
}

/// Runs a pipeline with the index and without it. Returns both results.
fn results(client: &mut Client, view: &str, stages: &[DocBuf]) -> Vec<Vec<DocBuf>> {
    let stages: ArrayBuf = stages.iter().map(Value::from).collect();
    let mut all = Vec::new();
    for hint in [doc! { "pub": 1, "ssn": 1 }, doc! { "_id": 1 }] {
        let reply = client.works(doc! {
            "aggregate": view, "pipeline": &stages, "hint": &hint, "cursor": {}, "$db": "d"
        });
        let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
        all.push(batch.iter().filter_map(|one| one.as_document()).map(Doc::to_owned).collect());
    }
    all
}

fn reading(kind: &str) -> Vec<DocBuf> {
    let meta = doc! { "$meta": kind };
    let filter = doc! { "$match": { "pub": { "$gte": 1 } } };
    let text = doc! { "$toString": { "$ifNull": [{ "$meta": kind }, "none"] } };
    vec![
        doc! { "$addFields": { "m": &meta } },
        doc! { "$project": { "m": &meta } },
        doc! { "$replaceWith": { "m": &meta } },
        doc! { "$group": { "_id": "$pub", "m": { "$push": &meta } } },
        doc! { "$facet": { "a": [&filter, { "$set": { "m": &meta } }] } },
        doc! { "$set": { "m": { "$cond": [{ "$eq": [&text, "none"] }, "none", "shown"] } } },
    ]
}

/// Returns true if no field `m` of the row shows metadata.
fn hides(row: Doc<'_>) -> bool {
    row.fields().all(|(name, value)| match value {
        Value::Array(list) if name == "m" => list.count() == 0,
        _ if name == "m" => matches!(value, Value::Null | Value::String("none" | "")),
        Value::Document(inner) => hides(inner),
        Value::Array(list) => list.iter().filter_map(|one| one.as_document()).all(hides),
        _ => true,
    })
}

/// `{k: {$meta: "indexKey"}}` on a view that leaves `ssn` out answered `{pub: 1, ssn: "HIDDEN"}`.
#[test]
fn a_view_hides_fields_from_every_meta() {
    let (_server, mut client) = server();
    let filter = doc! { "$match": { "pub": { "$gte": 1 } } };
    for view in ["v", "w", "sorted", "scored"] {
        for kind in ["indexKey", "sortKey", "recordId", "score", "scoreDetails"] {
            for stage in reading(kind) {
                if kind.starts_with("score") && view != "scored" {
                    continue;
                }
                for rows in results(&mut client, view, &[filter.clone(), stage.clone()]) {
                    let hides = rows.iter().all(|row| hides(row.as_doc()));
                    assert!(!rows.is_empty() && hides, "{view} {kind} {stage:?}: {rows:?}");
                }
            }
        }
    }
}

#[test]
fn a_find_on_a_view_hides_the_index_key_too() {
    let (_server, mut client) = server();
    for hint in [doc! { "pub": 1, "ssn": 1 }, doc! { "$natural": 1 }] {
        let reply = client.works(doc! {
            "find": "v", "filter": { "pub": 1 }, "projection": { "k": { "$meta": "indexKey" } },
            "hint": &hint, "$db": "d"
        });
        assert!(!format!("{reply:?}").contains("HIDDEN"), "{reply:?}");
    }
    let reply = client.works(doc! {
        "find": "t", "filter": { "pub": 1 }, "projection": { "k": { "$meta": "indexKey" } },
        "hint": { "pub": 1, "ssn": 1 }, "$db": "d"
    });
    assert_eq!(at(&reply, "cursor.firstBatch.0.k.ssn").unwrap().as_str(), Some("HIDDEN-1"));
}

/// The stages after a `$unionWith` read the metadata of the documents that come from the view, and
/// those of a pipeline inside of a stage that of the view they read.
#[test]
fn metadata_of_a_view_does_not_leave_unions_and_joins() {
    let (_server, mut client) = server();
    let none = doc! { "$match": { "_id": "no such" } };
    for view in ["v", "w", "sorted"] {
        for kind in ["indexKey", "sortKey"] {
            let set = doc! { "$set": { "m": { "$meta": kind } } };
            let used = doc! { "$match": { "pub": { "$gte": 1 } } };
            for stages in [
                vec![none.clone(), doc! { "$unionWith": view }, set.clone()],
                vec![
                    none.clone(),
                    doc! { "$unionWith": { "coll": view, "pipeline": [&used] } },
                    set.clone(),
                ],
                vec![
                    doc! { "$unionWith": { "coll": view, "pipeline": [&used, &set] } },
                    none_set(),
                ],
                vec![
                    none.clone(),
                    doc! { "$unionWith": { "coll": "t", "pipeline": [&none, { "$unionWith": view }] } },
                    set.clone(),
                ],
                vec![
                    doc! { "$lookup": { "from": view, "pipeline": [&used, &set], "as": "j" } },
                    none_set(),
                ],
            ] {
                for rows in results(&mut client, "t", &stages) {
                    let shown = format!("{rows:?}");
                    assert!(!rows.is_empty() && !shown.contains("HIDDEN"), "{stages:?}: {shown}");
                }
            }
        }
    }
}

/// Leaves out the field itself.
fn none_set() -> DocBuf {
    doc! { "$project": { "ssn": 0 } }
}

/// The reader's own sort and score are the reader's to see.
#[test]
fn metadata_that_the_reader_makes_is_shown() {
    let (_server, mut client) = server();
    let stages =
        [doc! { "$sort": { "pub": -1 } }, doc! { "$set": { "m": { "$meta": "sortKey" } } }];
    for view in ["v", "w", "sorted"] {
        for rows in results(&mut client, view, &stages) {
            let keys: Vec<_> = rows.iter().map(|row| at(row, "m.0")).collect();
            assert!(
                matches!(keys[..], [Some(Value::Int32(2)), Some(Value::Int32(1))]),
                "{view}: {rows:?}"
            );
        }
    }
    let stages =
        [doc! { "$score": { "score": "$pub" } }, doc! { "$set": { "m": { "$meta": "score" } } }];
    for rows in results(&mut client, "scored", &stages) {
        let scores: Vec<_> = rows.iter().map(|row| row.get("m").unwrap().to_f64()).collect();
        assert!(scores.contains(&Some(2.0)), "{rows:?}");
    }
}
