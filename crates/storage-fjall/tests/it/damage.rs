//! Damaged files: a torn tail is trimmed, interior damage is refused and mended only on request,
//! a flipped bit in a table is an error and never a wrong value; a repair begins damaged index
//! entries anew.

use std::ops::Range;
use std::path::{Path, PathBuf};

use quire_storage::{CommitOptions, Maintenance, Space, StorageError};
use quire_storage_fjall::journal::{files, inspect};
use quire_storage_fjall::{FjallOptions, end_repair, examine, open};
use tempfile::TempDir;

use crate::support::{document, image, insert, key, numbers};

const SMALL: u64 = 300;

/// A database after a crash: small records, then perhaps one large one.
struct Crashed {
    directory: TempDir,
    log: PathBuf,
    batches: Vec<Range<usize>>,
}

fn crashed(large: bool) -> Crashed {
    crashed_with(large, |number| number % 5 == 4 && number < SMALL - 1)
}

/// `is_forced`: after which records the log is forced out.
fn crashed_with(large: bool, is_forced: impl Fn(u64) -> bool) -> Crashed {
    let live = TempDir::new().unwrap();
    let mut options = FjallOptions::default();
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

    /// Opens, expects a warning and all but the last record, twice.
    fn opens_without_the_last(&self) {
        let expected: Vec<u64> = (0..self.batches.len() as u64 - 1).collect();
        for round in 0..2 {
            let opened = open(self.directory.path(), FjallOptions::default()).unwrap();
            assert_eq!(opened.warnings.len(), 1 - round, "{:?}", opened.warnings);
            let snapshot = opened.engine.snapshot().unwrap();
            assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
            assert_eq!(numbers(&*snapshot, Space::Idx, 1), expected);
            assert_eq!(opened.engine.counts(1).documents, expected.len() as u64);
            drop(snapshot);
            opened.engine.close().unwrap();
        }
    }

    /// Is refused without any change, then mended with all but the lost records.
    fn is_refused_then_mended(&self, lost: &[u64]) {
        let before = std::fs::read(&self.log).unwrap();
        for _ in 0..2 {
            match open(self.directory.path(), FjallOptions::default()).map(|_| ()) {
                Err(StorageError::Corruption { place }) => {
                    assert!(place.contains("--repair") && place.contains("byte"), "{place}");
                }
                other => panic!("damage was accepted: {other:?}"),
            }
        }
        assert!(std::fs::read(&self.log).unwrap() == before, "a refused log was changed");
        let options = FjallOptions { repair: true, ..FjallOptions::default() };
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
        let reopened = open(self.directory.path(), FjallOptions::default()).unwrap();
        assert_eq!(reopened.warnings, Vec::<String>::new());
        let snapshot = reopened.engine.snapshot().unwrap();
        assert_eq!(numbers(&*snapshot, Space::Doc, 1), expected);
    }
}

#[test]
fn a_log_cut_short_loses_its_last_record() {
    let crashed = crashed(false);
    let end = crashed.last().end;
    crashed.change(|bytes| bytes.truncate(end - 100));
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
    crashed.is_refused_then_mended(&hit);
}

/// A power cut loses pages of what was not forced out in any order. The server refused to start,
/// though nothing was lost that it had acknowledged as durable.
#[test]
fn a_hole_in_the_tail_that_was_not_forced_out_is_trimmed() {
    for (first, last) in [(250, 252), (201, 201), (260, 298)] {
        let crashed = crashed_with(false, |number| number == 200);
        let hole = crashed.batches[first].start..crashed.batches[last].end;
        crashed.change(|bytes| bytes[hole].fill(0));
        for round in 0..2 {
            let opened = open(crashed.directory.path(), FjallOptions::default()).unwrap();
            assert_eq!(opened.warnings.len(), 1 - round, "{:?}", opened.warnings);
            let there = numbers(&*opened.engine.snapshot().unwrap(), Space::Doc, 1);
            assert_eq!(there, (0..first as u64).collect::<Vec<_>>());
            assert_eq!(opened.engine.counts(1).documents, first as u64);
            opened.engine.close().unwrap();
        }
    }
}

/// One record before what was forced out is enough.
#[test]
fn a_hole_before_what_was_forced_out_is_refused() {
    for hit in [0, 100, 200] {
        let crashed = crashed_with(false, |number| number == 200);
        let hole = crashed.batches[hit].clone();
        crashed.change(|bytes| bytes[hole].fill(0));
        crashed.is_refused_then_mended(&[hit as u64]);
    }
}

/// It lost its durable tail without a word.
#[test]
fn a_log_that_is_cut_short_inside_its_durable_part_is_refused() {
    for kept in [0, 1, 150, 200] {
        let crashed = crashed_with(false, |number| number == 200);
        let end = crashed.batches[kept].start;
        crashed.change(|bytes| bytes.truncate(end));
        let before = content_of(crashed.directory.path());
        let why = open(crashed.directory.path(), FjallOptions::default()).map(|_| ()).unwrap_err();
        assert!(why.to_string().contains("cut short"), "{why}");
        let mut after = content_of(crashed.directory.path());
        let lock = crashed.directory.path().join("LOCK");
        after.insert(lock.clone(), before[&lock].clone());
        assert!(before == after);
        repair(crashed.directory.path()).engine.close().unwrap();
        end_repair(crashed.directory.path()).unwrap();
        let engine = open(crashed.directory.path(), FjallOptions::default()).unwrap().engine;
        let there = numbers(&*engine.snapshot().unwrap(), Space::Doc, 1);
        assert_eq!(there, (0..kept as u64).collect::<Vec<_>>());
    }
}

/// The first of several logs is missing: what it had beyond the tables is gone.
#[test]
fn a_log_whose_beginning_is_missing_is_refused() {
    let crashed = crashed(false);
    let cut = crashed.batches[10].start;
    crashed.change(|bytes| *bytes = bytes.split_off(cut));
    let why = open(crashed.directory.path(), FjallOptions::default()).map(|_| ()).unwrap_err();
    assert!(why.to_string().contains("missing from the log"), "{why}");
}

#[test]
fn a_directory_of_the_format_before_opens_and_becomes_the_present_one() {
    let directory = flushed();
    let format = directory.path().join("FORMAT");
    std::fs::write(&format, "quire-storage 1\n").unwrap();
    std::fs::remove_file(directory.path().join("DURABLE")).unwrap();
    let engine = open(directory.path(), FjallOptions::default()).unwrap().engine;
    assert_eq!(std::fs::read_to_string(&format).unwrap(), "quire-storage 2\n");
    assert_eq!(engine.counts(1).documents, SMALL);
}

#[test]
fn a_flipped_bit_in_the_middle_is_refused() {
    for share in [3, 4, 5, 6] {
        let crashed = crashed(false);
        let hit = crashed.batches.len() * share / 10;
        let batch = crashed.batches[hit].clone();
        crashed.change(|bytes| bytes[batch.start + 60] ^= 1);
        crashed.is_refused_then_mended(&[hit as u64]);
    }
}

#[test]
fn a_flipped_bit_in_a_sequence_number_is_noticed() {
    let crashed = crashed(false);
    let batch = crashed.batches[100].clone();
    crashed.change(|bytes| bytes[batch.start + 10] ^= 0x80);
    crashed.is_refused_then_mended(&[100]);
}

/// A power cut loses the end of the log, wherever that is: what remains is a prefix of history,
/// and documents, entries, change records and counters agree.
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
        // As if nothing had been forced out.
        let _ = std::fs::remove_file(crashed.directory.path().join("DURABLE"));
        let image_of_it = TempDir::new().unwrap();
        image(crashed.directory.path(), image_of_it.path());
        let engine = open(image_of_it.path(), FjallOptions::default()).unwrap().engine;
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

fn tables(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tables(&path));
        } else if path.parent().unwrap().ends_with("tables") {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_flipped_bit_in_a_table_is_an_error_and_never_a_wrong_value() {
    let pristine = TempDir::new().unwrap();
    let engine = open(pristine.path(), FjallOptions::default()).unwrap().engine;
    for number in 0..SMALL {
        insert(&engine, 1, number, document(number, 400), CommitOptions::buffered());
    }
    engine.maintenance(Maintenance::Flush).unwrap();
    engine.close().unwrap();
    let mut detected = 0;
    for seed in 0..10 {
        let directory = TempDir::new().unwrap();
        image(pristine.path(), directory.path());
        let tables = tables(directory.path());
        let largest = tables.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let mut bytes = std::fs::read(largest).unwrap();
        let at = bytes.len() * (seed + 1) / 12;
        bytes[at] ^= 0x10;
        std::fs::write(largest, bytes).unwrap();
        let Ok(opened) = open(directory.path(), FjallOptions::default()) else {
            detected += 1;
            continue;
        };
        let snapshot = opened.engine.snapshot().unwrap();
        for number in 0..SMALL {
            match snapshot.get(Space::Doc, &key(1, number)) {
                Ok(found) => assert_eq!(found, Some(document(number, 400))),
                Err(StorageError::Corruption { .. }) => detected += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(detected >= 8, "only {detected} of the flipped bits were noticed");
}

/// A database with everything in tables.
fn flushed() -> TempDir {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), FjallOptions::default()).unwrap().engine;
    for number in 0..SMALL {
        insert(&engine, 1, number, document(number, 400), CommitOptions::buffered());
    }
    engine.maintenance(Maintenance::Flush).unwrap();
    engine.close().unwrap();
    directory
}

fn damage_tables(directory: &Path, keyspace: u32, damage: impl Fn(&mut Vec<u8>)) {
    let tables = tables(&directory.join(format!("data/keyspaces/{keyspace}")));
    assert!(!tables.is_empty(), "{keyspace}");
    for table in tables {
        let mut bytes = std::fs::read(&table).unwrap();
        damage(&mut bytes);
        std::fs::write(&table, bytes).unwrap();
    }
}

fn repair(directory: &Path) -> quire_storage_fjall::Opened {
    open(directory, FjallOptions { repair: true, ..FjallOptions::default() }).unwrap()
}

/// Between the first change of a repair and its end `serve` started without a word, on a keyspace that
/// was put aside or had only part of its entries.
#[test]
fn a_repair_that_was_interrupted_is_taken_up_and_nobody_else_opens_the_directory() {
    let directory = flushed();
    damage_tables(directory.path(), 3, |bytes| bytes.truncate(bytes.len() - 10));
    repair(directory.path()).engine.close().unwrap();
    let refused = |path: &Path| match open(path, FjallOptions::default()).map(|_| ()) {
        Err(StorageError::Unavailable(why)) => assert!(why.contains("--repair"), "{why}"),
        other => panic!("{other:?}"),
    };
    refused(directory.path());
    let found = examine(directory.path(), FjallOptions::default()).unwrap();
    assert!(found.damages.iter().any(|damage| damage.contains("repair")), "{:?}", found.damages);
    // A crash between the two moves of a keyspace.
    let place = directory.path().join("data/keyspaces/3");
    std::fs::remove_dir_all(&place).unwrap();
    refused(directory.path());
    let opened = repair(directory.path());
    assert!(opened.warnings.iter().any(|text| text.contains("'idx'")), "{:?}", opened.warnings);
    let entries = numbers(&*opened.engine.snapshot().unwrap(), Space::Idx, 1);
    assert_eq!(entries, (0..SMALL).collect::<Vec<_>>());
    opened.engine.close().unwrap();
    end_repair(directory.path()).unwrap();
    open(directory.path(), FjallOptions::default()).unwrap();
}

#[test]
fn index_entries_that_can_be_read_survive_a_repair() {
    let flip = |bytes: &mut Vec<u8>| bytes[40] ^= 0x10;
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    for (flipped, keyspaces) in [(true, [3, 3]), (false, [3, 3]), (false, [4, 4]), (false, [3, 4])]
    {
        let directory = flushed();
        for keyspace in std::collections::BTreeSet::from(keyspaces) {
            match flipped {
                true => damage_tables(directory.path(), keyspace, flip),
                false => damage_tables(directory.path(), keyspace, cut),
            }
        }
        let opened = repair(directory.path());
        assert!(!opened.warnings.is_empty(), "{keyspaces:?}");
        let read = |engine: &std::sync::Arc<dyn quire_storage::Engine>| {
            let snapshot = engine.snapshot().unwrap();
            assert_eq!(numbers(&*snapshot, Space::Doc, 1), (0..SMALL).collect::<Vec<_>>());
            numbers(&*snapshot, Space::Idx, 1).len() as u64
        };
        let entries = read(&opened.engine);
        assert_eq!(keyspaces.contains(&3), entries < SMALL, "{entries}");
        insert(&opened.engine, 2, 0, document(0, 10), CommitOptions::synced());
        opened.engine.close().unwrap();
        end_repair(directory.path()).unwrap();
        let opened = open(directory.path(), FjallOptions::default()).unwrap();
        assert_eq!(opened.warnings, Vec::<String>::new());
        assert_eq!(read(&opened.engine), entries);
        assert_eq!(opened.engine.counts(2).documents, 1);
    }
}

/// Repairs, then reads every document by its key and by a scan; the numbers of those that are there.
fn mended(directory: &Path) -> Vec<u64> {
    let opened = repair(directory);
    assert!(!opened.warnings.is_empty());
    opened.engine.close().unwrap();
    end_repair(directory).unwrap();
    let found = examine(directory, FjallOptions::default()).unwrap();
    assert_eq!(found.damages, [""; 0]);
    drop(found);
    let engine = open(directory, FjallOptions::default()).unwrap().engine;
    let snapshot = engine.snapshot().unwrap();
    let there = numbers(&*snapshot, Space::Doc, 1);
    for number in 0..2 * SMALL {
        let found = snapshot.get(Space::Doc, &key(1, number)).unwrap();
        let expected = there.contains(&number).then(|| document(number, 400));
        assert!(found == expected, "{number}");
    }
    there
}

/// A flipped bit in a filter failed every read by key, and neither a check nor a repair saw it. One in
/// a block of documents could not be mended at all.
#[test]
fn a_flipped_bit_anywhere_in_a_table_is_named_and_costs_one_block_at_most() {
    let pristine = flushed();
    let all = tables(&pristine.path().join("data/keyspaces/2"));
    let table = all.iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let bytes = std::fs::read(table).unwrap();
    let name = table.strip_prefix(pristine.path()).unwrap();
    let mut lossless = 0;
    for share in 0..24 {
        let directory = TempDir::new().unwrap();
        image(pristine.path(), directory.path());
        let mut bytes = bytes.clone();
        // The last tenth of the file is its index, its filter, metadata and contents.
        let at = match share {
            0..12 => bytes.len() * share / 12,
            _ => bytes.len() - 1 - bytes.len().min(2400) * (share - 12) / 12,
        };
        bytes[at] ^= 0x10;
        std::fs::write(directory.path().join(name), bytes).unwrap();
        let found = examine(directory.path(), FjallOptions::default()).unwrap();
        let named = |damage: &String| damage.contains(&*name.to_string_lossy());
        assert!(found.damages.iter().any(named), "byte {at}: {:?}", found.damages);
        drop(found);
        let there = mended(directory.path());
        let lost = usize::try_from(SMALL).unwrap() - there.len();
        assert!(lost < 150, "byte {at}: {lost} are lost");
        lossless += usize::from(lost == 0);
    }
    assert!(lossless >= 8, "{lossless}");
}

#[test]
fn a_lost_list_of_tables_and_lost_names_lose_nothing() {
    for file in ["2/current", "1/current", "0/current", "3/current", "2/v", "0", "4/current"] {
        let directory = flushed();
        let keyspaces = directory.path().join("data/keyspaces");
        let path = keyspaces.join(file);
        if file == "2/v" {
            let current = std::fs::read(keyspaces.join("2/current")).unwrap();
            let newest = u64::from_le_bytes(current[..8].try_into().unwrap());
            let list = keyspaces.join(format!("2/v{newest}"));
            let mut bytes = std::fs::read(&list).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&list, bytes).unwrap();
        } else if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        assert!(open(directory.path(), FjallOptions::default()).is_err(), "{file}");
        assert_eq!(mended(directory.path()), (0..SMALL).collect::<Vec<_>>(), "{file}");
    }
}

#[test]
fn a_lost_table_loses_what_was_in_it_and_nothing_that_the_log_has() {
    let directory = with_tables_and_log();
    std::fs::remove_file(directory.path().join("data/keyspaces/2/tables/999")).unwrap();
    for table in tables(&directory.path().join("data/keyspaces/2")) {
        std::fs::remove_file(table).unwrap();
    }
    let there = mended(directory.path());
    assert!((SMALL + 1..2 * SMALL).all(|number| there.contains(&number)), "{there:?}");
}

/// Every file below a directory with its content, and every directory.
fn content_of(directory: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content_of(&path));
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// A database after a crash, with documents in tables and in the log, and a table that a crash left.
fn with_tables_and_log() -> TempDir {
    let live = TempDir::new().unwrap();
    let engine = open(live.path(), FjallOptions::default()).unwrap().engine;
    for number in 0..2 * SMALL {
        insert(&engine, 1, number, document(number, 400), CommitOptions::buffered());
        if number == SMALL {
            engine.maintenance(Maintenance::Flush).unwrap();
        }
    }
    let directory = TempDir::new().unwrap();
    image(live.path(), directory.path());
    engine.close().unwrap();
    std::fs::write(directory.path().join("data/keyspaces/2/tables/999"), "left").unwrap();
    std::fs::write(directory.path().join("data/keyspaces/2/v999"), "left").unwrap();
    directory
}

/// fjall makes anew what it misses: without the list of its tables a keyspace was empty and its tables
/// were removed, by a check, too; without its log the database was empty until the second start.
#[test]
fn a_missing_file_of_a_known_set_is_named_and_nothing_is_changed() {
    let pristine = with_tables_and_log();
    let current = |keyspace: u32| format!("data/keyspaces/{keyspace}/current");
    let mut missing: Vec<String> = (0..5).map(current).collect();
    missing
        .extend(["data/0.jnl", "data/version", "data/lock", "data/keyspaces/3"].map(String::from));
    for (keyspace, file) in [(1, "v"), (2, "tables/"), (4, "tables/"), (3, "tables")] {
        let directory = pristine.path().join(format!("data/keyspaces/{keyspace}"));
        let mut inside = content_of(&directory)
            .into_keys()
            .map(|path| path.strip_prefix(pristine.path()).unwrap().to_string_lossy().into_owned());
        let prefix = format!("data/keyspaces/{keyspace}/{file}");
        let known = |path: &String| path.starts_with(&prefix) && !path.ends_with("999");
        missing.push(inside.rfind(known).unwrap());
    }
    for file in &missing {
        let directory = TempDir::new().unwrap();
        image(pristine.path(), directory.path());
        let path = directory.path().join(file);
        match path.is_dir() {
            true => std::fs::remove_dir_all(&path).unwrap(),
            false => std::fs::remove_file(&path).unwrap(),
        }
        let before = content_of(directory.path());
        let why = match open(directory.path(), FjallOptions::default()).map(|_| ()) {
            Err(StorageError::Corruption { place }) => place,
            other => panic!("{file} is missing and {other:?}"),
        };
        let name = file.trim_start_matches("data/").replace("0.jnl", ".jnl");
        assert!(why.contains(&name), "{file}: {why}");
        let mut after = content_of(directory.path());
        after.remove(&directory.path().join("LOCK"));
        assert!(before.iter().all(|(path, bytes)| path.ends_with("LOCK") || after[path] == *bytes));
        let before = content_of(directory.path());
        match examine(directory.path(), FjallOptions::default()) {
            Ok(found) => {
                assert!(found.opened.is_none() && found.damages.iter().any(|d| d.contains(&name)));
            }
            Err(error) => assert!(error.to_string().contains(&name), "{error}"),
        }
        assert_eq!(content_of(directory.path()), before, "{file}");
    }
}

#[test]
fn a_check_changes_nothing_and_sees_everything() {
    let directory = with_tables_and_log();
    let before = content_of(directory.path());
    let found = examine(directory.path(), FjallOptions::default()).unwrap();
    assert_eq!(found.damages, [""; 0]);
    let engine = found.opened.unwrap().engine;
    let all: Vec<u64> = (0..2 * SMALL).collect();
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 1), all);
    assert_eq!(engine.counts(1).documents, 2 * SMALL);
    insert(&engine, 1, 2 * SMALL, document(0, 10), CommitOptions::synced());
    engine.maintenance(Maintenance::Flush).unwrap();
    let second = examine(directory.path(), FjallOptions::default()).err();
    assert!(matches!(second, Some(StorageError::Unavailable(_))), "{second:?}");
    engine.close().unwrap();
    drop(engine);
    assert_eq!(content_of(directory.path()), before);
    let engine = open(directory.path(), FjallOptions::default()).unwrap().engine;
    assert_eq!(numbers(&*engine.snapshot().unwrap(), Space::Doc, 1), all);
}

/// fjall removes what it does not know.
#[test]
fn what_does_not_belong_there_is_left_alone() {
    for name in ["data/keyspaces/7/mine", "data/keyspaces/2/verse", "data/keyspaces/2/tables/mine"]
    {
        let directory = flushed();
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "mine").unwrap();
        let why = open(directory.path(), FjallOptions::default()).map(|_| ()).unwrap_err();
        assert!(why.to_string().contains("nothing was changed"), "{why}");
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
