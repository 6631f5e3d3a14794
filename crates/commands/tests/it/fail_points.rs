//! `configureFailPoint`: commands fail in the way, in the namespaces and as often as a test sets.

use crate::{Server, at, code, number, text};
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};
use quire_storage::{Interrupt, Interruption};
use std::time::{Duration, Instant};

fn fail(mode: DocBuf, data: DocBuf) -> DocBuf {
    let mode = mode.get("mode").unwrap();
    doc! { "configureFailPoint": "failCommand", "mode": mode, "data": &data, "$db": "admin" }
}

fn always() -> DocBuf {
    doc! { "mode": "alwaysOn" }
}

fn off() -> DocBuf {
    doc! { "configureFailPoint": "failCommand", "mode": "off", "$db": "admin" }
}

fn ping() -> DocBuf {
    doc! { "ping": 1, "$db": "test" }
}

#[test]
fn it_exists_only_where_test_commands_are_on() {
    let server = Server::with(&[]);
    let mut client = server.client(1);
    assert_eq!(code(&client.run(off())), 59);
    let listed = client.works(doc! { "listCommands": 1, "$db": "admin" });
    assert!(at(&listed, "commands.configureFailPoint").is_none());
    let server = Server::new();
    let mut client = server.client(1);
    client.works(off());
    let listed = client.works(doc! { "listCommands": 1, "$db": "admin" });
    assert!(at(&listed, "commands.configureFailPoint").is_some());
    let unknown = doc! { "configureFailPoint": "noSuchPoint", "mode": "off", "$db": "admin" };
    assert_eq!(code(&client.run(unknown)), 266);
}

#[test]
fn commands_fail_as_often_as_configured() {
    let server = Server::new();
    let mut client = server.client(1);
    let data = || doc! { "failCommands": ["ping"], "errorCode": 91 };
    client.works(fail(doc! { "mode": { "times": 2 } }, data()));
    let codes: Vec<i32> = (0..3).map(|_| code(&client.run(ping()))).collect();
    assert_eq!(codes, [91, 91, 0]);
    let set = client.works(fail(doc! { "mode": { "skip": 1 } }, data()));
    assert_eq!(number(&set, "count"), Some(2));
    let codes: Vec<i32> = (0..3).map(|_| code(&client.run(ping()))).collect();
    assert_eq!(codes, [0, 91, 91]);
    client.works(doc! { "hello": 1, "$db": "admin" });
    client.works(fail(doc! { "mode": { "activationProbability": 0.0 } }, data()));
    client.works(ping());
    client.works(off());
    client.works(ping());
}

#[test]
fn a_failing_command_does_nothing_and_returns_the_configured_error() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(fail(
        always(),
        doc! { "failCommands": ["insert"], "errorCode": 10107, "errorLabels": ["A", "B"] },
    ));
    let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" };
    let reply = client.run(insert.clone());
    assert_eq!(code(&reply), 10107);
    assert_eq!(text(&reply, "codeName"), Some("NotWritablePrimary"));
    let labels: Vec<_> = reply
        .get("errorLabels")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|label| label.as_str())
        .collect();
    assert_eq!(labels, [Some("A"), Some("B")]);
    client.works(off());
    client.works(insert);
}

#[test]
fn a_write_concern_error_joins_the_reply_of_a_write_that_happened() {
    let server = Server::new();
    let mut client = server.client(1);
    let error = doc! { "code": 91, "errmsg": "Replication is being shut down" };
    client.works(fail(
        doc! { "mode": { "times": 1 } },
        doc! { "failCommands": ["insert"], "writeConcernError": &error, "errorLabels": ["L"] },
    ));
    let reply = client.run(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    assert_eq!(number(&reply, "n"), Some(1));
    assert_eq!(number(&reply, "writeConcernError.code"), Some(91));
    assert!(reply.get("errorLabels").is_some());
    assert_eq!(number(&reply, "ok"), Some(1));
    let found = client.works(doc! { "count": "c", "$db": "test" });
    assert_eq!(number(&found, "n"), Some(1));
    // A retryable write with this error may be repeated.
    client.works(fail(
        doc! { "mode": { "times": 2 } },
        doc! { "failCommands": ["insert"], "writeConcernError": &error },
    ));
    let mut insert = doc! { "insert": "c", "documents": [{ "_id": 2 }], "$db": "test" };
    assert!(client.run(insert.clone()).get("errorLabels").is_none());
    let id = Value::Binary(Binary { subtype: 4, bytes: &[7; 16] });
    insert.append("lsid", &doc! { "id": id }).append("txnNumber", 1_i64);
    let labels = client.run(insert);
    let labels = labels.get("errorLabels").and_then(|labels| labels.as_array()).unwrap();
    assert_eq!(labels.iter().next().and_then(|label| label.as_str()), Some("RetryableWriteError"));
}

#[test]
fn only_the_named_client_namespace_and_thread_are_hit() {
    let server = Server::new();
    let (mut named, mut other) = (server.client(7), server.client(8));
    let client = doc! {
        "application": { "name": "victim" },
        "driver": { "name": "d", "version": "1" },
        "os": { "type": "Linux" }
    };
    named.works(doc! { "hello": 1, "client": &client, "$db": "admin" });
    let data = |field: &str, value: &str| {
        doc! { "failCommands": ["find", "hello"], "errorCode": 2, field: value }
    };
    let find = || doc! { "find": "c", "$db": "test" };
    other.works(fail(always(), data("appName", "victim")));
    assert_eq!((code(&named.run(find())), code(&other.run(find()))), (2, 0));
    // The fault already applies to the hello that contains the name.
    let hello = doc! { "hello": 1, "client": &client, "$db": "admin" };
    assert_eq!(code(&server.client(9).run(hello)), 2);
    other.works(fail(always(), data("threadName", "conn8")));
    assert_eq!((code(&named.run(find())), code(&other.run(find()))), (0, 2));
    other.works(fail(always(), data("namespace", "test.c")));
    let elsewhere = doc! { "find": "d", "$db": "test" };
    assert_eq!((code(&named.run(find())), code(&other.run(elsewhere))), (2, 0));
}

#[test]
fn a_connection_closes_and_a_block_ends_at_its_time_or_by_an_interruption() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(fail(always(), doc! { "failCommands": ["ping"], "closeConnection": true }));
    assert!(client.exchange(&ping(), Interrupt::new()).1.hang_up);
    let block =
        |ms: i32| doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": ms };
    client.works(fail(always(), block(30)));
    let began = Instant::now();
    client.works(ping());
    assert!(began.elapsed() >= Duration::from_millis(30));
    client.works(fail(always(), block(60_000)));
    let limited = doc! { "ping": 1, "maxTimeMS": 20, "$db": "test" };
    assert_eq!(code(&client.run(limited)), 50);
    let killed = Interrupt::new();
    killed.kill(Interruption::Killed);
    assert_eq!(code(&client.exchange(&ping(), killed).0), 11601);
}

/// Each command searched the list of a fail point, and copies of its labels were in each reply:
/// both could have megabytes.
#[test]
fn absurd_data_is_refused_or_does_no_harm() {
    let server = Server::new();
    let mut client = server.client(1);
    let names: ArrayBuf = (0..100_000).map(|_| "find").collect();
    let long = "x".repeat(100_000);
    for data in [
        doc! { "failCommands": &names, "errorCode": 1 },
        doc! { "failCommands": ["ping"], "errorCode": 1, "errorLabels": &names },
        doc! { "failCommands": ["ping"], "errorCode": 1, "errorExtraInfo": { "x": long.as_str() } },
        doc! { "failCommands": ["ping"], "writeConcernError": { "code": 1, "errmsg": long.as_str() } },
        doc! { "failCommands": ["ping"], "appName": long.as_str(), "errorCode": 1 },
        doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": -1 },
    ] {
        assert_ne!(code(&client.run(fail(always(), data))), 0);
        client.works(ping());
    }
    for mode in [
        doc! { "mode": { "times": (i64::MAX) } },
        doc! { "mode": { "times": -1 } },
        doc! { "mode": { "skip": (i64::MIN) } },
        doc! { "mode": { "activationProbability": 1e300 } },
    ] {
        let data = doc! { "failCommands": ["ping"], "errorCode": 1 };
        assert_ne!(code(&client.run(fail(mode, data))), 0);
        client.works(ping());
    }
    for at in 0..1000 {
        let unknown = doc! { "configureFailPoint": (format!("point{at}").as_str()), "mode": "alwaysOn", "$db": "admin" };
        assert_eq!(code(&client.run(unknown)), 266);
    }
    let block =
        doc! { "failCommands": ["ping"], "blockConnection": true, "blockTimeMS": (i64::MAX) };
    client.works(fail(always(), block));
    assert_eq!(code(&client.run(doc! { "ping": 1, "maxTimeMS": 20, "$db": "test" })), 50);
    client.works(off());
    client.works(ping());
}

#[test]
fn a_get_more_fails_after_it_took_its_cursor() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    let first = client.works(doc! { "find": "c", "batchSize": 1, "$db": "test" });
    let id = at(&first, "cursor.id").unwrap();
    client.works(doc! {
        "configureFailPoint": "failGetMoreAfterCursorCheckout",
        "mode": { "times": 1 },
        "data": { "errorCode": 280 },
        "$db": "admin"
    });
    let get_more = doc! { "getMore": id, "collection": "c", "$db": "test" };
    assert_eq!(code(&client.run(get_more.clone())), 280);
    // As after any error of a getMore, the cursor is gone.
    assert_eq!(code(&client.run(get_more)), 43);
}

#[test]
fn a_remembered_write_loses_its_reply_or_its_commit() {
    let server = Server::new();
    let mut client = server.client(1);
    let set = |data: DocBuf| {
        doc! {
            "configureFailPoint": "onPrimaryTransactionalWrite",
            "mode": { "times": 1 },
            "data": &data,
            "$db": "admin"
        }
    };
    let id = Value::Binary(Binary { subtype: 4, bytes: &[7; 16] });
    let raise = |number: i64| {
        doc! {
            "findAndModify": "c",
            "query": { "_id": 1 },
            "update": { "$inc": { "n": 1 } },
            "upsert": true,
            "lsid": { "id": id },
            "txnNumber": number,
            "$db": "test"
        }
    };
    let with = |n: i32| doc! { "count": "c", "query": { "n": n }, "$db": "test" };
    // The write was executed, its reply is lost; the repeated command replies without executing it
    // again.
    client.works(set(doc! {}));
    assert!(client.exchange(&raise(1), Interrupt::new()).1.hang_up);
    client.works(raise(1));
    assert_eq!(number(&client.works(with(1)), "n"), Some(1));
    // Neither was executed.
    client.works(set(doc! { "failBeforeCommitExceptionCode": 1 }));
    assert!(client.exchange(&raise(2), Interrupt::new()).1.hang_up);
    client.works(set(doc! { "failBeforeCommitExceptionCode": 1, "closeConnection": false }));
    assert_eq!(code(&client.run(raise(2))), 1);
    client.works(raise(2));
    assert_eq!(number(&client.works(with(2)), "n"), Some(1));
    // Each document counts as one chance.
    let point = doc! {
        "configureFailPoint": "onPrimaryTransactionalWrite",
        "mode": { "skip": 3 },
        "data": { "failBeforeCommitExceptionCode": 1, "closeConnection": false },
        "$db": "admin"
    };
    client.works(point);
    let insert = |first: i32, number: i64| {
        doc! {
            "insert": "d",
            "documents": [{ "_id": first }, { "_id": first + 1 }],
            "lsid": { "id": id },
            "txnNumber": number,
            "$db": "test"
        }
    };
    client.works(insert(1, 3));
    assert_eq!(code(&client.run(insert(3, 4))), 1);
}

#[test]
fn a_cursor_with_a_time_limit_runs_out_of_it() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "test" });
    let mut open = |limit: i32| {
        let find = doc! { "find": "c", "batchSize": 1, "maxTimeMS": limit, "$db": "test" };
        number(&client.works(find), "cursor.id").unwrap()
    };
    let (limited, free) = (open(100_000), open(0));
    client.works(
        doc! { "configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn", "$db": "admin" },
    );
    let mut more = |id| code(&client.run(doc! { "getMore": id, "collection": "c", "$db": "test" }));
    assert_eq!((more(limited), more(free)), (50, 0));
}

#[test]
fn a_pipeline_runs_as_it_is_written() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1, "a": 1 }], "$db": "test" });
    let mut stages = || {
        let pipeline = doc! { "p": [{ "$sort": { "a": 1 } }, { "$match": { "a": 1 } }] };
        let pipeline = pipeline.get("p").unwrap();
        let explained = client.works(doc! {
            "explain": { "aggregate": "t", "pipeline": pipeline, "cursor": {} }, "$db": "test"
        });
        let switch = |mode: &str| {
            doc! { "configureFailPoint": "disablePipelineOptimization", "mode": mode, "$db": "admin" }
        };
        client.works(switch("alwaysOn"));
        at(&explained, "stages")
            .and_then(|stages| stages.as_array())
            .map(|list| list.iter().count())
    };
    assert_eq!(stages(), None, "the filter stands before the sort, both in the query");
    assert_eq!(stages(), Some(2), "the filter stands behind the query");
}
