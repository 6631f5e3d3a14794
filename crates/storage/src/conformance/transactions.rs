//! Transactions of several statements: savepoints, locks, waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Harness, commit, get, key, keys, put, write};
use crate::contract::{Engine, ScanRequest, Space};
use crate::error::{Conflict, StorageError};
use crate::interrupt::{Interrupt, Interruption};
use crate::turn::KeyTurn;
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

fn transaction(engine: &Arc<dyn Engine>) -> Txn {
    begin(engine, Mode::Transaction).expect("a transaction")
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

    let wait =
        |interrupt: &Arc<Interrupt>| KeyTurn::wait(&engine, &conflict, None, interrupt).map(drop);
    let short = Interrupt::with_deadline(Duration::from_millis(5));
    assert_eq!(wait(&short), Err(StorageError::Interrupted(Interruption::DeadlineExceeded)));
    let killed = Interrupt::new();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&killed));
        killed.kill(Interruption::Killed);
        let waited = waiter.join().expect("the waiter ends");
        assert_eq!(waited, Err(StorageError::Interrupted(Interruption::Killed)));
    });
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&Interrupt::new()));
        holder.commit(CommitOptions::buffered()).expect("the holder commits");
        waiter.join().expect("the waiter ends").expect("the lock was released");
    });
    wait(&Interrupt::new()).expect("nobody holds it any more");
    put(&engine, Space::Doc, "a", "single");
}

/// Returns a single write of the key "a", in its turn if it has one.
fn write_a(engine: &Arc<dyn Engine>, turn: Option<&KeyTurn>) -> Txn {
    let mut txn = write(engine);
    txn.put(Space::Doc, key("a"), key("single")).expect("a write");
    if let Some(turn) = turn {
        txn.set_turn(turn);
    }
    txn
}

pub(super) fn turns(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "0");
    let lose = |turn: Option<&KeyTurn>| {
        let txn = write_a(&engine, turn);
        put(&engine, Space::Doc, "a", "faster");
        held(txn.commit(CommitOptions::synced()))
    };
    let wait = |conflict, before| {
        KeyTurn::wait(&engine, conflict, before, &Interrupt::new()).expect("nobody is before")
    };
    let conflict = lose(None);
    let turn = wait(&conflict, None);
    let again = lose(Some(&turn));
    let turn = wait(&again, Some(turn));

    let late = write_a(&engine, None).commit(CommitOptions::synced());
    assert!(held(late).held, "the key is reserved for who lost twice");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| {
            let next = wait(&conflict, None);
            assert!(ended.load(Ordering::SeqCst), "two have their turn at a time");
            write_a(&engine, Some(&next)).commit(CommitOptions::synced()).expect("its turn");
        });
        let mut transaction = transaction(&engine);
        transaction.put(Space::Doc, key("a"), key("transaction")).expect("a write");
        transaction.push().expect("transactions do not wait in lines");
        assert!(held(write_a(&engine, Some(&turn)).commit(CommitOptions::synced())).held);
        drop(transaction);
        let txn = write_a(&engine, Some(&turn));
        ended.store(true, Ordering::SeqCst);
        txn.commit(CommitOptions::synced()).expect("the key is reserved");
        next.join().expect("the turn ended with the commit, though it is not dropped yet");
    });
    put(&engine, Space::Doc, "a", "last");
}

/// A write loses its key at most three times: before it waits in the line, to a writer that did not
/// wait in the line, and to one that was in progress when the key was reserved. So the cost does
/// not depend on the number of writers.
pub(super) fn many_turns(harness: &dyn Harness) {
    const THREADS: u64 = 12;
    const ROUNDS: u64 = 25;
    let engine = harness.open();
    put(&engine, Space::Doc, "n", "0");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| increment_in_turn(&engine)));
        }
    });
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "n"), Some((THREADS * ROUNDS).to_string()));
    let stats = engine.stats();
    assert!(stats.conflicts <= 3 * THREADS * ROUNDS, "{} conflicts", stats.conflicts);
    assert!(stats.fsyncs <= THREADS * ROUNDS + 1);
}

fn increment_in_turn(engine: &Arc<dyn Engine>) {
    let mut turn: Option<KeyTurn> = None;
    loop {
        let mut txn = write(engine);
        if let Some(turn) = &turn {
            txn.set_turn(turn);
        }
        let now: u64 = get(&txn, Space::Doc, "n").and_then(|n| n.parse().ok()).expect("a number");
        txn.put(Space::Doc, key("n"), key(&(now + 1).to_string())).expect("a write");
        match txn.commit(CommitOptions::synced()) {
            Ok(_) => return,
            lost => {
                let waited = KeyTurn::wait(engine, &held(lost), turn, &Interrupt::new());
                turn = Some(waited.expect("nothing interrupts it"));
            }
        }
    }
}

/// The conflict table keeps keys for transactions that begin on the history. Here there is no
/// history.
pub(super) fn idle(harness: &dyn Harness) {
    let engine = harness.open();
    engine.keep_history(Duration::ZERO);
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
