//! A table is synced while it is being written, by flushes and by merges, so that no small sync of
//! the log waits until tens of megabytes are on the device.

use std::collections::HashMap;
use std::path::Path;

use quire_storage::Maintenance;
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use super::trace::{Event, Number};
use super::{DIRECTORY, SAID, run_process, trace};
use crate::support::fill;

/// The bytes of a table that may wait for a sync: 4 MB, a part that is written at once, and some
/// rows.
const UNSYNCED_BYTES_MAX: usize = 5 << 20;

/// The process that writes. Not a test by itself.
#[test]
#[ignore = "run by the test of syncs in a process of its own"]
fn writing_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // The recorder ignores the file that is created first.
    std::fs::write(Path::new(&directory).join(SAID), "").unwrap();
    let engine = open(&Path::new(&directory).join("data"), LsmOptions::default()).unwrap().engine;
    // The second time the tables overlap, so that they are merged.
    for _ in 0..2 {
        fill(&engine, 1, 300, 64 << 10);
        engine.maintenance(Maintenance::Flush).unwrap();
    }
    engine.maintenance(Maintenance::Compact).unwrap();
    engine.close().unwrap();
}

#[test]
fn large_tables_are_synced_in_pieces() {
    let place = TempDir::new().unwrap();
    assert!(run_process("power_crash::pieces::writing_process", place.path(), "").status.success());
    let is_table = |path: &Path| path.parent().is_some_and(|above| above.ends_with("tables"));
    // The written and the unsynced bytes of each table.
    let mut tables: HashMap<Number, (usize, usize)> = HashMap::new();
    for event in trace::read(&std::fs::read(place.path().join("log")).unwrap()) {
        match event {
            Event::Create(number, path) if is_table(&path) => {
                tables.insert(number, (0, 0));
            }
            Event::Write(number, _, bytes) => {
                let Some((written, unsynced)) = tables.get_mut(&number) else { continue };
                *written += bytes.len();
                *unsynced += bytes.len();
                assert!(*unsynced <= UNSYNCED_BYTES_MAX, "{unsynced} bytes wait for a sync");
            }
            Event::Sync(number) => {
                tables.entry(number).and_modify(|(_, unsynced)| *unsynced = 0);
            }
            _ => {}
        }
    }
    let large = tables.values().filter(|(written, _)| *written > 2 * UNSYNCED_BYTES_MAX);
    assert!(large.count() >= 3, "two flushes and a merge write large tables: {tables:?}");
    assert!(tables.values().all(|(_, unsynced)| *unsynced == 0), "{tables:?}");
}
