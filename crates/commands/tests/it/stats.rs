//! Counts, sizes and counters: `dbStats`, `dataSize`, `collStats`, `dbHash`, `top`,
//! `serverStatus`.

use crate::{Client, Server, at, code, number, text};
use quire_document::{DocBuf, Value, doc};

/// Returns a collection `test.c` with ten documents and an index on `x`.
fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    for id in 0..10 {
        let insert = doc! { "insert": "c", "documents": [{ "_id": id, "x": id }], "$db": "test" };
        client.works(insert);
    }
    let indexes = doc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }], "$db": "test" };
    client.works(indexes);
    client
}

fn double(reply: &DocBuf, path: &str) -> f64 {
    match at(reply, path) {
        Some(Value::Double(number)) => number,
        other => panic!("{path} is no double: {other:?}"),
    }
}

/// The bytes of `{_id: <int>, x: <int>}`.
const DOC_BYTES: i64 = 4 + 1 + 4 + 4 + 1 + 2 + 4 + 1;

#[test]
fn db_stats_counts_and_scales() {
    let server = Server::new();
    let mut client = filled(&server);
    let stats = client.works(doc! { "dbStats": 1, "$db": "test" });
    assert_eq!(number(&stats, "collections"), Some(1));
    assert_eq!(number(&stats, "objects"), Some(10));
    assert_eq!(number(&stats, "indexes"), Some(2));
    assert_eq!(double(&stats, "dataSize"), (10 * DOC_BYTES) as f64);
    assert_eq!(double(&stats, "avgObjSize"), DOC_BYTES as f64);
    let sum = double(&stats, "storageSize") + double(&stats, "indexSize");
    assert_eq!(double(&stats, "totalSize"), sum);
    assert!(at(&stats, "freeStorageSize").is_none());
    let scaled = client.works(doc! { "dbStats": 1, "scale": 100, "freeStorage": 1, "$db": "test" });
    assert_eq!(double(&scaled, "dataSize"), (10 * DOC_BYTES) as f64 / 100.0);
    assert_eq!(double(&scaled, "avgObjSize"), DOC_BYTES as f64);
    assert_eq!(double(&scaled, "totalFreeStorageSize"), 0.0);
    let none = client.works(doc! { "dbStats": 1, "$db": "none" });
    assert_eq!((number(&none, "objects"), double(&none, "avgObjSize")), (Some(0), 0.0));
    assert_eq!(code(&client.run(doc! { "dbStats": 1, "scale": 0, "$db": "test" })), 2);
    assert_eq!(code(&client.run(doc! { "dbStats": 1, "bogus": 0, "$db": "test" })), 40415);
}

#[test]
fn the_catalog_lists_one_database_or_all() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "create": "b", "viewOn": "c", "$db": "test" });
    client.works(doc! { "create": "x", "$db": "other" });
    let list = |client: &mut Client, db: &str, options: DocBuf| {
        let stage = doc! { "$listClusterCatalog": &options };
        client.works(doc! { "aggregate": 1, "pipeline": [&stage], "cursor": {}, "$db": db })
    };
    let test = list(&mut client, "test", doc! {});
    let names = ["test.b", "test.c", "test.system.views"];
    for (at, name) in names.iter().enumerate() {
        assert_eq!(text(&test, &format!("cursor.firstBatch.{at}.ns")), Some(*name));
    }
    assert!(at(&test, "cursor.firstBatch.3").is_none());
    assert_eq!(text(&test, "cursor.firstBatch.0.type"), Some("view"));
    assert_eq!(text(&test, "cursor.firstBatch.0.options.viewOn"), Some("c"));
    assert_eq!(text(&test, "cursor.firstBatch.1.idIndex.name"), Some("_id_"));
    assert!(at(&test, "cursor.firstBatch.1.shards").is_none());
    let all = list(&mut client, "admin", doc! { "shards": true });
    assert_eq!(text(&all, "cursor.firstBatch.0.ns"), Some("other.x"));
    assert_eq!(text(&all, "cursor.firstBatch.2.ns"), Some("test.c"));
    assert!(at(&all, "cursor.firstBatch.0.shards").is_some());
    let none = list(&mut client, "none", doc! {});
    assert!(at(&none, "cursor.firstBatch.0").is_none());
    let of_collection = doc! {
        "aggregate": "c", "pipeline": [{ "$listClusterCatalog": {} }], "cursor": {}, "$db": "test"
    };
    assert_eq!(code(&client.run(of_collection)), 9_621_301);
}

#[test]
fn data_size_counts_all_or_a_range() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut sizes = |command: DocBuf| {
        let found = client.works(command);
        (number(&found, "numObjects").unwrap(), number(&found, "size").unwrap())
    };
    let all = doc! { "dataSize": "test.c", "$db": "test" };
    assert_eq!(sizes(all), (10, 10 * DOC_BYTES));
    let range = |min: i32, max: i32| {
        doc! { "dataSize": "test.c", "keyPattern": { "x": 1 }, "min": { "x": min }, "max": { "x": max }, "$db": "test" }
    };
    assert_eq!(sizes(range(2, 5)), (3, 3 * DOC_BYTES));
    assert_eq!(sizes(range(5, 5)), (0, 0));
    assert_eq!(sizes(range(7, 3)), (0, 0));
    let mut estimated = range(2, 5);
    estimated.append("estimate", true);
    assert_eq!(sizes(estimated), (3, 3 * DOC_BYTES));
    assert_eq!(sizes(doc! { "dataSize": "test.none", "$db": "test" }), (0, 0));
    let mut fails = |command: DocBuf| code(&client.run(command));
    assert_eq!(fails(doc! { "dataSize": "nodot", "$db": "test" }), 73);
    let open = doc! { "dataSize": "test.c", "min": { "x": 1 }, "$db": "test" };
    assert_eq!(fails(open), 2);
    let no_index = doc! { "dataSize": "test.c", "keyPattern": { "y": 1 }, "min": { "y": 1 }, "max": { "y": 2 }, "$db": "test" };
    assert_eq!(fails(no_index), 96);
    let other_names = doc! { "dataSize": "test.c", "keyPattern": { "x": 1 }, "min": { "x": 1 }, "max": { "y": 2 }, "$db": "test" };
    assert_eq!(fails(other_names), 16634);
}

#[test]
fn equal_collections_have_equal_hashes() {
    let server = Server::new();
    let mut client = server.client(1);
    // The order of insertion does not matter, the content does.
    for (name, ids) in [("a", [1, 2]), ("b", [2, 1]), ("c", [1, 3])] {
        for id in ids {
            client.works(doc! { "insert": name, "documents": [{ "_id": id }], "$db": "test" });
        }
    }
    let hashes = client.works(doc! { "dbHash": 1, "$db": "test" });
    let hash = |name: &str| text(&hashes, &format!("collections.{name}")).unwrap();
    assert_eq!(hash("a"), hash("b"));
    assert_ne!(hash("a"), hash("c"));
    assert_eq!(hash("a").len(), 32);
    let some = client.works(doc! { "dbHash": 1, "collections": ["c"], "$db": "test" });
    assert_eq!(text(&some, "collections.c"), Some(hash("c")));
    assert!(at(&some, "collections.a").is_none());
    assert_eq!(code(&client.run(doc! { "dbHash": 1, "collections": [1], "$db": "test" })), 2);
}

#[test]
fn top_and_latency_stats_tell_the_use_of_a_collection() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "find": "c", "$db": "test" });
    client.works(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "y": 1 } } }], "$db": "test" });
    client.works(
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 2 }, "limit": 1 }], "$db": "test" },
    );
    client.works(doc! { "count": "c", "$db": "test" });
    let top = client.works(doc! { "top": 1, "$db": "admin" });
    let used = top.get("totals").unwrap().as_document().unwrap().get("test.c").unwrap();
    let used = used.as_document().unwrap().to_owned();
    let count = |class: &str| number(&used, &format!("{class}.count")).unwrap();
    // createIndexes and count belong to the class "commands".
    let found = ["insert", "queries", "update", "remove", "commands", "getmore"].map(count);
    assert_eq!(found, [10, 1, 1, 1, 2, 0]);
    assert_eq!((count("total"), count("readLock"), count("writeLock")), (15, 2, 13));
    let stage = doc! {
        "aggregate": "c",
        "pipeline": [{ "$collStats": { "latencyStats": { "histograms": true }, "queryExecStats": {} } }],
        "cursor": {},
        "$db": "test"
    };
    let reply = client.works(stage);
    let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    let stats = batch.get(0).unwrap().as_document().unwrap().to_owned();
    assert_eq!(number(&stats, "latencyStats.reads.ops"), Some(2));
    assert_eq!(number(&stats, "latencyStats.writes.ops"), Some(13));
    let histogram = at(&stats, "latencyStats.writes.histogram").unwrap().as_array().unwrap();
    let counts =
        histogram.iter().filter_map(|bucket| match bucket.as_document()?.get("count")? {
            Value::Int64(count) => Some(count),
            _ => None,
        });
    assert_eq!(counts.sum::<i64>(), 13);
    assert_eq!(number(&stats, "queryExecStats.collectionScans.total"), Some(1));
    client.works(doc! { "drop": "c", "$db": "test" });
    client.works(doc! { "create": "c", "$db": "test" });
    let top = client.works(doc! { "top": 1, "$db": "admin" });
    let totals = top.get("totals").unwrap().as_document().unwrap();
    let again = totals.get("test.c").unwrap().as_document().unwrap().to_owned();
    assert_eq!(number(&again, "total.count"), Some(1));
}

#[test]
fn server_status_counts_what_happened() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "find": "c", "filter": { "x": 3 }, "$db": "test" });
    client.works(doc! { "find": "c", "sort": { "y": 1 }, "$db": "test" });
    client.run(doc! { "find": "c", "filter": { "$bogus": 1 }, "$db": "test" });
    client.run(doc! { "noSuchCommand": 1, "$db": "test" });
    let status = client
        .works(doc! { "serverStatus": 1, "opLatencies": { "histograms": true }, "$db": "admin" });
    assert_eq!(number(&status, "metrics.commands.find.total"), Some(3));
    assert_eq!(number(&status, "metrics.commands.find.failed"), Some(1));
    assert_eq!(number(&status, "metrics.commands.<UNKNOWN>"), Some(1));
    assert_eq!(number(&status, "metrics.document.inserted"), Some(10));
    assert_eq!(number(&status, "metrics.document.returned"), Some(11));
    assert_eq!(number(&status, "metrics.operation.scanAndOrder"), Some(1));
    assert_eq!(number(&status, "metrics.queryExecutor.scanned"), Some(1));
    assert_eq!(number(&status, "metrics.queryExecutor.scannedObjects"), Some(11));
    assert_eq!(number(&status, "metrics.queryExecutor.collectionScans.total"), Some(1));
    assert_eq!(number(&status, "catalogStats.collections"), Some(1));
    assert_eq!(number(&status, "opcounters.insert"), Some(10));
    assert_eq!(number(&status, "opLatencies.reads.ops"), Some(3));
    assert!(at(&status, "opLatencies.reads.histogram").is_some());
    assert!(at(&status, "mirroredReads").is_none());
    let chosen = doc! { "serverStatus": 1, "metrics": 0, "locks": false, "mirroredReads": 1, "$db": "admin" };
    let status = client.works(chosen);
    assert!(at(&status, "metrics").is_none() && at(&status, "locks").is_none());
    assert!(at(&status, "mirroredReads").is_some() && at(&status, "mem").is_some());
    assert!(at(&status, "opLatencies.reads.histogram").is_none());
    let only = client.works(doc! { "serverStatus": 1, "none": 1, "mem": 1, "$db": "admin" });
    assert!(at(&only, "mem").is_some() && at(&only, "connections").is_none());
}

#[test]
fn small_commands_answer_in_the_shape_that_tools_read() {
    let server = Server::new();
    let mut client = server.client(1);
    let pools = client.works(doc! { "connPoolStats": 1, "$db": "admin" });
    assert_eq!((number(&pools, "totalInUse"), number(&pools, "totalCreated")), (Some(0), Some(0)));
    assert!(number(&client.works(doc! { "features": 1, "$db": "admin" }), "oidMachine").is_some());
    client.works(
        doc! { "dropConnections": 1, "hostAndPort": ["a:1", "[::1]:2", "c"], "$db": "admin" },
    );
    for bad in [":1", "a:0", "a:x", "", "a:b:1", "[::1", "a:99999"] {
        let drop = doc! { "dropConnections": 1, "hostAndPort": [bad], "$db": "admin" };
        assert_eq!(code(&client.run(drop)), 9, "{bad}");
    }
    assert_eq!(code(&client.run(doc! { "dropConnections": 1, "$db": "admin" })), 40414);
}

#[test]
fn the_catalog_is_checked_against_an_api_version() {
    let server = Server::new();
    let mut client = filled(&server);
    let sparse = doc! { "createIndexes": "c", "indexes": [{ "key": { "y": 1 }, "name": "y_1", "sparse": true }], "$db": "test" };
    client.works(sparse);
    let errors = |reply: DocBuf| reply.get("apiVersionErrors").unwrap().as_array().unwrap().count();
    let check = |strict: bool, db: &str| {
        doc! { "validateDBMetadata": 1, "apiParameters": { "version": "1", "strict": strict }, "db": db, "$db": "admin" }
    };
    assert_eq!(errors(client.works(check(true, "test"))), 1);
    assert_eq!(errors(client.works(check(true, "other"))), 0);
    assert_eq!(errors(client.works(check(false, "test"))), 0);
    assert_eq!(code(&client.run(check(true, "a.b"))), 73);
    assert_eq!(code(&client.run(check(true, ""))), 28539);
    assert_eq!(code(&client.run(doc! { "validateDBMetadata": 1, "$db": "admin" })), 40414);
}
