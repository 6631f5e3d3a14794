//! A repair that is killed after any of its steps is continued by the next one, with the same
//! result as a repair that was not killed. A repair after a finished one changes nothing.

use std::path::Path;

use quire_storage::{Space, StorageError};
use quire_storage_lsm::{LsmOptions, end_repair, open};
use tempfile::TempDir;

use super::trace::Event;
use super::{DIRECTORY, SAID, run_process, trace};
use crate::support::{SMALL, content_of, crashed_with_tables_and_log, image, numbers, repair};

/// The process that is killed. Not a test by itself.
#[test]
#[ignore = "run by the test of killed repairs in a process of its own"]
fn repairing_process() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    // The recorder ignores the file that is created first.
    std::fs::write(Path::new(&directory).join(SAID), "").unwrap();
    let data = Path::new(&directory).join("data");
    repair(&data).engine.close().unwrap();
    end_repair(&data).unwrap();
}

/// Returns a database with a damaged block of documents, a truncated index table, a lost list of
/// tables, and a damaged record in the middle of the log.
fn damaged() -> TempDir {
    let directory = crashed_with_tables_and_log();
    for (path, mut bytes) in content_of(&directory.path().join("data")) {
        let is_table = |keyspace: &str| {
            path.components().any(|part| part.as_os_str() == keyspace)
                && path.parent().is_some_and(|above| above.ends_with("tables"))
                && path.file_name().is_none_or(|name| name != "999")
        };
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        if is_table("2") {
            bytes[used / 3] ^= 0x10;
        } else if is_table("3") {
            bytes.truncate(used / 2);
        } else if path.extension().is_some_and(|kind| kind == "jnl") {
            bytes[used / 2] ^= 0x10;
        } else if path.ends_with("4/current") {
            std::fs::remove_file(path).unwrap();
            continue;
        } else {
            continue;
        }
        std::fs::write(path, bytes).unwrap();
    }
    directory
}

/// Returns the documents and index entries of a database that opens without a warning.
fn content(directory: &Path) -> [Vec<u64>; 2] {
    let opened = open(directory, LsmOptions::default()).unwrap();
    assert_eq!(opened.warnings, [""; 0]);
    let snapshot = opened.engine.snapshot().unwrap();
    let content = [Space::Doc, Space::Idx].map(|space| numbers(&*snapshot, space, 1));
    drop(snapshot);
    opened.engine.close().unwrap();
    content
}

/// Returns a copy of the damaged database in which the process has run with this fault.
fn repaired_by_process(damaged: &Path, fault: &str) -> TempDir {
    let place = TempDir::new().unwrap();
    image(damaged, &place.path().join("root/data"));
    run_process("power_crash::repair::repairing_process", place.path(), fault);
    place
}

#[test]
fn a_repair_that_is_killed_after_any_step_is_taken_up() {
    let damaged = damaged();
    let whole = repaired_by_process(damaged.path(), "");
    let data = whole.path().join("root/data");
    let wanted = content(&data);
    let lost = 2 * SMALL - wanted[0].len() as u64;
    // One block, and one record of the log; or all records after it, if no record shows that it was
    // synced.
    assert!((1..SMALL + 150).contains(&lost), "{lost} are lost");
    let again = repair(&data);
    assert_eq!(again.warnings, [""; 0], "a second repair finds something");
    again.engine.close().unwrap();
    end_repair(&data).unwrap();
    assert_eq!(content(&data), wanted);

    let events = trace::read(&std::fs::read(whole.path().join("log")).unwrap());
    let steps = events.len();
    // After the first move of a damaged keyspace nothing is in its place.
    let is_move = |event: &Event| match event {
        Event::Rename(_, to) => to.to_string_lossy().contains("data.damaged-"),
        _ => false,
    };
    let moves = (1..).zip(&events).filter(|(_, event)| is_move(event)).map(|(step, _)| step);
    let moves: Vec<usize> = moves.collect();
    assert!(moves.len() >= 3, "documents, index entries, and the log of changes");
    let cuts = std::env::var("QUIRE_POWER_CUTS").ok().and_then(|cuts| cuts.parse().ok());
    let kills = cuts.unwrap_or(16).min(steps);
    let mut refused = 0;
    for step in (0..kills).map(|kill| 1 + kill * steps / kills).chain(moves) {
        let place = repaired_by_process(damaged.path(), &format!("kill {step}"));
        let data = place.path().join("root/data");
        if data.join("REPAIR").exists() {
            match open(&data, LsmOptions::default()).map(|_| ()) {
                Err(StorageError::Unavailable(why)) => assert!(why.contains("--repair"), "{why}"),
                other => panic!("step {step}: {other:?}"),
            }
            refused += 1;
        }
        repair(&data).engine.close().unwrap();
        end_repair(&data).unwrap();
        assert_eq!(content(&data), wanted, "killed after step {step} of {steps}");
    }
    assert!(refused > kills / 2, "{refused} of {kills} kills met a repair under way");
}
