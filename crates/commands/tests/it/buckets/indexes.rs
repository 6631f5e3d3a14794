//! Which collections have buckets, what plans and statistics show of them, and expiry.

use super::sources::sum;
use super::{all, bucket_count, close, closing_server, create, insert};
use crate::{Client, Server, at, code, number, text};
use quire_collections::{check, expire_documents};
use quire_document::{DocBuf, Value, doc};
use quire_storage::Interrupt;

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    create(&mut client, "s");
    let points: Vec<DocBuf> = (0..400)
        .map(|n| {
            let place = doc! { "type": "Point", "coordinates": [(f64::from(n) / 10.0), 5.0] };
            doc! { "t": Value::Date(i64::from(n) * 100), "m": (n % 4), "_id": n, "v": (n % 9), "p": &place }
        })
        .collect();
    insert(&mut client, "s", &points);
    client
}

fn count(client: &mut Client, filter: DocBuf) -> usize {
    all(client, doc! { "find": "s", "filter": &filter }, 1000).len()
}

#[test]
fn closing_is_on_unless_it_was_turned_off() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "setParameter": 1, "quireTimeSeriesClosing": false, "$db": "admin" });
    assert_eq!(close(&mut client, "s"), 0);
    client.works(doc! { "setParameter": 1, "quireTimeSeriesClosing": true, "$db": "admin" });
    assert!(close(&mut client, "s") > 0);
    client.works(doc! { "setParameter": 1, "quireTimeSeriesClosing": false, "$db": "admin" });
    assert_eq!(count(&mut client, doc! { "m": 2 }), 100);
}

#[test]
fn changes_of_the_options_and_refused_commands_leave_buckets_as_they_are() {
    let server = closing_server();
    let mut client = filled(&server);
    let buckets = close(&mut client, "s");
    let points = all(&mut client, doc! { "find": "s" }, 1000);
    let longer = doc! { "bucketMaxSpanSeconds": 20, "bucketRoundingSeconds": 20 };
    client.works(doc! { "collMod": "s", "timeseries": &longer, "$db": "test" });
    for refused in [
        doc! { "renameCollection": "test.s", "to": "test.r", "$db": "admin" },
        doc! { "convertToCapped": "s", "size": 100_000, "$db": "test" },
        doc! { "cloneCollectionAsCapped": "s", "toCollection": "r", "size": 100_000, "$db": "test" },
    ] {
        assert_eq!(code(&client.run(refused.clone())), 166, "{refused:?}");
    }
    assert_eq!(bucket_count(&mut client, "s"), buckets);
    assert_eq!(all(&mut client, doc! { "find": "s" }, 1000), points);
    // New points use the longer span.
    let later: Vec<DocBuf> = (0..200)
        .map(|n| doc! { "t": Value::Date(100_000 + n * 99), "m": 1, "_id": (n + 1000) })
        .collect();
    insert(&mut client, "s", &later);
    assert_eq!(close(&mut client, "s"), buckets + 1);
    assert_eq!(count(&mut client, doc! { "m": 1 }), 300);
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
    client.works(doc! { "drop": "s", "$db": "test" });
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
    assert_eq!(count(&mut client, doc! {}), 0);
}

#[test]
fn an_index_that_needs_all_points_reopens_the_buckets() {
    let near = doc! { "$geoNear": {
        "near": { "type": "Point", "coordinates": [0.0, 5.0] }, "key": "p", "distanceField": "d",
    } };
    let expiring = doc! {
        "key": { "t": 1 }, "name": "x", "expireAfterSeconds": 1_000_000_000,
        "partialFilterExpression": { "m": 1 },
    };
    for index in [doc! { "key": { "p": "2dsphere" }, "name": "p" }, expiring] {
        let server = closing_server();
        let mut client = filled(&server);
        assert!(close(&mut client, "s") > 0);
        client.works(doc! { "createIndexes": "s", "indexes": [&index], "$db": "test" });
        assert_eq!(bucket_count(&mut client, "s"), 0);
        assert_eq!(close(&mut client, "s"), 0, "they stay records");
        if index.get("expireAfterSeconds").is_none() {
            let found = doc! { "aggregate": "s", "pipeline": [&near] };
            assert_eq!(all(&mut client, found, 1000).len(), 400);
        }
        client.works(
            doc! { "dropIndexes": "s", "index": (index.get("name").unwrap()), "$db": "test" },
        );
        assert!(close(&mut client, "s") > 0);
        assert!(check(server.0.store(), false).unwrap().findings.is_empty());
    }
}

#[test]
fn an_index_of_a_measurement_finds_records_and_leaves_buckets_alone() {
    let server = closing_server();
    let mut client = filled(&server);
    let buckets = close(&mut client, "s");
    for index in
        [doc! { "key": { "v": 1 }, "name": "v" }, doc! { "key": { "v": 1, "w": 1 }, "name": "vw" }]
    {
        client.works(doc! { "createIndexes": "s", "indexes": [&index], "$db": "test" });
    }
    assert_eq!(bucket_count(&mut client, "s"), buckets);
    let more = doc! { "t": Value::Date(1), "m": 1, "_id": 1000, "v": 3 };
    insert(&mut client, "s", &[more]);
    assert_eq!(count(&mut client, doc! { "v": 3 }), 46);
    let counted =
        client.works(doc! { "count": "s", "query": { "v": 3 }, "hint": "v", "$db": "test" });
    assert_eq!(number(&counted, "n"), Some(46));
    let command = doc! { "find": "s", "filter": { "v": 3 }, "projection": { "v": 1, "_id": 0 } };
    assert_eq!(all(&mut client, command, 1000), vec![doc! { "v": 3 }; 46]);
}

/// A compound index refuses documents with two arrays, also those that are in buckets.
#[test]
fn a_point_in_a_bucket_that_an_index_refuses_stops_its_build() {
    let server = closing_server();
    let mut client = filled(&server);
    let arrays = doc! { "t": Value::Date(50), "m": 1, "_id": 1000, "a": [1, 2], "b": [1, 2] };
    insert(&mut client, "s", &[arrays]);
    close(&mut client, "s");
    let index = doc! { "key": { "a": 1, "b": 1 }, "name": "ab" };
    let refused = client.run(doc! { "createIndexes": "s", "indexes": [&index], "$db": "test" });
    assert_eq!(code(&refused), 171, "{refused:?}");
    assert!(bucket_count(&mut client, "s") > 0);
    assert_eq!(count(&mut client, doc! {}), 401);
}

#[test]
fn explain_tells_how_many_buckets_were_unpacked() {
    let server = closing_server();
    let mut client = filled(&server);
    let buckets = close(&mut client, "s");
    let explained = |client: &mut Client, command: DocBuf| {
        client.works(doc! { "explain": &command, "verbosity": "executionStats", "$db": "test" })
    };
    let times = doc! { "$gte": Value::Date(0), "$lt": Value::Date(5_000) };
    let found = explained(&mut client, doc! { "find": "s", "filter": { "m": 1, "t": &times } });
    assert_eq!(number(&found, "executionStats.nReturned"), Some(13), "{found:?}");
    assert_eq!(number(&found, "executionStats.totalDocsExamined"), Some(13));
    let scan = "executionStats.executionStages.inputStages.1";
    assert_eq!(text(&found, &format!("{scan}.stage")), Some("UNPACK_TS_BUCKET"));
    assert_eq!(number(&found, &format!("{scan}.bucketsUnpacked")), Some(1));
    let counted = explained(&mut client, doc! { "count": "s", "query": { "m": 1 } });
    assert_eq!(number(&counted, "executionStats.totalDocsExamined"), Some(0), "{counted:?}");
    let by_time = explained(&mut client, doc! { "find": "s", "sort": { "t": -1 }, "limit": 1 });
    assert_eq!(text(&by_time, "queryPlanner.winningPlan.stage"), Some("LIMIT"), "{by_time:?}");
    let unpacked = "executionStats.executionStages.inputStage.inputStages.1.bucketsUnpacked";
    assert!(number(&by_time, unpacked).unwrap() < buckets, "{by_time:?}");
}

#[test]
fn explain_of_writes_counts_the_points_of_buckets_and_writes_none() {
    let server = closing_server();
    let mut client = filled(&server);
    let buckets = close(&mut client, "s");
    let deletes =
        doc! { "delete": "s", "deletes": [{ "q": { "m": 3, "v": { "$lt": 3 } }, "limit": 0 }] };
    let change = doc! { "q": { "m": 3 }, "u": { "$set": { "m": 7 } }, "multi": true };
    let remove = doc! { "findAndModify": "s", "query": { "m": 2 }, "remove": true };
    for (command, field, expected) in [
        (deletes, "nWouldDelete", 33),
        (doc! { "update": "s", "updates": [&change] }, "nWouldModify", 100),
        (remove, "nWouldDelete", 1),
    ] {
        let verbosity = "executionStats";
        let shown =
            client.works(doc! { "explain": &command, "verbosity": verbosity, "$db": "test" });
        let stage = at(&shown, "executionStats.executionStages").unwrap();
        assert_eq!(sum(stage, field), expected, "{shown:?}");
        assert!(sum(stage, "bucketsUnpacked") > 0, "{shown:?}");
    }
    assert_eq!((count(&mut client, doc! {}), bucket_count(&mut client, "s")), (400, buckets));
}

/// Returns the dates in a value that are no date of the years from 0 to 9999: many drivers cannot read them.
fn strange_dates(value: Value<'_>) -> Vec<i64> {
    match value {
        Value::Date(ms) if !(-62_167_219_200_000..253_402_300_800_000).contains(&ms) => vec![ms],
        Value::Document(doc) => doc.fields().flat_map(|(_, value)| strange_dates(value)).collect(),
        Value::Array(list) => list.iter().flat_map(strange_dates).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn explain_shows_no_date_that_drivers_cannot_read() {
    let server = closing_server();
    let mut client = filled(&server);
    for closes in [false, true] {
        if closes {
            close(&mut client, "s");
        }
        let time = Value::Date(5_000);
        for filter in [
            doc! { "t": { "$gte": time } },
            doc! { "t": { "$lt": time } },
            doc! { "t": { "$gt": time }, "m": 2 },
            doc! { "t": { "$gt": time, "$lt": Value::Date(10) } },
        ] {
            let find = doc! { "find": "s", "filter": &filter };
            let index = doc! { "create": [{ "key": { "v": 1 } }] };
            let shown = client.works(doc! { "explain": &find, "whatIf": &index, "$db": "test" });
            assert_eq!(strange_dates(Value::from(shown.as_doc())), [0_i64; 0], "{shown:?}");
        }
    }
}

#[test]
fn whole_buckets_expire_and_are_deleted_by_source_and_time() {
    let server = closing_server();
    let mut client = filled(&server);
    assert_eq!(close(&mut client, "s"), 16);
    let hinted = doc! { "q": { "m": 3 }, "limit": 0, "hint": "nothing" };
    let refused = client.run(doc! { "delete": "s", "deletes": [&hinted], "$db": "test" });
    assert_eq!(number(&refused, "writeErrors.0.code"), Some(2), "{refused:?}");
    assert_eq!(bucket_count(&mut client, "s"), 16, "a delete that fails deletes nothing");
    let delete = |client: &mut Client, filter: DocBuf| {
        let one = doc! { "q": &filter, "limit": 0 };
        number(&client.works(doc! { "delete": "s", "deletes": [&one], "$db": "test" }), "n")
    };
    assert_eq!(delete(&mut client, doc! { "m": 3 }), Some(100));
    assert_eq!(bucket_count(&mut client, "s"), 12);
    let times = doc! { "$lt": Value::Date(5_000) };
    assert_eq!(delete(&mut client, doc! { "m": 2, "t": &times }), Some(12));
    assert_eq!(count(&mut client, doc! {}), 288);
    close(&mut client, "s");
    client.works(doc! { "collMod": "s", "expireAfterSeconds": 1, "$db": "test" });
    let expire =
        |now_ms| expire_documents(server.0.store(), now_ms, &Interrupt::new()).unwrap().deleted;
    // The points from 10,000 on of a bucket that begins before live as long as its last one.
    let deleted = expire(1_000 + 10_000) as usize;
    let left = all(&mut client, doc! { "find": "s" }, 1000);
    assert_eq!(left.len() + deleted, 288);
    let is_late =
        |point: &DocBuf| matches!(point.get("t"), Some(Value::Date(time)) if time > 10_000);
    assert_eq!((left.len(), left.iter().filter(|point| is_late(point)).count()), (225, 224));
    assert_eq!(expire(i64::MAX / 2), left.len() as u64);
    assert_eq!((count(&mut client, doc! {}), bucket_count(&mut client, "s")), (0, 0));
    assert!(check(server.0.store(), false).unwrap().findings.is_empty());
}

#[test]
fn validate_and_db_hash_read_buckets() {
    let server = closing_server();
    let mut client = filled(&server);
    let hash = |client: &mut Client| {
        let reply = client.works(doc! { "dbHash": 1, "$db": "test" });
        let hashes = at(&reply, "collections").unwrap().as_document().unwrap();
        hashes.get("system.buckets.s").unwrap().as_str().unwrap().to_owned()
    };
    let before = hash(&mut client);
    close(&mut client, "s");
    assert_eq!(hash(&mut client), before);
    let valid = client.works(doc! { "validate": "s", "$db": "test" });
    assert_eq!(number(&valid, "nrecords"), Some(400), "{valid:?}");
    let stats = client.works(doc! { "collStats": "s", "$db": "test" });
    let bytes: usize = all(&mut client, doc! { "find": "s" }, 1000)
        .iter()
        .map(|point| point.as_bytes().len())
        .sum();
    assert_eq!(number(&stats, "size"), Some(bytes as i64));
}
