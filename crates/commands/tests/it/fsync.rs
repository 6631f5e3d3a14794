//! `fsync` with `lock`: writes wait, reads do not, and `currentOp` shows it.

use crate::{Server, at, code, number};
use quire_document::{Value, doc};
use quire_storage::{Interrupt, Interruption};
use std::sync::Arc;
use std::thread;

#[test]
fn writers_wait_for_the_unlock_and_readers_do_not() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" });
    let flushed = client.works(doc! { "fsync": 1, "$db": "admin" });
    assert_eq!((number(&flushed, "numFiles"), number(&flushed, "lockCount")), (Some(1), None));
    let lock = || doc! { "fsync": 1, "lock": true, "$db": "admin" };
    assert_eq!(number(&client.works(lock()), "lockCount"), Some(1));
    assert_eq!(number(&client.works(lock()), "lockCount"), Some(2));
    let mut writer = server.client(2);
    let waiting = thread::spawn(move || {
        writer.works(doc! { "insert": "c", "documents": [{ "_id": 2 }], "$db": "test" });
    });
    let current = || doc! { "currentOp": 1, "waitingForLock": true, "$db": "admin" };
    let held = |client: &mut crate::Client| {
        at(&client.works(current()), "inprog").unwrap().as_array().unwrap().count() == 1
    };
    while !held(&mut client) {
        thread::yield_now();
    }
    let shown = client.works(current());
    assert!(matches!(at(&shown, "fsyncLock"), Some(Value::Bool(true))));
    let locks = client.works(doc! { "lockInfo": 1, "$db": "admin" });
    assert_eq!(at(&locks, "lockInfo").unwrap().as_array().unwrap().count(), 1);
    assert_eq!(number(&client.works(doc! { "count": "c", "$db": "test" }), "n"), Some(1));
    let unlock = || doc! { "fsyncUnlock": 1, "$db": "admin" };
    assert_eq!(number(&client.works(unlock()), "lockCount"), Some(1));
    assert!(held(&mut client));
    assert_eq!(number(&client.works(unlock()), "lockCount"), Some(0));
    waiting.join().unwrap();
    assert_eq!(number(&client.works(doc! { "count": "c", "$db": "test" }), "n"), Some(2));
    assert_eq!(code(&client.run(unlock())), 20);
    let locks = client.works(doc! { "lockInfo": 1, "$db": "admin" });
    assert_eq!(at(&locks, "lockInfo").unwrap().as_array().unwrap().count(), 0);
}

#[test]
fn a_waiting_writer_ends_at_its_time_limit_or_by_a_kill() {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(doc! { "fsync": 1, "lock": true, "$db": "admin" });
    let limited =
        doc! { "insert": "c", "documents": [{ "_id": 1 }], "maxTimeMS": 20, "$db": "test" };
    assert_eq!(code(&client.run(limited)), 50);
    let interrupt = Interrupt::new();
    let killed = Arc::clone(&interrupt);
    let mut writer = server.client(2);
    let waiting = thread::spawn(move || {
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "test" };
        code(&writer.exchange(&insert, interrupt).0)
    });
    killed.kill(Interruption::Killed);
    assert_eq!(waiting.join().unwrap(), 11601);
    client.works(doc! { "fsyncUnlock": 1, "$db": "admin" });
    assert_eq!(code(&client.run(doc! { "fsync": 1, "lock": "x", "$db": "admin" })), 14);
}

/// Commands that store settings wrote while the server was locked.
#[test]
fn settings_wait_for_the_unlock_too() {
    let server = Server::new();
    let mut client = server.client(1);
    let shown = client.works(doc! { "replSetGetConfig": 1, "$db": "admin" });
    let config = at(&shown, "config").unwrap().as_document().unwrap();
    let next = quire_document::DocBuf::build(|next| {
        config.fields().filter(|(name, _)| *name != "version").for_each(|(name, value)| {
            next.append(name, value);
        });
        next.append("version", 7);
    });
    let commands = [
        doc! { "setClusterParameter": { "changeStreamOptions": { "preAndPostImages": { "expireAfterSeconds": 5 } } } },
        doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "majority" } },
        doc! { "setFeatureCompatibilityVersion": "8.2", "confirm": true },
        doc! { "replSetReconfig": &next },
        doc! { "setUserWriteBlockMode": 1, "global": true },
        doc! { "setUserWriteBlockMode": 1, "global": false },
    ];
    client.works(doc! { "fsync": 1, "lock": true, "$db": "admin" });
    // The last one needs a change log, which this server does not have.
    let resize = doc! { "replSetResizeOplog": 1, "size": 2000 };
    for command in commands.iter().chain([&resize]) {
        let mut limited = command.clone();
        limited.append("maxTimeMS", 20).append("$db", "admin");
        assert_eq!(code(&client.run(limited)), 50, "{command:?}");
    }
    client.works(doc! { "fsyncUnlock": 1, "$db": "admin" });
    for mut command in commands {
        command.append("$db", "admin");
        client.works(command);
    }
}
