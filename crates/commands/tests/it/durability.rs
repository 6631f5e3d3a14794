//! Replies and the disk: everything that a reply depends on is durable, or the outcome is unknown.

use crate::{Client, NoLog, Server, at, code, number, replica_set, text};
use quire_document::{Binary, DocBuf, Value, doc};
use quire_storage::Interrupt;
use quire_storage::simulated::{Faults, SimulatedDisk};
use std::sync::Arc;

fn disk() -> (SimulatedDisk, Server) {
    let disk = SimulatedDisk::new(Faults::none(1));
    let server = Server::open(disk.open().unwrap(), replica_set(), &[], Arc::new(NoLog));
    (disk, server)
}

/// Another client's write, visible and not on disk.
fn write_buffered(client: &mut Client, n: i32) {
    client.works(doc! {
        "update": "t",
        "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "u": n } }, "upsert": true }],
        "writeConcern": { "w": 1 },
        "$db": "test",
    });
}

/// The commands replied while the state that they had read could still be lost.
#[test]
fn statements_that_fail_or_do_nothing_wait_for_the_state_that_they_read() {
    let (disk, server) = disk();
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 2, "u": -1 }], "$db": "test" });
    let unique = doc! { "key": { "u": 1 }, "name": "u", "unique": true };
    client.works(doc! { "createIndexes": "t", "indexes": [&unique], "$db": "test" });
    let clash = |n: i32| doc! { "$set": { "u": n } };
    let commands: [fn(&DocBuf, i32) -> DocBuf; 9] = [
        |_, n| doc! { "insert": "t", "documents": [{ "_id": 3, "u": n }] },
        |_, _| doc! { "insert": "t", "documents": [{ "_id": 1 }, { "_id": 4 }], "ordered": false },
        |u, _| doc! { "update": "t", "updates": [{ "q": { "_id": 2 }, "u": u }] },
        |u, _| {
            let to_zero = doc! { "q": { "_id": 2 }, "u": { "$inc": { "v": 1 } } };
            doc! { "update": "t", "updates": [&to_zero, { "q": { "_id": 2 }, "u": u }] }
        },
        |u, _| doc! { "findAndModify": "t", "query": { "_id": 2 }, "update": u },
        |u, _| {
            let op = doc! { "update": 0, "filter": { "_id": 2 }, "updateMods": u };
            doc! { "bulkWrite": 1, "ops": [&op], "nsInfo": [{ "ns": "test.t" }] }
        },
        |_, n| {
            let op = doc! { "insert": 0, "document": { "_id": 3, "u": n } };
            doc! { "bulkWrite": 1, "ops": [&op], "nsInfo": [{ "ns": "test.t" }] }
        },
        |_, _| doc! { "delete": "t", "deletes": [{ "q": { "_id": 9 }, "limit": 1 }] },
        |_, _| doc! { "drop": "no such collection" },
    ];
    for (n, command) in (0..).zip(commands) {
        write_buffered(&mut client, n);
        assert!(disk.unsynced() > 0);
        let mut command = command(&clash(n), n);
        let db = if command.get("bulkWrite").is_some() { "admin" } else { "test" };
        command.append("writeConcern", &doc! { "w": "majority" }).append("$db", db);
        let reply = client.run(command.clone());
        let failed = reply.get("writeErrors").is_some()
            || number(&reply, "code") == Some(11000)
            || number(&reply, "nErrors") == Some(1);
        assert_eq!(failed, n < 7, "{command:?}: {reply:?}");
        assert_eq!(disk.unsynced(), 0, "{command:?}");
    }
    // Also collections that other clients have created.
    client.works(doc! { "create": "c", "writeConcern": { "w": 1 }, "$db": "test" });
    assert!(disk.unsynced() > 0);
    let again = doc! { "create": "c", "autoIndexId": true, "$db": "test" };
    assert_eq!(code(&client.run(again)), 48);
    assert_eq!(disk.unsynced(), 0);
}

/// It was reported as a write error of the statement, which had been executed.
#[test]
fn a_write_whose_fsync_fails_is_in_doubt_and_not_to_be_repeated() {
    let lsid = doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &[1; 16] }) };
    let update = doc! { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } }, "upsert": true };
    let op = doc! { "update": 0, "filter": { "_id": 1 }, "updateMods": { "$inc": { "n": 1 } }, "upsert": true };
    let commands = [
        doc! { "insert": "t", "documents": [{ "_id": 1 }] },
        doc! { "update": "t", "updates": [&update] },
        doc! { "update": "t", "updates": [&update, &update] },
        doc! { "findAndModify": "t", "query": { "_id": 1 }, "update": { "n": 1 }, "upsert": true },
        doc! { "bulkWrite": 1, "ops": [&op], "nsInfo": [{ "ns": "test.t" }] },
        doc! { "create": "c" },
    ];
    // The fsync fails with the write, before the write is visible or after it.
    for (visible, command) in
        [false, true].into_iter().flat_map(|v| commands.iter().map(move |c| (v, c)))
    {
        let (disk, server) = disk();
        let mut client = server.client(1);
        client.works(doc! { "create": "t", "$db": "test" });
        let engine = server.0.store().engine();
        // Another writer in the queue is let through before the commit is on disk.
        let place = visible.then(|| engine.join_line(7, &Interrupt::new()));
        let commits = if at(command, "updates.1").is_some() { 2 } else { 1 };
        disk.set_faults(Faults { io_error_after: Some(commits), ..Faults::none(1) });
        let mut command = command.clone();
        if command.get("create").is_none() {
            command.append("lsid", &lsid).append("txnNumber", 1_i64);
        }
        let db = if command.get("bulkWrite").is_some() { "admin" } else { "test" };
        command.append("$db", db);
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), 8, "{command:?}: {reply:?}");
        assert!(text(&reply, "errmsg").unwrap().contains("outcome of the commit is unknown"));
        let labels = reply.get("errorLabels").and_then(|labels| labels.as_array());
        let labels = labels.into_iter().flat_map(|labels| labels.iter());
        assert!(labels.filter_map(|label| label.as_str()).all(|l| l != "RetryableWriteError"));
        // The engine accepts no more writes.
        let insert = doc! { "insert": "t", "documents": [{ "_id": 7 }], "$db": "test" };
        let refused = client.run(insert);
        let error = refused.get("writeErrors").and_then(|list| list.as_array());
        assert!(error.is_some() || code(&refused) == 10107, "{refused:?}");
        place.into_iter().for_each(|place| engine.leave_line(place));
    }
}

/// A server whose engine had failed still reported that it was primary, and its writes returned
/// code 1.
#[test]
fn a_server_whose_engine_has_failed_steps_down() {
    let (disk, server) = disk();
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "test" });
    let hello = doc! { "hello": 1, "$db": "admin" };
    let before = client.works(hello.clone());
    assert!(matches!(at(&before, "isWritablePrimary"), Some(Value::Bool(true))));
    disk.set_faults(Faults { io_error_after: Some(0), ..Faults::none(1) });
    let insert = doc! { "insert": "t", "documents": [{ "_id": 2 }], "$db": "test" };
    client.run(insert.clone());
    assert_eq!(code(&client.run(insert)), 10107);
    let after = client.works(hello);
    assert!(matches!(at(&after, "isWritablePrimary"), Some(Value::Bool(false))));
    assert!(at(&after, "primary").is_none());
    let counter = |reply| number(reply, "topologyVersion.counter");
    assert!(counter(&after) > counter(&before));
}
