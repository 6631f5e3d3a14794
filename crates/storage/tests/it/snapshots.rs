//! Snapshots are short-lived: beyond the caps their owner gets `SnapshotTooOld`, and the engine
//! keeps working.

use std::sync::Arc;
use std::time::Duration;

use quire_storage::{
    Bytes, CommitOptions, CommitterOptions, Engine, Maintenance, Mode, Snapshot, Space,
    StorageError, begin, open_memory_with,
};

fn engine(options: CommitterOptions) -> Arc<dyn Engine> {
    open_memory_with(CommitterOptions { tick: None, ..options }).unwrap()
}

fn put(engine: &Arc<dyn Engine>, key: &'static str, bytes: usize) {
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.put(Space::Doc, Bytes::from_static(key.as_bytes()), Bytes::from(vec![1; bytes])).unwrap();
    txn.commit(CommitOptions::buffered()).unwrap();
}

#[test]
fn a_snapshot_that_retains_too_much_is_taken() {
    let engine = engine(CommitterOptions {
        snapshot_retained_bytes_max: 100_000,
        snapshot_grace: Duration::ZERO,
        history_window: Duration::ZERO,
        ..Default::default()
    });
    put(&engine, "a", 10);
    let old = engine.snapshot().unwrap();
    let mut txn = begin(&engine, Mode::Transaction).unwrap();
    txn.put(Space::Doc, Bytes::from_static(b"b"), Bytes::new()).unwrap();
    put(&engine, "c", 60_000);
    assert!(old.get(Space::Doc, b"a").unwrap().is_some());
    put(&engine, "c", 60_000);
    assert_eq!(old.get(Space::Doc, b"a"), Err(StorageError::SnapshotTooOld));
    assert_eq!(txn.commit(CommitOptions::buffered()), Err(StorageError::SnapshotTooOld));
    let stats = engine.stats();
    assert_eq!((stats.snapshots_revoked, stats.snapshots), (1, 1));
    assert!(engine.snapshot().unwrap().get(Space::Doc, b"a").unwrap().is_some());
}

#[test]
fn age_counts_from_the_first_newer_commit() {
    let engine =
        engine(CommitterOptions { snapshot_age_max: Duration::ZERO, ..Default::default() });
    put(&engine, "a", 10);
    let old = engine.snapshot().unwrap();
    engine.maintenance(Maintenance::Tick).unwrap();
    assert!(old.get(Space::Doc, b"a").unwrap().is_some(), "nothing newer: it costs nothing");
    put(&engine, "a", 10);
    std::thread::sleep(Duration::from_millis(1));
    engine.maintenance(Maintenance::Tick).unwrap();
    assert_eq!(old.get(Space::Doc, b"a"), Err(StorageError::SnapshotTooOld));
}

#[test]
fn over_the_cap_of_the_conflict_table_old_snapshots_read_but_do_not_commit() {
    let engine = engine(CommitterOptions { conflict_keys_max: 2, ..Default::default() });
    put(&engine, "a", 10);
    let mut old = begin(&engine, Mode::Transaction).unwrap();
    for key in ["b", "c", "d", "e", "f"] {
        put(&engine, key, 10);
    }
    assert!(old.get(Space::Doc, b"a").unwrap().is_some());
    old.put(Space::Doc, Bytes::from_static(b"z"), Bytes::new()).unwrap();
    assert_eq!(old.push(), Err(StorageError::SnapshotTooOld));
    assert_eq!(old.commit(CommitOptions::buffered()), Err(StorageError::SnapshotTooOld));
}

#[test]
fn a_single_statement_gets_through_however_much_is_written_meanwhile() {
    let engine =
        engine(CommitterOptions { snapshot_retained_bytes_max: 1000, ..Default::default() });
    put(&engine, "a", 10);
    let mut txn = begin(&engine, Mode::Write).unwrap();
    txn.put(Space::Doc, Bytes::from_static(b"b"), Bytes::new()).unwrap();
    for _ in 0..10 {
        put(&engine, "c", 60_000);
    }
    assert!(txn.get(Space::Doc, b"a").unwrap().is_some());
    txn.commit(CommitOptions::buffered()).unwrap();
}
