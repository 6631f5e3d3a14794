//! Time-series collections: what points must have, their order, and what the collection refuses.

use crate::{Client, Server, at, code, number, text};
use quire_collections::{check, expire_documents};
use quire_document::{ArrayBuf, DocBuf, Value, doc};
use quire_storage::Interrupt;

/// Returns a collection with points of the times 0 to 99, inserted in another order. Point `n` has
/// the `_id` `n % 10`, so that ten points share each.
fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    client.works(doc! {
        "create": "s", "timeseries": { "timeField": "t", "metaField": "m" }, "$db": "test",
    });
    let points: Vec<DocBuf> = (0..100).map(|n| point(n * 37 % 100)).collect();
    let points: ArrayBuf = points.iter().collect();
    let inserted = client.works(doc! { "insert": "s", "documents": &points, "$db": "test" });
    assert_eq!(number(&inserted, "n"), Some(100));
    client
}

fn point(n: i64) -> DocBuf {
    doc! { "_id": n % 10, "v": n, "m": { "a": n % 4 }, "t": Value::Date(n) }
}

fn values(client: &mut Client, filter: DocBuf, sort: DocBuf) -> Vec<i64> {
    let found = client.works(doc! {
        "find": "s", "filter": &filter, "sort": &sort, "batchSize": 1000, "$db": "test",
    });
    let rows = at(&found, "cursor.firstBatch").unwrap();
    let value = |row: Value<'_>| row.as_document().and_then(|row| row.get("v")?.exact_i64());
    rows.as_array().unwrap().iter().map(|row| value(row).unwrap()).collect()
}

fn update(client: &mut Client, filter: DocBuf, update: DocBuf) -> DocBuf {
    client.run(doc! {
        "update": "s", "updates": [{ "q": &filter, "u": &update, "multi": true }], "$db": "test",
    })
}

#[test]
fn points_are_in_the_order_of_their_time_with_the_time_first() {
    let server = Server::new();
    let mut client = filled(&server);
    let all: Vec<i64> = (0..100).collect();
    let reversed: Vec<i64> = (0..100).rev().collect();
    assert_eq!(values(&mut client, doc! {}, doc! {}), all);
    assert_eq!(values(&mut client, doc! {}, doc! { "$natural": -1 }), reversed);
    assert_eq!(values(&mut client, doc! {}, doc! { "t": -1 }), reversed);
    let range = doc! { "t": { "$gte": Value::Date(10), "$lt": Value::Date(13) } };
    assert_eq!(values(&mut client, range, doc! {}), [10, 11, 12]);
    assert_eq!(values(&mut client, doc! { "_id": 3, "v": { "$lt": 20 } }, doc! {}), [3, 13]);
    let sharing = doc! { "_id": 3 };
    assert_eq!(values(&mut client, sharing, doc! {}).len(), 10);
    let first = client.works(doc! { "find": "s", "limit": 1, "$db": "test" });
    let first = at(&first, "cursor.firstBatch.0").unwrap();
    let first = first.as_document().unwrap();
    let names: Vec<&str> = first.fields().map(|(name, _)| name).collect();
    assert_eq!(names, ["t", "m", "_id", "v"]);
}

#[test]
fn the_fields_of_the_meta_field_are_sorted() {
    let server = Server::new();
    let mut client = filled(&server);
    let meta = doc! { "z": 1, "a": { "y": 1, "x": [{ "d": 1, "c": [{ "f": 1, "e": 2 }] }] } };
    let point = doc! { "m": &meta, "t": Value::Date(500), "v": { "z": 1, "a": 2 } };
    client.works(doc! { "insert": "s", "documents": [&point], "$db": "test" });
    let sorted = doc! { "a": { "x": [{ "c": [{ "e": 2, "f": 1 }], "d": 1 }], "y": 1 }, "z": 1 };
    let by_meta = |meta: &DocBuf| doc! { "find": "s", "filter": { "m": meta }, "$db": "test" };
    let found = client.works(by_meta(&sorted));
    for (path, expected) in [("m", &sorted), ("v", &doc! { "z": 1, "a": 2 })] {
        let shown = at(&found, &format!("cursor.firstBatch.0.{path}")).unwrap();
        assert_eq!(shown.as_document().unwrap().as_bytes(), expected.as_bytes(), "{found:?}");
    }
    let unsorted = client.works(by_meta(&meta));
    assert!(at(&unsorted, "cursor.firstBatch.0").is_none());
}

#[test]
fn a_sort_by_time_does_not_block() {
    let server = Server::new();
    let mut client = filled(&server);
    for sort in [doc! { "t": 1 }, doc! { "t": -1 }] {
        let command = doc! { "find": "s", "sort": &sort };
        let plan = client.works(doc! { "explain": &command, "$db": "test" });
        let stage = text(&plan, "queryPlanner.winningPlan.stage");
        assert_ne!(stage, Some("SORT"), "{plan:?}");
    }
    let of_source = doc! { "find": "s", "filter": { "m": { "a": 1 } }, "sort": { "t": -1 } };
    let plan = client.works(doc! { "explain": &of_source, "$db": "test" });
    let input = text(&plan, "queryPlanner.winningPlan.inputStage.indexName");
    assert_eq!(input, Some("m_1_t_1"), "{plan:?}");
}

#[test]
fn a_point_needs_a_date() {
    let server = Server::new();
    let mut client = filled(&server);
    let points: ArrayBuf = [
        doc! { "_id": 1, "v": 100, "t": Value::Date(100) },
        doc! { "_id": 2 },
        doc! { "_id": 3, "t": "2026-01-01" },
        doc! { "v": 101, "t": Value::Date(101) },
    ]
    .iter()
    .collect();
    let reply =
        client.run(doc! { "insert": "s", "documents": &points, "ordered": false, "$db": "test" });
    assert_eq!(number(&reply, "n"), Some(2));
    for (at, index) in [1, 2].into_iter().enumerate() {
        assert_eq!(number(&reply, &format!("writeErrors.{at}.index")), Some(index));
        assert_eq!(number(&reply, &format!("writeErrors.{at}.code")), Some(2));
    }
    assert_eq!(values(&mut client, doc! { "v": { "$gte": 99 } }, doc! {}), [99, 100, 101]);
}

#[test]
fn updates_change_only_the_meta_field() {
    let server = Server::new();
    let mut client = filled(&server);
    let changed = update(&mut client, doc! { "m.a": 1 }, doc! { "$set": { "m.a": 7 } });
    assert_eq!(number(&changed, "nModified"), Some(25));
    assert_eq!(values(&mut client, doc! { "m": { "a": 7 } }, doc! {}).len(), 25);
    let either = doc! { "$or": [{ "m.a": 7 }, { "m.a": 2 }] };
    let changed = update(&mut client, either, doc! { "$unset": { "m": 1 } });
    assert_eq!(number(&changed, "nModified"), Some(50));
    for (filter, change) in [
        (doc! { "v": 1 }, doc! { "$set": { "m": 1 } }),
        (doc! { "$expr": { "$eq": ["$v", 1] } }, doc! { "$set": { "m": 1 } }),
        (doc! {}, doc! { "$set": { "v": 1 } }),
        (doc! {}, doc! { "$set": { "m": 1, "t": Value::Date(1) } }),
        (doc! {}, doc! { "$rename": { "m": "n" } }),
    ] {
        let refused = update(&mut client, filter.clone(), change.clone());
        assert_eq!(number(&refused, "writeErrors.0.code"), Some(72), "{filter:?} {change:?}");
    }
    for (of, expected) in [
        (doc! { "q": {}, "u": { "$set": { "m": 1 } } }, 72),
        (doc! { "q": {}, "u": { "$set": { "m": 1 } }, "multi": true, "upsert": true }, 72),
        (doc! { "q": {}, "u": [{ "$set": { "m": 1 } }], "multi": true }, 72),
    ] {
        let refused = client.run(doc! { "update": "s", "updates": [&of], "$db": "test" });
        assert_eq!(number(&refused, "writeErrors.0.code"), Some(expected), "{of:?}");
    }
    let found = doc! { "findAndModify": "s", "query": {}, "update": { "$set": { "m": 1 } } };
    let mut refused = found.clone();
    refused.append("$db", "test");
    assert_eq!(code(&client.run(refused)), 72);
    assert_eq!(values(&mut client, doc! {}, doc! {}), (0..100).collect::<Vec<i64>>());
}

#[test]
fn deletes_take_any_filter() {
    let server = Server::new();
    let mut client = filled(&server);
    let deletes: ArrayBuf =
        [doc! { "q": { "_id": 3 }, "limit": 1 }, doc! { "q": { "v": { "$gte": 50 } }, "limit": 0 }]
            .iter()
            .collect();
    let deleted = client.works(doc! { "delete": "s", "deletes": &deletes, "$db": "test" });
    assert_eq!(number(&deleted, "n"), Some(51));
    let removed =
        doc! { "findAndModify": "s", "query": { "_id": 4 }, "remove": true, "$db": "test" };
    let removed = client.works(removed);
    assert_eq!(number(&removed, "value.v"), Some(4));
    assert_eq!(values(&mut client, doc! {}, doc! {}).len(), 48);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn points_expire_by_their_time() {
    let server = Server::new();
    let mut client = filled(&server);
    let expire = |now_ms| {
        let store = server.0.store();
        expire_documents(store, now_ms, &Interrupt::new()).unwrap().deleted
    };
    assert_eq!(expire(1_049), 0);
    client.works(doc! { "collMod": "s", "expireAfterSeconds": 1, "$db": "test" });
    assert_eq!((expire(1_049), expire(1_049)), (50, 0));
    assert_eq!(values(&mut client, doc! {}, doc! {}), (50..100).collect::<Vec<i64>>());
    let listed = client.works(doc! { "listCollections": 1, "$db": "test" });
    let options = at(&listed, "cursor.firstBatch.0.options").unwrap();
    let names: Vec<&str> = options.as_document().unwrap().fields().map(|(name, _)| name).collect();
    assert_eq!(names, ["expireAfterSeconds", "timeseries"]);
}

#[test]
fn only_the_indexes_of_users_are_shown_and_dropped() {
    let server = Server::new();
    let mut client = filled(&server);
    let by_time = doc! { "key": { "t": 1 }, "name": "t_1" };
    let built = client.works(doc! { "createIndexes": "s", "indexes": [&by_time], "$db": "test" });
    assert_eq!(number(&built, "numIndexesBefore"), Some(1));
    assert_eq!(number(&built, "numIndexesAfter"), Some(2));
    let listed = client.works(doc! { "listIndexes": "s", "$db": "test" });
    let names = at(&listed, "cursor.firstBatch").unwrap().as_array().unwrap();
    assert_eq!(names.iter().count(), 2, "{listed:?}");
    assert_eq!(text(&listed, "cursor.firstBatch.0.name"), Some("m_1_t_1"));
    let hidden = client.run(doc! { "dropIndexes": "s", "index": "_time_", "$db": "test" });
    assert_eq!(code(&hidden), 27);
    client.works(doc! { "dropIndexes": "s", "index": "*", "$db": "test" });
    assert_eq!(values(&mut client, doc! {}, doc! {}), (0..100).collect::<Vec<i64>>());
    let unique = doc! { "collMod": "s", "index": { "name": "t_1", "unique": true }, "$db": "test" };
    assert_eq!(code(&client.run(unique)), 27);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn commands_for_plain_collections_are_refused() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "create": "plain", "$db": "test" });
    for (refused, expected) in [
        (doc! { "renameCollection": "test.s", "to": "test.r", "$db": "admin" }, 166),
        (
            doc! { "renameCollection": "test.plain", "to": "test.s", "dropTarget": true, "$db": "admin" },
            48,
        ),
        (doc! { "convertToCapped": "s", "size": 4096, "$db": "test" }, 166),
        (
            doc! { "cloneCollectionAsCapped": "s", "toCollection": "c", "size": 4096, "$db": "test" },
            166,
        ),
        (doc! { "dataSize": "test.s", "$db": "test" }, 166),
        (doc! { "planCacheClear": "s", "$db": "test" }, 166),
        (doc! { "find": "s", "tailable": true, "$db": "test" }, 168),
        (doc! { "find": "s", "singleBatch": true, "$db": "test" }, 168),
        (doc! { "find": "s", "showRecordId": true, "$db": "test" }, 168),
        (doc! { "create": "s", "$db": "test" }, 48),
        (doc! { "collMod": "s", "validator": {}, "$db": "test" }, 72),
        (doc! { "collMod": "plain", "timeseries": {}, "$db": "test" }, 72),
        (
            doc! { "aggregate": "plain", "pipeline": [{ "$merge": "s" }], "cursor": {}, "$db": "test" },
            166,
        ),
    ] {
        let reply = client.run(refused.clone());
        assert_eq!(code(&reply), expected, "{refused:?} {reply:?}");
    }
    let buckets = doc! { "insert": "system.buckets.x", "documents": [{}], "$db": "test" };
    let refused = client.run(buckets);
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(20), "{refused:?}");
}

#[test]
fn out_makes_and_replaces_a_time_series() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut out = |options: DocBuf| {
        let to = doc! { "db": "test", "coll": "o", "timeseries": &options };
        client.run(doc! {
            "aggregate": "s", "pipeline": [{ "$match": { "v": { "$lt": 5 } } }, { "$out": &to }],
            "cursor": {}, "$db": "test",
        })
    };
    let options = doc! { "timeField": "t", "metaField": "m", "granularity": "hours" };
    for _ in 0..2 {
        assert_eq!(number(&out(options.clone()), "ok"), Some(1));
    }
    assert_eq!(code(&out(doc! { "timeField": "t" })), 7_406_103);
    assert_eq!(code(&out(doc! { "timeField": "x" })), 7_406_103);
    let listed =
        client.works(doc! { "listCollections": 1, "filter": { "name": "o" }, "$db": "test" });
    assert_eq!(text(&listed, "cursor.firstBatch.0.type"), Some("timeseries"));
    let indexes = client.works(doc! { "listIndexes": "o", "$db": "test" });
    assert_eq!(text(&indexes, "cursor.firstBatch.0.name"), Some("m_1_t_1"));
    assert!(at(&indexes, "cursor.firstBatch.1").is_none(), "{indexes:?}");
    assert_eq!(number(&client.works(doc! { "count": "o", "$db": "test" }), "n"), Some(5));
    // Without options the target stays a time series.
    let again = doc! {
        "aggregate": "s", "pipeline": [{ "$limit": 3 }, { "$out": "o" }], "cursor": {}, "$db": "test",
    };
    client.works(again);
    assert_eq!(number(&client.works(doc! { "count": "o", "$db": "test" }), "n"), Some(3));
    let plain = doc! {
        "aggregate": "s", "pipeline": [{ "$project": { "t": "$v" } }, { "$out": "o" }],
        "cursor": {}, "$db": "test",
    };
    assert_eq!(code(&client.run(plain)), 2);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn a_time_field_without_an_index_works() {
    let server = Server::new();
    let mut client = server.client(1);
    for (name, field) in [("a", "$price"), ("b", ""), ("c", "_id")] {
        client.works(doc! { "create": name, "timeseries": { "timeField": field }, "$db": "test" });
        let points: ArrayBuf = [2, 1]
            .map(|at| {
                DocBuf::build(|point| {
                    point.append(field, Value::Date(at));
                })
            })
            .iter()
            .collect();
        let inserted = client.works(doc! { "insert": name, "documents": &points, "$db": "test" });
        assert_eq!(number(&inserted, "n"), Some(2), "{field} {inserted:?}");
        let counted = client.works(doc! { "aggregate": name, "pipeline": [{ "$count": "n" }], "cursor": {}, "$db": "test" });
        assert_eq!(number(&counted, "cursor.firstBatch.0.n"), Some(2), "{field}");
    }
    let expiring = doc! { "collMod": "a", "expireAfterSeconds": 1, "$db": "test" };
    assert_eq!(code(&client.run(expiring)), 72);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn points_are_not_written_in_transactions() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut in_transaction = |command: DocBuf, number: i64| {
        let mut command = command;
        command.extend(|fields| {
            let id = Value::Binary(quire_document::Binary { subtype: 4, bytes: &[7; 16] });
            fields.append("$db", "test").append("lsid", &doc! { "id": id });
            fields.append("txnNumber", number).append("startTransaction", true);
            fields.append("autocommit", false);
        });
        client.run(command)
    };
    let points = doc! { "_id": 1, "t": Value::Date(1) };
    let refused = in_transaction(doc! { "insert": "s", "documents": [&points] }, 1);
    assert_eq!(code(&refused), 263, "{refused:?}");
    let delete = doc! { "delete": "s", "deletes": [{ "q": {}, "limit": 0 }] };
    let refused = in_transaction(delete, 2);
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(263), "{refused:?}");
    let read = in_transaction(doc! { "find": "s", "limit": 1 }, 3);
    assert_eq!(number(&read, "cursor.firstBatch.0.v"), Some(0), "{read:?}");
}
