//! Transactions of several statements: savepoints, locks, waiting.

use std::sync::Arc;
use std::time::Duration;

use super::{Harness, commit, get, key, keys, put, write};
use crate::contract::{ScanRequest, Space};
use crate::error::{Conflict, StorageError};
use crate::interrupt::{Interrupt, Interruption};
use crate::txn::{CommitOptions, Mode, Txn, begin};

pub(super) fn savepoints(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "old");
    let mut txn = write(&engine);
    txn.put(Space::Doc, key("a"), key("one")).expect("a write");
    let bytes = txn.buffered_bytes();
    let outer = txn.savepoint();
    txn.put(Space::Doc, key("b"), key("two")).expect("a write");
    let inner = txn.savepoint();
    txn.delete(Space::Doc, key("a")).expect("a delete");
    txn.put(Space::Doc, key("b"), key("three")).expect("a write");
    txn.put(Space::Idx, key("c"), key("three")).expect("a write");
    txn.append_log(key("record"));
    txn.rollback_to(inner);
    assert_eq!(get(&txn, Space::Doc, "a").as_deref(), Some("one"));
    assert_eq!(get(&txn, Space::Doc, "b").as_deref(), Some("two"));
    assert_eq!(get(&txn, Space::Idx, "c"), None);
    txn.rollback_to(outer);
    assert_eq!(keys(&txn, ScanRequest::new(Space::Doc, b"", b"")), "a");
    assert_eq!(txn.buffered_bytes(), bytes);
    txn.insert(Space::Doc, key("b"), key("four"), 0).expect("b was rolled back");
    commit(txn);
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "a").as_deref(), Some("one"));
    assert_eq!(get(&*snapshot, Space::Doc, "b").as_deref(), Some("four"));
    assert_eq!(keys(&*snapshot, ScanRequest::new(Space::Log, b"", b"")), "");
}

fn transaction(harness: &Arc<dyn crate::Engine>) -> Txn {
    begin(harness, Mode::Transaction).expect("a transaction")
}

fn held(result: Result<impl std::fmt::Debug, StorageError>) -> Conflict {
    match result {
        Err(StorageError::Conflict(conflict)) => *conflict,
        other => panic!("no conflict but {other:?}"),
    }
}

pub(super) fn locks(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "0");
    let mut first = transaction(&engine);
    let mut second = transaction(&engine);
    first.put(Space::Doc, key("a"), key("first")).expect("a write");
    first.put_entry(Space::Idx, key("entry"), key("")).expect("a write");
    first.push().expect("nobody holds it");
    first.put(Space::Doc, key("b"), key("first")).expect("a write");
    first.push().expect("nobody holds it");
    assert_eq!(engine.stats().locks, 2);
    second.put(Space::Doc, key("a"), key("second")).expect("a write");
    assert!(held(second.push()).held);
    let mut single = write(&engine);
    single.put(Space::Doc, key("b"), key("single")).expect("a write");
    assert!(held(single.commit(CommitOptions::buffered())).held);
    drop(second);
    first.commit(CommitOptions::synced()).expect("the owner passes its own locks");
    assert_eq!(engine.stats().locks, 0);
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "b").as_deref(), Some("first"));

    let mut late = transaction(&engine);
    put(&engine, Space::Doc, "a", "later");
    late.put(Space::Doc, key("a"), key("late")).expect("a write");
    assert!(!held(late.push()).held, "a newer commit is a conflict without a holder");
    let mut aborted = transaction(&engine);
    aborted.delete(Space::Doc, key("a")).expect("a delete");
    aborted.push().expect("nobody holds it");
    drop(aborted);
    put(&engine, Space::Doc, "a", "last");
}

pub(super) fn waiting(harness: &dyn Harness) {
    let engine = harness.open();
    let mut holder = transaction(&engine);
    holder.put(Space::Doc, key("a"), key("holder")).expect("a write");
    holder.push().expect("nobody holds it");
    let mut single = write(&engine);
    single.put(Space::Doc, key("a"), key("single")).expect("a write");
    let conflict = held(single.commit(CommitOptions::buffered()));

    let short = Interrupt::with_deadline(Duration::from_millis(5));
    let waited = engine.wait_released(&conflict, &short);
    assert_eq!(waited, Err(StorageError::Interrupted(Interruption::DeadlineExceeded)));
    let killed = Interrupt::new();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| engine.wait_released(&conflict, &killed));
        killed.kill(Interruption::Killed);
        let waited = waiter.join().expect("the waiter ends");
        assert_eq!(waited, Err(StorageError::Interrupted(Interruption::Killed)));
    });
    std::thread::scope(|scope| {
        let interrupt = Interrupt::new();
        let (engine, conflict) = (&engine, &conflict);
        let waiter = scope.spawn(move || engine.wait_released(conflict, &interrupt));
        holder.commit(CommitOptions::buffered()).expect("the holder commits");
        waiter.join().expect("the waiter ends").expect("the lock was released");
    });
    engine.wait_released(&conflict, &Interrupt::new()).expect("nobody holds it any more");
    put(&engine, Space::Doc, "a", "single");
}

pub(super) fn idle(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "mine", "0");
    let mut idle = transaction(&engine);
    assert_eq!(get(&idle, Space::Doc, "mine").as_deref(), Some("0"));
    for round in 0..500 {
        put(&engine, Space::Doc, &format!("other{}", round % 50), &round.to_string());
    }
    assert_eq!(keys(&idle, ScanRequest::new(Space::Doc, b"", b"")), "mine");
    assert!(engine.stats().conflict_keys <= 51, "the table holds more than the keys written");
    idle.put(Space::Doc, key("mine"), key("1")).expect("a write");
    idle.push().expect("nobody touched it");
    commit(idle);
    put(&engine, Space::Doc, "last", "");
    put(&engine, Space::Doc, "last", "");
    assert!(engine.stats().conflict_keys <= 2, "the table forgets what nobody can clash with");
}
