//! Reads with read concern snapshot: one time for a whole cursor, however much is written
//! meanwhile, and an error after that time is no longer kept.

use crate::{Client, Server, at, code, number};
use quire_commands::Topology;
use quire_document::{DocBuf, Timestamp, Value, doc};

const NOT_A_REPLICA_SET: i32 = 123;
const SNAPSHOT_TOO_OLD: i32 = 239;
const INVALID_OPTIONS: i32 = 72;

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents: Vec<_> = (0..300).map(|id| doc! { "_id": id, "v": 0, "k": id }).collect();
    let documents: quire_document::ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    client.works(doc! {
        "createIndexes": "c",
        "indexes": [{ "key": { "k": 1 }, "name": "k_1" }],
        "$db": "test",
    });
    client
}

fn time(reply: &DocBuf, path: &str) -> Timestamp {
    match at(reply, path) {
        Some(Value::Timestamp(time)) => time,
        other => panic!("{path} is no time: {other:?}"),
    }
}

fn snapshot_at(time: Timestamp) -> DocBuf {
    doc! { "level": "snapshot", "atClusterTime": time }
}

/// Returns the sum of `v` over all batches of a cursor, and the number of documents.
fn drain(client: &mut Client, first: &DocBuf, between: impl Fn(&mut Client)) -> (i64, usize) {
    let began = time(first, "cursor.atClusterTime");
    let (mut reply, mut batch) = (first.clone(), "cursor.firstBatch");
    let (mut sum, mut docs) = (0, 0);
    loop {
        for row in at(&reply, batch).unwrap().as_array().unwrap().iter() {
            docs += 1;
            sum += match row.as_document().unwrap().get("v") {
                Some(Value::Int32(v)) => i64::from(v),
                other => panic!("{other:?}"),
            };
        }
        let id = number(&reply, "cursor.id").unwrap();
        if id == 0 {
            return (sum, docs);
        }
        between(client);
        let more = doc! { "getMore": id, "collection": "c", "batchSize": 50, "$db": "test" };
        (reply, batch) = (client.works(more), "cursor.nextBatch");
        assert_eq!(time(&reply, "cursor.atClusterTime"), began, "the time stays");
    }
}

#[test]
fn a_cursor_reads_at_its_first_time() {
    let server = Server::new();
    let mut client = filled(&server);
    let change = |client: &mut Client| {
        let all = doc! { "q": {}, "u": { "$inc": { "v": 1, "k": 1000 } }, "multi": true };
        client.works(doc! { "update": "c", "updates": [&all], "$db": "test" });
        let some = doc! { "q": { "_id": { "$gte": 200 } }, "limit": 0 };
        client.works(doc! { "delete": "c", "deletes": [&some], "$db": "test" });
    };
    for (filter, sort) in [
        (doc! {}, doc! {}),
        (doc! {}, doc! { "_id": -1 }),
        (doc! { "k": { "$gte": 0 } }, doc! { "k": 1 }),
    ] {
        client.works(doc! { "drop": "c", "$db": "test" });
        let mut client = filled(&server);
        let find = doc! {
            "find": "c", "filter": &filter, "sort": &sort, "batchSize": 50,
            "readConcern": { "level": "snapshot" }, "$db": "test",
        };
        let first = client.works(find);
        assert_eq!(drain(&mut client, &first, change), (0, 300), "{filter:?} {sort:?}");
        let then = snapshot_at(time(&first, "cursor.atClusterTime"));
        let again = doc! {
            "aggregate": "c",
            "pipeline": [{ "$match": &filter }, { "$project": { "v": 1 } }],
            "cursor": { "batchSize": 50 }, "readConcern": &then, "$db": "test",
        };
        let first = client.works(again);
        assert_eq!(drain(&mut client, &first, |_| {}), (0, 300), "{filter:?} in a pipeline");
        let values = client.works(doc! {
            "distinct": "c", "key": "v", "readConcern": &then, "$db": "test",
        });
        assert_eq!(at(&values, "values").unwrap().as_array().unwrap().count(), 1);
        assert_eq!(snapshot_at(time(&values, "atClusterTime")), then);
        let now = client.works(doc! { "count": "c", "$db": "test" });
        assert_eq!(number(&now, "n"), Some(200));
    }
}

#[test]
fn a_dropped_and_renamed_collection_is_read_as_it_was() {
    let server = Server::new();
    let mut client = filled(&server);
    let find = |name: &str, concern: &DocBuf| {
        doc! { "find": name, "filter": { "k": 7 }, "readConcern": concern, "$db": "test" }
    };
    let latest = doc! { "level": "snapshot" };
    let then = snapshot_at(time(&client.works(find("c", &latest)), "cursor.atClusterTime"));
    client.works(doc! { "renameCollection": "test.c", "to": "test.d", "$db": "admin" });
    client.works(doc! { "dropIndexes": "d", "index": "k_1", "$db": "test" });
    client.works(doc! { "drop": "d", "$db": "test" });
    let rows = |client: &mut Client, name: &str, concern: &DocBuf| {
        let reply = client.works(find(name, concern));
        at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap().count()
    };
    assert_eq!((rows(&mut client, "c", &then), rows(&mut client, "d", &then)), (1, 0));
    assert_eq!((rows(&mut client, "c", &latest), rows(&mut client, "d", &latest)), (0, 0));
}

#[test]
fn a_time_that_is_not_kept_is_too_old() {
    let server = Server::with(&[("minSnapshotHistoryWindowInSeconds", "0")]);
    let mut client = filled(&server);
    let find = doc! {
        "find": "c", "filter": {}, "batchSize": 50, "readConcern": { "level": "snapshot" },
        "$db": "test",
    };
    let first = client.works(find);
    let id = number(&first, "cursor.id").unwrap();
    let more = || doc! { "getMore": id, "collection": "c", "batchSize": 50, "$db": "test" };
    client.works(more());
    client.works(doc! { "insert": "other", "documents": [{ "_id": 1 }], "$db": "test" });
    assert_eq!(code(&client.run(more())), SNAPSHOT_TOO_OLD);
    let then = snapshot_at(time(&first, "cursor.atClusterTime"));
    let find = doc! { "find": "c", "filter": {}, "readConcern": &then, "$db": "test" };
    assert_eq!(code(&client.run(find)), SNAPSHOT_TOO_OLD);
    assert_eq!(number(&client.works(doc! { "count": "c", "$db": "test" }), "n"), Some(300));
}

#[test]
fn reads_without_a_snapshot_are_refused() {
    let server = Server::new();
    let mut client = filled(&server);
    let concern = doc! { "level": "snapshot" };
    for command in [
        doc! { "count": "c", "readConcern": &concern, "$db": "test" },
        doc! { "listCollections": 1, "readConcern": &concern, "$db": "test" },
        doc! { "insert": "c", "documents": [{}], "readConcern": &concern, "$db": "test" },
        doc! {
            "aggregate": "c", "pipeline": [{ "$collStats": { "count": {} } }], "cursor": {},
            "readConcern": &concern, "$db": "test",
        },
    ] {
        assert_eq!(code(&client.run(command.clone())), INVALID_OPTIONS, "{command:?}");
    }
    let mut client = Server::of(Topology::Standalone).client(1);
    let find = doc! { "find": "c", "filter": {}, "readConcern": &concern, "$db": "test" };
    assert_eq!(code(&client.run(find)), NOT_A_REPLICA_SET);
}

#[test]
fn a_get_more_has_the_read_concern_of_its_cursor() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    let find =
        doc! { "find": "c", "batchSize": 1, "readConcern": { "level": "snapshot" }, "$db": "test" };
    let found = client.works(find);
    let time = at(&found, "cursor.atClusterTime").unwrap();
    let concern = doc! { "level": "snapshot", "atClusterTime": time };
    let get_more = |concern: &DocBuf| {
        doc! {
            "getMore": at(&found, "cursor.id").unwrap(),
            "collection": "c",
            "readConcern": concern,
            "$db": "test"
        }
    };
    assert_eq!(code(&client.run(get_more(&doc! { "afterClusterTime": time }))), INVALID_OPTIONS);
    client.works(get_more(&concern));
}
