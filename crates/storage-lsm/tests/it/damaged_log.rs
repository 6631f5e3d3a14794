//! A damaged log: a torn tail is trimmed; damage in the middle, and a log truncated in its durable
//! part, is refused and repaired only on request.

use std::ops::Range;
use std::path::PathBuf;

use quire_storage::{CommitOptions, Maintenance, Space, StorageError};
use quire_storage_lsm::journal::{files, inspect};
use quire_storage_lsm::{LsmOptions, end_repair, open};
use tempfile::TempDir;

use crate::support::{SMALL, content_of, document, flushed, image, insert, numbers, repair};

/// A database after a crash: small records, then perhaps one large one.
struct Crashed {
    directory: TempDir,
    log: PathBuf,
    batches: Vec<Range<usize>>,
}

fn crashed(large: bool) -> Crashed {
    crashed_with(large, |number| number % 5 == 4 && number < SMALL - 1)
}

/// `is_forced` returns true for the records after which the log is synced.
fn crashed_with(large: bool, is_forced: impl Fn(u64) -> bool) -> Crashed {
    let live = TempDir::new().unwrap();
    let mut options = LsmOptions::default();
    options.committer.tick = None;
    let engine = open(live.path(), options).unwrap().engine;
    for number in 0..SMALL {
        insert(&engine, 1, number, document(number, 200), CommitOptions::buffered());
        if is_forced(number) {
            engine.maintenance(Maintenance::Tick).unwrap();
        }
    }
    if large {
        insert(&engine, 1, SMALL, document(SMALL, 64 << 10), CommitOptions::buffered());
    }
    let directory = TempDir::new().unwrap();
    image(live.path(), directory.path());
    engine.close().unwrap();
    let log = files(&directory.path().join("data")).unwrap().pop().unwrap();
    let found = inspect(&log).unwrap();
    assert_eq!((found.damaged_from, found.intact_after_damage()), (None, 0));
    assert_eq!(found.intact.len() as u64, SMALL + u64::from(large));
    Crashed { directory, log, batches: found.intact }
}

impl Crashed {
    fn change(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(&self.log).unwrap();
        change(&mut bytes);
        std::fs::write(&self.log, bytes).unwrap();
    }

    fn last(&self) -> Range<usize> {
        self.batches.last().unwrap().clone()
    }

    /// Opens twice. Expects a warning and all records except the last.
    fn opens_without_the_last(&self) {
        let expected: Vec<u64> = (0..self.batches.len() as u64 - 1).collect();
        for round in 0..2 {
            let opened = open(self.directory.path(), LsmOptions::default()).unwrap();
            assert_eq!(opened.warnings.len(), 1 - round, "{:?}", opened.warnings);
            let snapshot = opened.engine.snapshot().unwrap();
            assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
            assert_eq!(numbers(&*snapshot, Space::Idx, 1), expected);
            assert_eq!(opened.engine.counts(1).documents, expected.len() as u64);
            drop(snapshot);
            opened.engine.close().unwrap();
        }
    }

    /// Expects that the open is refused without any change, and that a repair keeps all records
    /// except `lost`.
    fn is_refused_then_repaired(&self, lost: &[u64]) {
        let before = std::fs::read(&self.log).unwrap();
        for _ in 0..2 {
            match open(self.directory.path(), LsmOptions::default()).map(|_| ()) {
                Err(StorageError::Corruption { place }) => {
                    assert!(place.contains("--repair") && place.contains("byte"), "{place}");
                }
                other => panic!("damage was accepted: {other:?}"),
            }
        }
        assert!(std::fs::read(&self.log).unwrap() == before, "a refused log was changed");
        let options = LsmOptions { repair: true, ..LsmOptions::default() };
        let opened = open(self.directory.path(), options).unwrap();
        assert_eq!(opened.warnings.len(), 1);
        let snapshot = opened.engine.snapshot().unwrap();
        let all = 0..self.batches.len() as u64;
        let expected: Vec<u64> = all.filter(|number| !lost.contains(number)).collect();
        assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
        assert!(self.log.with_extension("damaged").exists(), "the damaged file is kept");
        drop(snapshot);
        opened.engine.close().unwrap();
        end_repair(self.directory.path()).unwrap();
        let reopened = open(self.directory.path(), LsmOptions::default()).unwrap();
        assert_eq!(reopened.warnings, Vec::<String>::new());
        let snapshot = reopened.engine.snapshot().unwrap();
        assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
    }
}

#[test]
fn a_truncated_log_loses_its_last_record() {
    let crashed = crashed(false);
    let end = crashed.last().end;
    crashed.change(|bytes| bytes.truncate(end - 100));
    crashed.opens_without_the_last();
}

/// An engine whose write had failed began the next file while it closed, and the next start refused
/// the torn end of the previous file.
#[test]
fn a_torn_record_before_a_file_without_records_is_lost() {
    let crashed = crashed(false);
    let end = crashed.last().end;
    crashed.change(|bytes| bytes.truncate(end - 3));
    let next = crashed.log.with_file_name("1.jnl");
    assert!(!next.exists());
    std::fs::File::create(next).unwrap().set_len(64 << 20).unwrap();
    crashed.opens_without_the_last();
}

#[test]
fn a_flipped_bit_in_the_last_record_loses_it() {
    let crashed = crashed(false);
    let last = crashed.last();
    crashed.change(|bytes| bytes[last.start + (last.end - last.start) / 2] ^= 4);
    crashed.opens_without_the_last();
}

#[test]
fn a_page_of_zeros_inside_a_large_last_record_loses_it() {
    let crashed = crashed(true);
    let page = (crashed.last().start / 4096 + 3) * 4096;
    crashed.change(|bytes| bytes[page..page + 4096].fill(0));
    crashed.opens_without_the_last();
}

#[test]
fn a_last_record_whose_end_was_never_written_is_lost() {
    let crashed = crashed(true);
    let end = crashed.last().end;
    crashed.change(|bytes| bytes[end - 20_000..end].fill(0));
    crashed.opens_without_the_last();
}

#[test]
fn a_page_of_zeros_before_intact_records_is_refused() {
    let crashed = crashed(false);
    let count = crashed.batches.len();
    let hole = crashed.batches[count - 23].start..crashed.batches[count - 12].start;
    let hit = (0..count as u64)
        .filter(|number| {
            let batch = &crashed.batches[*number as usize];
            batch.start < hole.end && batch.end > hole.start
        })
        .collect::<Vec<_>>();
    crashed.change(|bytes| bytes[hole.clone()].fill(0));
    crashed.is_refused_then_repaired(&hit);
}

/// A power cut loses unsynced pages in any order. The server refused to start, though it had lost
/// nothing that was acknowledged as durable.
#[test]
fn a_hole_in_the_unsynced_tail_is_trimmed() {
    for (first, last) in [(250, 252), (201, 201), (260, 298)] {
        let crashed = crashed_with(false, |number| number == 200);
        let hole = crashed.batches[first].start..crashed.batches[last].end;
        crashed.change(|bytes| bytes[hole].fill(0));
        for round in 0..2 {
            let opened = open(crashed.directory.path(), LsmOptions::default()).unwrap();
            assert_eq!(opened.warnings.len(), 1 - round, "{:?}", opened.warnings);
            let there = numbers(&*opened.engine.snapshot().unwrap(), Space::Doc, 1);
            assert_eq!(there, (0..first as u64).collect::<Vec<_>>());
            assert_eq!(opened.engine.counts(1).documents, first as u64);
            opened.engine.close().unwrap();
        }
    }
}

/// One damaged record in the durable part is enough. The records after it tell how far the log was
/// durable, and so does the file `DURABLE`.
#[test]
fn a_hole_in_the_durable_part_is_refused() {
    for (hit, has_file) in [(0, true), (100, true), (200, true), (0, false), (200, false)] {
        let crashed = crashed_with(false, |number| number == 200);
        if !has_file {
            std::fs::remove_file(crashed.directory.path().join("DURABLE")).unwrap();
        }
        let hole = crashed.batches[hit].clone();
        crashed.change(|bytes| bytes[hole].fill(0));
        crashed.is_refused_then_repaired(&[hit as u64]);
    }
}

/// The log lost its durable tail without an error.
#[test]
fn a_log_that_is_truncated_inside_its_durable_part_is_refused() {
    for kept in [0, 1, 150, 200] {
        let crashed = crashed_with(false, |number| number == 200);
        let end = crashed.batches[kept].start;
        crashed.change(|bytes| bytes.truncate(end));
        let before = content_of(crashed.directory.path());
        let why = open(crashed.directory.path(), LsmOptions::default()).map(|_| ()).unwrap_err();
        assert!(why.to_string().contains("cut short"), "{why}");
        let mut after = content_of(crashed.directory.path());
        let lock = crashed.directory.path().join("LOCK");
        after.insert(lock.clone(), before[&lock].clone());
        assert!(before == after);
        repair(crashed.directory.path()).engine.close().unwrap();
        end_repair(crashed.directory.path()).unwrap();
        let engine = open(crashed.directory.path(), LsmOptions::default()).unwrap().engine;
        let there = numbers(&*engine.snapshot().unwrap(), Space::Doc, 1);
        assert_eq!(there, (0..kept as u64).collect::<Vec<_>>());
    }
}

/// The first of several logs is missing: the records that only it had are lost.
#[test]
fn a_log_whose_beginning_is_missing_is_refused() {
    let crashed = crashed(false);
    let cut = crashed.batches[10].start;
    crashed.change(|bytes| *bytes = bytes.split_off(cut));
    let why = open(crashed.directory.path(), LsmOptions::default()).map(|_| ()).unwrap_err();
    assert!(why.to_string().contains("missing from the log"), "{why}");
}

#[test]
fn a_directory_of_another_format_is_refused_and_not_changed() {
    let directory = flushed();
    let format = directory.path().join("FORMAT");
    for other in ["quire-storage 1\n", "quire-storage 2\n", "quire-storage 4\n"] {
        std::fs::write(&format, other).unwrap();
        let Err(error) = open(directory.path(), LsmOptions::default()) else { panic!("{other}") };
        assert!(error.to_string().contains("this program reads format 3"), "{error}");
        assert_eq!(std::fs::read_to_string(&format).unwrap(), other);
    }
}

#[test]
fn a_flipped_bit_in_the_middle_is_refused() {
    for share in [3, 4, 5, 6] {
        let crashed = crashed(false);
        let hit = crashed.batches.len() * share / 10;
        let batch = crashed.batches[hit].clone();
        crashed.change(|bytes| bytes[batch.start + 60] ^= 1);
        crashed.is_refused_then_repaired(&[hit as u64]);
    }
}

#[test]
fn a_flipped_bit_in_a_sequence_number_is_noticed() {
    let crashed = crashed(false);
    let batch = crashed.batches[100].clone();
    crashed.change(|bytes| bytes[batch.start + 10] ^= 0x80);
    crashed.is_refused_then_repaired(&[100]);
}

/// A power cut loses the end of the log, at any position: the rest is a prefix of history, and
/// documents, entries, change records and counters agree.
#[test]
fn a_log_cut_anywhere_leaves_a_prefix_of_history() {
    let crashed = crashed(false);
    let whole = std::fs::read(&crashed.log).unwrap();
    let mut rng = quire_storage::rng::Rng::new(11);
    for _ in 0..12 {
        let end = usize::try_from(rng.below(crashed.last().end as u64)).unwrap();
        let mut bytes = whole.clone();
        match rng.below(3) {
            0 => bytes.truncate(end),
            1 => bytes[end..].fill(0),
            _ => {
                bytes.truncate(end + 40);
                bytes[end..].fill(0xA5);
            }
        }
        std::fs::write(&crashed.log, bytes).unwrap();
        // As if no record had been synced.
        let _ = std::fs::remove_file(crashed.directory.path().join("DURABLE"));
        let image_of_it = TempDir::new().unwrap();
        image(crashed.directory.path(), image_of_it.path());
        let engine = open(image_of_it.path(), LsmOptions::default()).unwrap().engine;
        let expected = crashed.batches.iter().filter(|batch| batch.end <= end).count() as u64;
        let snapshot = engine.snapshot().unwrap();
        let documents = numbers(&*snapshot, Space::Doc, 1);
        assert_eq!(documents, (0..expected).collect::<Vec<_>>());
        assert_eq!(numbers(&*snapshot, Space::Idx, 1), documents);
        assert_eq!(engine.counts(1).documents, expected);
        assert_eq!(engine.version().as_u64(), expected);
        drop(snapshot);
        insert(&engine, 1, expected, document(expected, 10), CommitOptions::synced());
    }
}

/// Returns the directory and the log files of a database after a crash whose log has several files.
/// `is_forced` returns true for the records after which the log is synced.
fn crashed_with_files(is_forced: impl Fn(u64) -> bool) -> (TempDir, Vec<PathBuf>) {
    let live = TempDir::new().unwrap();
    let mut options = LsmOptions { log_file_bytes: 4 << 10, ..LsmOptions::default() };
    options.committer.tick = None;
    let engine = open(live.path(), options).unwrap().engine;
    for number in 0..FEW {
        insert(&engine, 1, number, document(number, 200), CommitOptions::buffered());
        if is_forced(number) {
            engine.maintenance(Maintenance::Tick).unwrap();
        }
    }
    let directory = TempDir::new().unwrap();
    image(live.path(), directory.path());
    engine.close().unwrap();
    let mut logs = files(&directory.path().join("data")).unwrap();
    logs.retain(|log| !inspect(log).unwrap().intact.is_empty());
    assert!(logs.len() > 3, "{logs:?}");
    (directory, logs)
}

const FEW: u64 = 50;

/// A full file is not synced before the next one is begun, so a power cut can lose its end or a
/// page of it and keep the records of the next file.
#[test]
fn a_hole_at_the_end_of_a_full_file_ends_the_history_there() {
    for (loses_page, is_forced) in [(false, false), (false, true), (true, false), (true, true)] {
        let (directory, logs) = crashed_with_files(|number| is_forced || number == 3);
        let full = &logs[logs.len() - 3];
        let mut found = inspect(full).unwrap();
        let (last, place) = (found.intact.pop().unwrap(), found.places.pop().unwrap().unwrap());
        let mut bytes = std::fs::read(full).unwrap();
        match loses_page {
            true => bytes[last].fill(0),
            false => bytes.truncate(last.start),
        }
        std::fs::write(full, bytes).unwrap();
        let _ = std::fs::remove_file(directory.path().join("DURABLE"));
        if is_forced {
            let why = open(directory.path(), LsmOptions::default()).map(|_| ()).unwrap_err();
            assert!(why.to_string().contains("nothing was changed"), "{why}");
            continue;
        }
        // Each commit has one document.
        let expected: Vec<u64> = (0..place.version - 1).collect();
        for round in 0..2 {
            let opened = open(directory.path(), LsmOptions::default()).unwrap();
            let told = opened.warnings.iter().filter(|text| text.contains("acknowledged")).count();
            assert_eq!(told, 1 - round, "{:?}", opened.warnings);
            let snapshot = opened.engine.snapshot().unwrap();
            assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
            assert_eq!(opened.engine.version().as_u64(), expected.len() as u64);
        }
    }
}

/// In a repair the intact records of every file are kept.
#[test]
fn a_damaged_file_among_several_loses_its_damaged_record() {
    let (directory, logs) = crashed_with_files(|_| true);
    let hit = inspect(&logs[1]).unwrap();
    let mut bytes = std::fs::read(&logs[1]).unwrap();
    bytes[hit.intact[2].start + 60] ^= 1;
    std::fs::write(&logs[1], bytes).unwrap();
    assert!(open(directory.path(), LsmOptions::default()).is_err());
    repair(directory.path()).engine.close().unwrap();
    end_repair(directory.path()).unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let there = numbers(&*engine.snapshot().unwrap(), Space::Doc, 1);
    let lost = hit.places[2].unwrap().version - 1;
    assert_eq!(there, (0..FEW).filter(|number| *number != lost).collect::<Vec<_>>());
}
