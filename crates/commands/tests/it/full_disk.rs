//! Replies while the disk is nearly full, and after there is space again.

use crate::{Client, NoLog, Server, at, code, number, replica_set};
use quire_document::{Binary, DocBuf, Value, doc};
use quire_storage::{Engine, Maintenance};
use quire_storage_lsm::{DiskSpace, LsmOptions, open};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// The code OutOfDiskSpace.
const FULL: i32 = 14031;
/// The free space: enough, less than the reserve, nearly none.
const ENOUGH: u64 = 10 << 30;
const RESERVE: u64 = 99 << 20;
const NOTHING: u64 = 1 << 20;

/// A disk whose free space the test sets.
struct Disk {
    available: Arc<AtomicU64>,
    engine: Arc<dyn Engine>,
}

impl Disk {
    fn open(directory: &Path) -> Disk {
        let available = Arc::new(AtomicU64::new(ENOUGH));
        let seen = Arc::clone(&available);
        let space_probe = Arc::new(move |_: &Path| {
            let available_bytes = seen.load(Ordering::Relaxed);
            Some(DiskSpace { available_bytes, total_bytes: 2 * ENOUGH })
        });
        let options = LsmOptions { reserve_bytes: 100 << 20, space_probe, ..LsmOptions::default() };
        Disk { available, engine: open(directory, options).unwrap().engine }
    }

    fn server(&self) -> Server {
        Server::open(Arc::clone(&self.engine), replica_set(), &[], Arc::new(NoLog))
    }

    fn set(&self, available: u64) {
        self.available.store(available, Ordering::Relaxed);
        self.engine.maintenance(Maintenance::Tick).unwrap();
    }
}

/// Returns the code of an error reply or of its first write error, 0 for none.
fn failure(reply: &DocBuf) -> i64 {
    let cursor = number(reply, "cursor.firstBatch.0.code");
    number(reply, "writeErrors.0.code").or(cursor).unwrap_or_else(|| code(reply).into())
}

fn session() -> DocBuf {
    doc! { "id": Value::Binary(Binary { subtype: 4, bytes: &[7; 16] }) }
}

/// Returns every way to write new data.
fn writes() -> Vec<DocBuf> {
    let set = doc! { "$set": { "v": 2 } };
    let op = doc! { "insert": 0, "document": { "_id": 101 } };
    let index = doc! { "key": { "v": 1 }, "name": "v" };
    let upsert = doc! { "q": { "_id": 102 }, "u": &set, "upsert": true };
    vec![
        doc! { "insert": "t", "documents": [{ "_id": 100 }], "$db": "test" },
        doc! { "insert": "fresh", "documents": [{ "_id": 1 }], "$db": "test" },
        doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": &set }], "$db": "test" },
        doc! { "update": "t", "updates": [{ "q": {}, "u": &set, "multi": true }], "$db": "test" },
        doc! { "update": "t", "updates": [&upsert], "$db": "test" },
        doc! { "findAndModify": "t", "query": { "_id": 1 }, "update": &set, "$db": "test" },
        doc! { "bulkWrite": 1, "ops": [&op], "nsInfo": [{ "ns": "test.t" }], "$db": "admin" },
        doc! { "createIndexes": "t", "indexes": [&index], "$db": "test" },
        doc! { "aggregate": "t", "pipeline": [{ "$out": "o" }], "cursor": {}, "$db": "test" },
    ]
}

fn documents(client: &mut Client) -> i64 {
    let count = client.works(doc! { "count": "t", "query": { "v": 1 }, "$db": "test" });
    number(&count, "n").unwrap()
}

/// The first write on the full disk poisoned the engine and returned code 1.
#[test]
fn writes_are_refused_by_name_reads_go_on_and_nothing_is_lost() {
    let directory = TempDir::new().unwrap();
    let disk = Disk::open(directory.path());
    let server = disk.server();
    let mut client = server.client(1);
    for id in 0..20 {
        let one = doc! { "_id": id, "v": 1 };
        client.works(doc! { "insert": "t", "documents": [&one], "$db": "test" });
    }
    for left in [RESERVE, NOTHING] {
        disk.set(left);
        for command in writes() {
            let reply = client.run(command.clone());
            assert_eq!(failure(&reply), FULL.into(), "{command:?}: {reply:?}");
        }
        assert_eq!(documents(&mut client), 20);
        let hello = client.works(doc! { "hello": 1, "$db": "admin" });
        assert!(matches!(hello.get("isWritablePrimary"), Some(Value::Bool(true))));
    }
    // A transaction is refused as a whole when it commits, and leaves no lock.
    disk.set(RESERVE);
    let in_transaction = |command: DocBuf, first: bool| {
        let mut command = command;
        command.append("lsid", &session()).append("txnNumber", 1i64).append("autocommit", false);
        if first {
            command.append("startTransaction", true);
        }
        command
    };
    let insert = doc! { "insert": "t", "documents": [{ "_id": 200, "v": 1 }], "$db": "test" };
    let begun = client.run(in_transaction(insert.clone(), true));
    if failure(&begun) == 0 {
        let commit = in_transaction(doc! { "commitTransaction": 1, "$db": "admin" }, false);
        let reply = client.run(commit);
        assert_eq!(failure(&reply), FULL.into(), "{reply:?}");
    } else {
        assert_eq!(failure(&begun), FULL.into(), "{begun:?}");
    }
    // Deletes succeed while the reserve is free, and not without it.
    let delete = |id: i32| {
        let one = doc! { "q": { "_id": id }, "limit": 1 };
        doc! { "delete": "t", "deletes": [&one], "$db": "test" }
    };
    assert_eq!(number(&client.works(delete(0)), "n"), Some(1));
    disk.set(NOTHING);
    assert_eq!(failure(&client.run(delete(1))), FULL.into());
    assert_eq!(failure(&client.run(doc! { "drop": "t", "$db": "test" })), FULL.into());

    disk.set(ENOUGH);
    assert_eq!(documents(&mut client), 19);
    client.works(insert);
    for command in writes() {
        let reply = client.run(command.clone());
        assert_eq!(failure(&reply), 0, "{command:?}: {reply:?}");
        assert!(at(&reply, "writeErrors").is_none(), "{command:?}: {reply:?}");
    }
    let all = doc! { "count": "t", "$db": "test" };
    let before = number(&client.works(all.clone()), "n");
    // 20 documents, minus one, and those of the transaction, of `writes` and of its upsert.
    assert_eq!(before, Some(23));
    drop((client, server));
    disk.engine.close().unwrap();
    let again = Disk::open(directory.path());
    let server = again.server();
    assert_eq!(number(&server.client(1).works(all), "n"), before);
}
