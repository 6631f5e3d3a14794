//! A nearly full disk, and failed background work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quire_storage::{CommitOptions, Engine, Maintenance, Mode, Space, StorageError, begin};
use quire_storage_lsm::{DiskSpace, LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, fill, key, numbers};

fn put(engine: &Arc<dyn Engine>, number: u64) -> Result<(), StorageError> {
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.put(Space::Doc, key(1, number), document(number, 100)).unwrap();
    txn.commit(CommitOptions::synced()).map(drop)
}

/// Returns an engine that keeps 100 MB free, and the number of bytes that it takes for free.
fn measured_engine(directory: &TempDir) -> (Arc<dyn Engine>, Arc<AtomicU64>) {
    let available = Arc::new(AtomicU64::new(10 << 30));
    let seen = Arc::clone(&available);
    let options = LsmOptions {
        reserve_bytes: 100 << 20,
        space_probe: Arc::new(move |_| {
            let available_bytes = seen.load(Ordering::Relaxed);
            Some(DiskSpace { available_bytes, total_bytes: 20 << 30 })
        }),
        ..LsmOptions::default()
    };
    (open(directory.path(), options).unwrap().engine, available)
}

/// A full disk made a write or a flush fail, which poisoned the engine until a restart.
#[test]
fn new_data_is_refused_before_the_disk_is_full_and_taken_again_when_there_is_space() {
    let directory = TempDir::new().unwrap();
    let (engine, available) = measured_engine(&directory);
    fill(&engine, 1, 3000, 100);
    let set = |bytes| {
        available.store(bytes, Ordering::Relaxed);
        engine.maintenance(Maintenance::Tick).unwrap();
    };
    set(99 << 20);
    assert!(engine.stats().is_short_of_space);
    assert_eq!(put(&engine, 5000), Err(StorageError::Full));
    // Deletes, which free space, still succeed.
    let mut txn = begin(&engine, Mode::Write).unwrap();
    txn.delete(Space::Doc, key(1, 7)).unwrap();
    txn.put(Space::Meta, key(9 << 24, 9), document(9, 10)).unwrap();
    txn.commit(CommitOptions::synced()).unwrap();
    engine.drop_range(Space::Doc, &key(1, 1000), &key(2, 0)).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 1).len(), 999);
    engine.health().unwrap();

    // Another program has used up the reserve. A delete on the full disk poisoned the engine.
    set(15 << 20);
    let delete = || {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        txn.delete(Space::Doc, key(1, 8)).unwrap();
        txn.commit(CommitOptions::synced()).map(drop)
    };
    let before = engine.stats().commits;
    assert_eq!(delete(), Err(StorageError::Full));
    let dropped = engine.drop_range(Space::Doc, &key(1, 500), &key(2, 0));
    assert_eq!(dropped, Err(StorageError::Full));
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().commits, before);
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 1).len(), 999);
    engine.health().unwrap();
    set(99 << 20);
    delete().unwrap();

    set(1 << 30);
    assert!(!engine.stats().is_short_of_space);
    put(&engine, 5000).unwrap();
    assert!(engine.snapshot().unwrap().get(Space::Doc, &key(1, 5000)).unwrap().is_some());
}

/// The failure of a background thread was reported only by the next write.
#[test]
fn an_idle_engine_notices_that_its_background_work_has_failed() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    put(&engine, 1).unwrap();
    for keyspace in std::fs::read_dir(directory.path().join("data/keyspaces")).unwrap() {
        let tables = keyspace.unwrap().path().join("tables");
        let _ = std::fs::remove_dir_all(tables);
    }
    // The flush fails in a background thread.
    assert!(engine.maintenance(Maintenance::Flush).is_err());
    let until = Instant::now() + Duration::from_secs(20);
    while engine.health().is_ok() {
        assert!(Instant::now() < until, "nobody noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(matches!(put(&engine, 2), Err(StorageError::Unavailable(_))));
    assert!(engine.snapshot().unwrap().get(Space::Doc, &key(1, 1)).unwrap().is_some());
}

/// Freeing a dropped range merged the whole keyspace, which filled the disk to its last byte.
#[test]
fn a_merge_that_frees_space_waits_for_the_space_that_it_needs() {
    let directory = TempDir::new().unwrap();
    let (engine, available) = measured_engine(&directory);
    fill(&engine, 1, 20_000, 700);
    fill(&engine, 2, 20_000, 700);
    // One table has the documents of both collections.
    engine.maintenance(Maintenance::Compact).unwrap();
    let stats = engine.stats();
    let tables = stats.disk_bytes - stats.journal_bytes;
    available.store((100 << 20) + tables / 2, Ordering::Relaxed);
    engine.drop_range(Space::Doc, &key(1, 0), &key(2, 0)).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 1);
    assert_eq!(engine.maintenance(Maintenance::Compact), Err(StorageError::Full));
    engine.health().unwrap();
    available.store(10 << 30, Ordering::Relaxed);
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 2).len(), 20_000);
}

/// The log of a nearly full disk was kept until the next start: nothing flushed the memtables that
/// needed it, because new data was refused.
#[test]
fn the_log_is_freed_when_the_disk_is_nearly_full() {
    let directory = TempDir::new().unwrap();
    let (engine, available) = measured_engine(&directory);
    fill(&engine, 1, 20_000, 700);
    assert!(engine.stats().journal_bytes > 10 << 20);
    available.store(99 << 20, Ordering::Relaxed);
    let begun = Instant::now();
    while engine.stats().journal_bytes > 4 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the log stays");
        engine.maintenance(Maintenance::Tick).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(put(&engine, 30_000), Err(StorageError::Full));
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 1).len(), 20_000);
}
