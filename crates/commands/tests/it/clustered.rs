//! Clustered collections: natural order, explain, listings, expiry.

use crate::{Client, Server, at, code, number, text};
use quire_collections::expire_documents;
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_storage::Interrupt;

/// Returns a collection with the `_id`s 0 to 99, inserted in another order.
fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let spec = doc! { "key": { "_id": 1 }, "unique": true };
    client.works(doc! { "create": "c", "clusteredIndex": &spec, "$db": "test" });
    let documents: Vec<DocBuf> =
        (0..100).map(|n| doc! { "_id": n * 7 % 100, "a": n % 5, "b": n }).collect();
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    let index = doc! { "key": { "a": 1 }, "name": "a_1" };
    let built = client.works(doc! { "createIndexes": "c", "indexes": [&index], "$db": "test" });
    assert_eq!(number(&built, "numIndexesBefore"), Some(0));
    client
}

fn ids(reply: &DocBuf) -> Vec<i64> {
    let batch = at(reply, "cursor.firstBatch").or_else(|| at(reply, "cursor.nextBatch")).unwrap();
    let rows = batch.as_array().unwrap();
    let id = |row: Value<'_>| row.as_document().and_then(|row| row.get("_id")?.exact_i64());
    rows.iter().map(|row| id(row).unwrap()).collect()
}

fn find(client: &mut Client, filter: DocBuf, sort: DocBuf) -> Vec<i64> {
    ids(&client.works(doc! { "find": "c", "filter": &filter, "sort": &sort, "$db": "test" }))
}

fn explain(client: &mut Client, command: DocBuf) -> DocBuf {
    client.works(doc! { "explain": &command, "verbosity": "executionStats", "$db": "test" })
}

#[test]
fn the_natural_order_is_that_of_the_ids() {
    let server = Server::new();
    let mut client = filled(&server);
    let all: Vec<i64> = (0..100).collect();
    let reversed: Vec<i64> = (0..100).rev().collect();
    assert_eq!(find(&mut client, doc! {}, doc! {}), all);
    assert_eq!(find(&mut client, doc! {}, doc! { "$natural": -1 }), reversed);
    assert_eq!(find(&mut client, doc! {}, doc! { "_id": -1 }), reversed);
    let between = doc! { "_id": { "$gte": 10, "$lt": 20 }, "b": { "$gt": 50 } };
    assert_eq!(find(&mut client, between, doc! {}), [11, 13, 16, 18]);
    // The first batch ends in order, also if a document is inserted before its end meanwhile.
    let first = client.works(doc! { "find": "c", "batchSize": 50, "$db": "test" });
    assert_eq!(ids(&first), all[..50]);
    client
        .works(doc! { "insert": "c", "documents": [{ "_id": -1 }, { "_id": 100 }], "$db": "test" });
    let id = number(&first, "cursor.id").unwrap();
    let rest = client.works(doc! { "getMore": id, "collection": "c", "$db": "test" });
    assert_eq!(ids(&rest), (50..101).collect::<Vec<i64>>());
    let updated = client.works(
        doc! { "update": "c", "updates": [{ "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true }], "$db": "test" },
    );
    assert_eq!(number(&updated, "nModified"), Some(102));
    let deleted = client.works(
        doc! { "delete": "c", "deletes": [{ "q": { "_id": { "$lt": 50 } }, "limit": 0 }], "$db": "test" },
    );
    assert_eq!(number(&deleted, "n"), Some(51));
    let twice = client.run(doc! { "insert": "c", "documents": [{ "_id": 60 }], "$db": "test" });
    assert_eq!(number(&twice, "writeErrors.0.code"), Some(11000));
}

#[test]
fn explain_shows_a_scan_of_the_collection() {
    let server = Server::new();
    let mut client = filled(&server);
    let filter = |filter: DocBuf| doc! { "find": "c", "filter": &filter };
    for (command, stage, docs) in [
        (filter(doc! {}), "COLLSCAN", 100),
        (filter(doc! { "b": { "$gt": 3 } }), "COLLSCAN", 100),
        (filter(doc! { "_id": 5 }), "EXPRESS_CLUSTERED_IXSCAN", 1),
        (filter(doc! { "_id": { "$gt": 5, "$lt": 20 } }), "CLUSTERED_IXSCAN", 14),
        (filter(doc! { "_id": { "$in": [3, 4, 90] } }), "CLUSTERED_IXSCAN", 3),
        (doc! { "find": "c", "sort": { "_id": -1 } }, "COLLSCAN", 100),
        (
            doc! { "find": "c", "filter": { "_id": { "$gte": 98 } }, "hint": "_id_" },
            "CLUSTERED_IXSCAN",
            2,
        ),
    ] {
        let reply = explain(&mut client, command);
        let shown = text(&reply, "queryPlanner.winningPlan.stage");
        assert_eq!(shown, Some(stage), "{reply:?}");
        assert_eq!(number(&reply, "executionStats.totalDocsExamined"), Some(docs), "{reply:?}");
        assert_eq!(number(&reply, "executionStats.totalKeysExamined"), Some(0), "{reply:?}");
    }
    let reply = explain(&mut client, filter(doc! { "_id": { "$gt": 5, "$lt": 20 } }));
    assert_eq!(number(&reply, "queryPlanner.winningPlan.minRecord"), Some(5));
    assert_eq!(number(&reply, "queryPlanner.winningPlan.maxRecord"), Some(20));
    let by_index = explain(&mut client, filter(doc! { "a": 2 }));
    assert_eq!(text(&by_index, "queryPlanner.winningPlan.inputStage.stage"), Some("IXSCAN"));
    let counted = explain(&mut client, doc! { "count": "c", "query": { "_id": { "$lt": 9 } } });
    let input = text(&counted, "queryPlanner.winningPlan.inputStage.stage");
    assert_eq!(input, Some("CLUSTERED_IXSCAN"));
}

#[test]
fn the_clustered_index_is_listed_and_cannot_be_changed() {
    let server = Server::new();
    let mut client = filled(&server);
    let listed = client.works(doc! { "listIndexes": "c", "$db": "test" });
    let expected =
        doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true, "clustered": true };
    let first = at(&listed, "cursor.firstBatch.0").unwrap();
    let first = first.as_document().unwrap();
    assert_eq!(first.as_bytes(), expected.as_bytes());
    let collections = client.works(doc! { "listCollections": 1, "$db": "test" });
    let shown = at(&collections, "cursor.firstBatch.0.options.clusteredIndex.name");
    assert_eq!(shown.and_then(|name| name.as_str()), Some("_id_"));
    assert!(at(&collections, "cursor.firstBatch.0.idIndex").is_none());
    let again = doc! { "key": { "_id": 1 }, "name": "x" };
    let reply = client.works(doc! { "createIndexes": "c", "indexes": [&again], "$db": "test" });
    assert_eq!(number(&reply, "numIndexesAfter"), Some(1));
    for (refused, expected) in [
        (doc! { "dropIndexes": "c", "index": "_id_", "$db": "test" }, 5_979_800),
        (doc! { "dropIndexes": "c", "index": { "_id": 1 }, "$db": "test" }, 5_979_800),
        (
            doc! { "collMod": "c", "index": { "name": "_id_", "hidden": true }, "$db": "test" },
            6_011_800,
        ),
        (doc! { "collMod": "c", "expireAfterSeconds": "never", "$db": "test" }, 72),
        (
            doc! { "create": "d", "clusteredIndex": { "key": { "a": 1 }, "unique": true }, "$db": "test" },
            197,
        ),
    ] {
        assert_eq!(code(&client.run(refused)), expected);
    }
}

#[test]
fn documents_expire_by_their_id() {
    let server = Server::new();
    let mut client = filled(&server);
    let dates = [Value::Date(1_000), Value::Date(50_000)].map(|date| doc! { "_id": date });
    let dates: ArrayBuf = dates.iter().collect();
    client.works(doc! { "insert": "c", "documents": &dates, "$db": "test" });
    let expire = || {
        let store = server.0.store();
        expire_documents(store, 20_000, &Interrupt::new()).unwrap().deleted
    };
    assert_eq!(expire(), 0);
    client.works(doc! { "collMod": "c", "expireAfterSeconds": 10, "$db": "test" });
    assert_eq!((expire(), expire()), (1, 0));
    let shown = client.works(doc! { "listCollections": 1, "$db": "test" });
    assert_eq!(number(&shown, "cursor.firstBatch.0.options.expireAfterSeconds"), Some(10));
    client.works(doc! { "collMod": "c", "expireAfterSeconds": "off", "$db": "test" });
    let off = client.works(doc! { "listCollections": 1, "$db": "test" });
    assert!(at(&off, "cursor.firstBatch.0.options.expireAfterSeconds").is_none());
    assert_eq!(number(&client.works(doc! { "count": "c", "$db": "test" }), "n"), Some(101));
}
