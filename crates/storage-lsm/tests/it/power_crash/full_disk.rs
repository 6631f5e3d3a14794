//! A flush that meets a full disk removes what it wrote and waits. A commit that meets one fails, and
//! nothing of it is there. The engine goes on when there is room again, without a restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quire_storage::{
    Bytes, CommitOptions, CommitterOptions, Maintenance, Mode, Space, StorageError, begin,
};
use quire_storage_lsm::{LsmOptions, examine, open};
use tempfile::TempDir;

use super::{DIRECTORY, SAID, run_process};
use crate::support::{document, key, numbers};

const DOCUMENTS: u64 = 400;
const LENGTH: usize = 20_000;
const SMALL_DOCUMENTS: u64 = 200;
/// The file with the number of failed commits.
const FAILURES: &str = "failures";

/// The process whose tables find no room. Not a test by itself.
#[test]
#[ignore = "run by the test of full disks in a process of its own"]
fn flushing_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // The recorder ignores the file that is created first.
    std::fs::write(Path::new(&directory).join(SAID), "").unwrap();
    let data = Path::new(&directory).join("data");
    let engine = open(&data, LsmOptions::default()).unwrap().engine;
    let put = |number: u64| {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        txn.put_entry(Space::Doc, key(1, number), document(number, LENGTH)).unwrap();
        txn.commit(CommitOptions::buffered()).unwrap();
    };
    (0..DOCUMENTS).for_each(put);
    let until = Instant::now() + Duration::from_secs(20);
    let mut failures = 0;
    while let Err(error) = engine.maintenance(Maintenance::Flush) {
        assert!(error == StorageError::Full && Instant::now() < until, "{error}");
        failures += 1;
        // Commits go on meanwhile.
        put(DOCUMENTS + failures);
        std::thread::sleep(Duration::from_millis(20));
    }
    // A flush by a command does not wait for the pause after a failure.
    assert!((1..=3).contains(&failures), "{failures}");
    let tables = data.join("data/keyspaces/2/tables");
    let existing: BTreeSet<_> = tables.read_dir().unwrap().map(|it| it.unwrap().path()).collect();
    let bytes: u64 = existing.iter().map(|path| path.metadata().unwrap().len()).sum();
    let flushed = DOCUMENTS * LENGTH as u64;
    assert!(bytes < flushed + flushed / 4, "the tables of failed flushes stay: {existing:?}");
    engine.close().unwrap();
}

#[test]
fn a_full_disk_during_a_flush_is_survived() {
    for at in [1, 9, 20] {
        let place = TempDir::new().unwrap();
        let fault = format!("tables {at}");
        let ended = run_process("power_crash::full_disk::flushing_process", place.path(), &fault);
        assert!(ended.status.success(), "{fault}");
        let engine = open(&place.path().join("root/data"), LsmOptions::default()).unwrap().engine;
        let found = numbers(&*engine.snapshot().unwrap(), Space::Doc, 1);
        assert!(found.len() as u64 > DOCUMENTS && found[..DOCUMENTS as usize].is_sorted());
        for number in found {
            let snapshot = engine.snapshot().unwrap();
            let value = snapshot.get(Space::Doc, &key(1, number)).unwrap();
            assert_eq!(value, Some(document(number, LENGTH)));
        }
        engine.close().unwrap();
    }
}

/// The process whose commits find no room. Each of its transactions has a document and an index
/// entry, and is tried again until it is committed. Not a test by itself.
#[test]
#[ignore = "run by the test of full disks in a process of its own"]
fn committing_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    std::fs::write(directory.join(SAID), "").unwrap();
    let tick = Some(Duration::from_millis(2));
    let committer = CommitterOptions { tick, ..CommitterOptions::default() };
    let options = LsmOptions {
        committer,
        log_file_bytes: 256 << 10,
        log_fill_syncs: 5,
        ..Default::default()
    };
    let engine = open(&directory.join("data"), options).unwrap().engine;
    let failures = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for collection in 1..=2 {
            let (engine, failures) = (&engine, &failures);
            scope.spawn(move || {
                for number in 0..SMALL_DOCUMENTS {
                    let until = Instant::now() + Duration::from_secs(20);
                    loop {
                        let mut txn = begin(engine, Mode::Write).unwrap();
                        let value = document(number, 3000);
                        // The key is new each time: nothing of a failed commit is there.
                        txn.insert(Space::Doc, key(collection, number), value, 0).unwrap();
                        txn.put(Space::Idx, key(collection, number), Bytes::new()).unwrap();
                        txn.put(Space::Idx, key(collection, u64::MAX), Bytes::new()).unwrap();
                        txn.add_counts(collection, 1, 3000);
                        match txn.commit(CommitOptions::synced()) {
                            Ok(_) => break,
                            Err(StorageError::Full) if Instant::now() < until => {
                                failures.fetch_add(1, Ordering::Relaxed);
                                std::thread::sleep(Duration::from_millis(1));
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    engine.close().unwrap();
    std::fs::write(directory.join(FAILURES), failures.into_inner().to_string()).unwrap();
}

#[test]
fn a_full_disk_during_a_commit_is_survived() {
    let mut failures = 0;
    for at in [20, 60, 61, 120, 333] {
        let place = TempDir::new().unwrap();
        let fault = format!("records {at}");
        let ended = run_process("power_crash::full_disk::committing_process", place.path(), &fault);
        assert!(ended.status.success(), "{fault}");
        let counted = std::fs::read_to_string(place.path().join("root").join(FAILURES)).unwrap();
        failures += counted.parse::<u64>().unwrap();
        let directory = place.path().join("root/data");
        assert_eq!(examine(&directory, LsmOptions::default()).unwrap().damages, [""; 0]);
        let engine = open(&directory, LsmOptions::default()).unwrap().engine;
        let snapshot = engine.snapshot().unwrap();
        let all: Vec<u64> = (0..SMALL_DOCUMENTS).collect();
        for collection in 1..=2 {
            assert_eq!(numbers(&*snapshot, Space::Doc, collection), all, "{fault}");
            assert_eq!(numbers(&*snapshot, Space::Idx, collection)[..all.len()], all, "{fault}");
            assert_eq!(engine.counts(collection).documents, SMALL_DOCUMENTS, "{fault}");
        }
        drop(snapshot);
        engine.close().unwrap();
    }
    // A fault can also hit the thread that fills the next log file.
    assert!(failures > 0, "no commit met a full disk");
}
