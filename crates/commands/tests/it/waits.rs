//! Who waits for whom: commands beside open transactions, and what `currentOp` shows of it.

use crate::transactions::within;
use crate::{Client, Server, at, code, number};
use quire_document::{DocBuf, Value, doc};
use std::thread;

const KEY: (u8, i64) = (1, 1);

fn update(id: i32, value: i32) -> DocBuf {
    doc! {
        "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "a": value } } }],
        "$db": "test"
    }
}

fn create(name: &str, key: DocBuf, unique: bool) -> DocBuf {
    let index = doc! { "key": &key, "name": name, "unique": unique };
    doc! { "createIndexes": "c", "indexes": [&index], "$db": "test" }
}

fn commit() -> DocBuf {
    within(doc! { "commitTransaction": 1, "$db": "admin" }, KEY, false)
}

/// Returns a server with a document and an index, and a client whose transaction has written it.
fn with_open_transaction() -> (Server, Client) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    client.works(create("a", doc! { "a": 1 }, false));
    client.works(within(update(1, 5), KEY, true));
    (server, client)
}

/// Waits until `currentOp` shows an operation that this filter finds.
fn await_operation(client: &mut Client, mut filter: DocBuf) -> DocBuf {
    filter.append("$db", "admin");
    let current = DocBuf::build(|writer| {
        writer.append("currentOp", 1);
        writer.append_all(filter.as_doc());
    });
    loop {
        let shown = client.works(current.clone());
        let found = at(&shown, "inprog").unwrap().as_array().unwrap();
        if let Some(Value::Document(row)) = found.get(0) {
            return row.to_owned();
        }
        thread::yield_now();
    }
}

/// An application that creates its indexes at each start waited for an open transaction.
#[test]
fn indexes_that_exist_or_conflict_are_answered_beside_an_open_transaction() {
    let (server, mut holder) = with_open_transaction();
    let mut client = server.client(2);
    let same = client.works(create("a", doc! { "a": 1 }, false));
    assert_eq!(number(&same, "numIndexesAfter"), Some(2));
    assert_eq!(crate::text(&same, "note"), Some("all indexes already exist"));
    assert_eq!(code(&client.run(create("a", doc! { "a": 1 }, true))), 86);
    assert_eq!(code(&client.run(create("b", doc! { "a": 1 }, false))), 85);
    holder.works(commit());
}

#[test]
fn current_op_shows_an_index_build_that_waits_for_a_transaction() {
    let (server, mut holder) = with_open_transaction();
    let mut builder = server.client(2);
    let building = thread::spawn(move || builder.works(create("b", doc! { "b": 1 }, false)));
    let waiting = doc! { "command.createIndexes": "c", "waitingForLock": true };
    await_operation(&mut server.client(3), waiting);
    holder.works(commit());
    assert_eq!(number(&building.join().unwrap(), "numIndexesAfter"), Some(3));
}

#[test]
fn current_op_shows_a_write_that_waits_for_a_transaction_and_its_conflicts() {
    let (server, mut holder) = with_open_transaction();
    let mut writer = server.client(2);
    let writing = thread::spawn(move || writer.works(update(1, 6)));
    let waiting = doc! { "command.update": "c", "waitingForLock": true };
    let shown = await_operation(&mut server.client(3), waiting);
    assert!(number(&shown, "writeConflicts").unwrap() >= 1, "{shown:?}");
    holder.works(commit());
    assert_eq!(number(&writing.join().unwrap(), "nModified"), Some(1));
}

/// The write was accepted, and the commit failed.
#[test]
fn a_transaction_cannot_write_to_a_collection_that_was_dropped_since() {
    let server = Server::new();
    let (mut client, mut other) = (server.client(1), server.client(2));
    for collection in ["c", "d"] {
        let insert = doc! { "insert": collection, "documents": [{ "_id": 1 }], "$db": "test" };
        client.works(insert);
    }
    client.works(within(doc! { "find": "d", "$db": "test" }, KEY, true));
    other.works(doc! { "drop": "c", "$db": "test" });
    let insert = doc! { "insert": "c", "documents": [{ "_id": 2 }], "$db": "test" };
    let reply = client.run(within(insert, KEY, false));
    assert_eq!(code(&reply), 112, "{reply:?}");
    let labels = at(&reply, "errorLabels").and_then(|labels| labels.as_array()).unwrap();
    assert_eq!(labels.get(0).and_then(|label| label.as_str()), Some("TransientTransactionError"));
}

#[test]
fn server_status_tells_of_refusals() {
    let mut client = Server::new().client(1);
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    assert!(matches!(at(&status, "storageEngine.isShortOfSpace"), Some(Value::Bool(false))));
    let refused = number(&status, "storageEngine.refusedRequests.clock").unwrap();
    let ahead = Value::Timestamp(quire_document::Timestamp { seconds: u32::MAX, increment: 1 });
    let mut ping = doc! { "ping": 1, "$db": "admin" };
    ping.append("$clusterTime", &doc! { "clusterTime": ahead });
    assert_eq!(code(&client.run(ping)), 205);
    let status = client.works(doc! { "serverStatus": 1, "$db": "admin" });
    assert_eq!(number(&status, "storageEngine.refusedRequests.clock"), Some(refused + 1));
}
