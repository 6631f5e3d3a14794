//! A flush that meets a full disk removes what it wrote and waits. The engine goes on when there is
//! room again, without a restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use quire_storage::{CommitOptions, Maintenance, Mode, Space, StorageError, begin};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use super::{DIRECTORY, SAID, run_process};
use crate::support::{document, key, numbers};

const DOCUMENTS: u64 = 400;
const LENGTH: usize = 20_000;

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
    assert!(failures > 0);
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
