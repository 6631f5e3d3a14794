//! Retryable writes: the replies to repeated statements, and statements that must not be repeated.

use crate::{Client, Server, code, number};
use quire_commands::Topology;
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};

fn lsid(session: u8) -> DocBuf {
    let bytes = [session; 16];
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &bytes }) }
}

/// Returns the command as a write of session 1 with this number.
fn numbered(command: DocBuf, txn_number: i64) -> DocBuf {
    let mut command = command;
    command.append("lsid", &lsid(1)).append("txnNumber", txn_number);
    command
}

fn count(client: &mut Client, collection: &str) -> i64 {
    let reply = client.works(doc! { "count": collection, "$db": "test" });
    number(&reply, "n").unwrap()
}

fn repeated(reply: &DocBuf) -> Vec<i32> {
    let list = reply.get("retriedStmtIds").and_then(|ids| ids.as_array());
    let ids = list.into_iter().flat_map(|ids| ids.iter());
    ids.map(|id| if let Value::Int32(id) = id { id } else { panic!("{reply:?}") }).collect()
}

fn insert(ids: &[i32]) -> DocBuf {
    let documents = ArrayBuf::build(|list| {
        ids.iter().for_each(|id| {
            list.document().append("_id", *id);
        });
    });
    doc! { "insert": "t", "documents": &documents, "$db": "test" }
}

#[test]
fn a_batch_is_repeated_statement_by_statement() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(numbered(insert(&[1, 2]), 1));
    let again = client.works(numbered(insert(&[1, 2, 3]), 1));
    assert_eq!((number(&again, "n"), repeated(&again)), (Some(3), vec![0, 1]));
    assert_eq!(count(&mut client, "t"), 3);
    // With explicit ids: a duplicate id counts as a repeated statement.
    let mut twice = numbered(insert(&[7, 8]), 1);
    twice.append("stmtIds", &quire_document::array![9, 9]);
    let reply = client.works(twice);
    assert_eq!((number(&reply, "n"), repeated(&reply)), (Some(2), vec![9]));
    assert_eq!(count(&mut client, "t"), 4);
}

#[test]
fn many_statements_are_repeated_at_once() {
    let server = Server::new();
    let mut client = server.client(1);
    let ids: Vec<i32> = (0..3000).collect();
    client.works(numbered(insert(&ids), 1));
    let again = client.works(numbered(insert(&ids), 1));
    assert_eq!((number(&again, "n"), repeated(&again)), (Some(3000), ids.clone()));
    for wrong in [ArrayBuf::new(), (0..2999).collect(), (0..100_001).collect()] {
        let mut command = numbered(insert(&ids), 2);
        command.append("stmtIds", &wrong);
        assert_eq!(code(&client.run(command)), 16);
    }
    // A refused command has not used its number.
    client.works(numbered(insert(&[-1]), 1));
}

#[test]
fn an_ordered_batch_that_fails_again_counts_only_statements_before_the_failure() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(insert(&[5]));
    let mut unordered = numbered(insert(&[1, 5, 3]), 1);
    unordered.append("ordered", false);
    assert_eq!(number(&client.works(unordered), "n"), Some(2));
    let again = client.works(numbered(insert(&[1, 5, 3]), 1));
    assert_eq!((number(&again, "n"), repeated(&again)), (Some(1), vec![0]));
    let errors = again.get("writeErrors").unwrap().as_array().unwrap();
    let first = errors.iter().next().unwrap().as_document().unwrap();
    assert!(matches!(first.get("index"), Some(Value::Int32(1))), "{again:?}");
}

#[test]
fn a_repeat_after_the_collection_was_dropped_is_answered() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(numbered(insert(&[1]), 1));
    client.works(doc! { "drop": "t", "$db": "test" });
    // Another body counts as the same statement too: only the number identifies it.
    let other = doc! { "insert": "u", "documents": [{ "_id": 9 }], "$db": "test" };
    for command in [insert(&[1]), other] {
        let again = client.works(numbered(command, 1));
        assert_eq!((number(&again, "n"), repeated(&again)), (Some(1), vec![0]));
    }
    assert_eq!(count(&mut client, "t") + count(&mut client, "u"), 0);
}

#[test]
fn bulk_writes_are_repeated_by_operation() {
    let server = Server::new();
    let mut client = server.client(1);
    let bulk = |last: DocBuf| {
        let command = doc! {
            "bulkWrite": 1,
            "ops": [
                { "insert": 0, "document": { "_id": 1, "n": 0 } },
                { "update": 0, "filter": { "_id": 1 }, "updateMods": { "$inc": { "n": 1 } } },
                &last,
            ],
            "nsInfo": [{ "ns": "test.t" }, { "ns": "test.u" }],
            "$db": "admin",
        };
        numbered(command, 1)
    };
    let many =
        doc! { "update": 0, "filter": {}, "updateMods": { "$inc": { "n": 1 } }, "multi": true };
    let reply = client.works(bulk(many));
    assert_eq!(number(&reply, "nErrors"), Some(1), "{reply:?}");
    let upsert = doc! { "update": 1, "filter": { "_id": 2 }, "updateMods": { "$set": { "x": 1 } }, "upsert": true };
    for round in 0..2 {
        let reply = client.works(bulk(upsert.clone()));
        let numbers =
            ["nInserted", "nMatched", "nModified", "nUpserted"].map(|name| number(&reply, name));
        assert_eq!(numbers, [Some(1); 4], "{reply:?}");
        assert_eq!(repeated(&reply), if round == 0 { vec![0, 1] } else { vec![0, 1, 2] });
    }
    let found = client.works(doc! { "find": "t", "filter": { "n": 1 }, "$db": "test" });
    let batch = crate::at(&found, "cursor.firstBatch").unwrap().as_array().unwrap();
    assert_eq!(batch.count(), 1, "{found:?}");
}

#[test]
fn many_clients_repeat_one_statement_and_it_is_done_once() {
    let server = Server::new();
    server
        .client(1)
        .works(doc! { "insert": "t", "documents": [{ "_id": 1, "n": 0 }], "$db": "test" });
    for round in 0..20 {
        let increment = || {
            let update = doc! {
                "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }], "$db": "test",
            };
            numbered(update, round)
        };
        std::thread::scope(|scope| {
            for id in 0..6 {
                let mut client = server.client(id + 2);
                scope.spawn(move || {
                    let reply = client.works(increment());
                    assert_eq!(number(&reply, "nModified"), Some(1));
                });
            }
        });
    }
    let found = server.client(9).works(doc! { "find": "t", "filter": { "n": 20 }, "$db": "test" });
    assert_eq!(crate::at(&found, "cursor.firstBatch").unwrap().as_array().unwrap().count(), 1);
}

#[test]
fn requests_with_an_unusable_transaction_number_are_refused() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(numbered(insert(&[1]), 5));
    let too_old = client.run(numbered(insert(&[2]), 4));
    assert_eq!(code(&too_old), 225);
    let mut transaction = numbered(insert(&[2]), 6);
    transaction.append("startTransaction", true).append("autocommit", false);
    assert_eq!(code(&client.run(transaction)), 0);
    let mut count = numbered(doc! { "count": "t", "$db": "test" }, 7);
    count.append("startTransaction", true).append("autocommit", false);
    assert_eq!(code(&client.run(count)), 263);
    let find = numbered(doc! { "find": "t", "$db": "test" }, 6);
    assert_eq!(code(&client.run(find)), 50768);
    let alone = Server::of(Topology::Standalone);
    let mut client = alone.client(1);
    client.works(insert(&[1]));
    assert_eq!(code(&client.run(numbered(insert(&[2]), 1))), 20);
    let hello = client.works(doc! { "hello": 1, "$db": "admin" });
    assert_eq!(number(&hello, "logicalSessionTimeoutMinutes"), Some(30));
}

#[test]
fn a_write_that_may_be_repeated_says_so() {
    let server = Server::new();
    let mut client = server.client(1);
    let fail = doc! {
        "configureFailPoint": "failCommand", "mode": { "times": 2 },
        "data": { "failCommands": ["insert"], "errorCode": 11600 }, "$db": "admin",
    };
    client.works(fail);
    let failed = client.run(numbered(insert(&[1]), 1));
    let labels = failed.get("errorLabels").unwrap().as_array().unwrap();
    let first = labels.iter().next().and_then(|label| label.as_str().map(str::to_owned));
    assert_eq!(first.as_deref(), Some("RetryableWriteError"));
    assert!(client.run(insert(&[1])).get("errorLabels").is_none());
    client.works(numbered(insert(&[1]), 1));
}
