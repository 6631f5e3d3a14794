//! Tables of documents that begin where the layer above asks, and are never merged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, CommitOptions, Engine, Maintenance, Mode, Page, ScanRequest, Snapshot, Space, begin,
};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, image, key};

fn put(engine: &Arc<dyn Engine>, documents: impl IntoIterator<Item = (u32, u64)>) {
    let mut txn = begin(engine, Mode::Write).unwrap();
    for (collection, number) in documents {
        let value = document(number, 256 << 10);
        txn.put(Space::Doc, key(collection, number), value).unwrap();
    }
    txn.commit(CommitOptions::buffered()).unwrap();
}

/// Returns the numbers of the tables of documents, in ascending order.
fn tables(directory: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(directory.join("data/keyspaces/2/tables")).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name();
    let mut numbers: Vec<u64> =
        files.map(|file| name(file).to_str().unwrap().parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_table_begins_where_it_is_cut() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut number = 0;
    for _ in 0..3 {
        let first = number;
        while !engine.wants_cut() {
            put(&engine, [(1, number)]);
            number += 1;
        }
        // A new table begins neither at once nor only when the memtable is full.
        assert!((100..128).contains(&(number - first)), "{} documents", number - first);
        // Writers that have begun before commit 12 MB.
        put(&engine, (number..number + 48).map(|number| (1, number)));
        number += 48;
        assert!(engine.wants_cut());
        engine.cut_table(&mut Vec::new).unwrap();
        assert!(!engine.wants_cut());
        engine.cut_table(&mut || panic!("no table is about to begin")).unwrap();
        engine.maintenance(Maintenance::Flush).unwrap();
    }
    assert_eq!(tables(directory.path()).len(), 3);
    engine.close().unwrap();
}

/// Two collections are filled at once. In each, a writer commits smaller record ids than others
/// that were committed before. Before, each table overlapped with the next one, and every document
/// was written twice.
#[test]
fn tables_of_rising_record_ids_are_not_merged() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut number = 0;
    for _ in 0..5 {
        while !engine.wants_cut() {
            put(&engine, (number + 2..number + 4).flat_map(|number| [(1, number), (2, number)]));
            if engine.wants_cut() {
                break;
            }
            put(&engine, (number..number + 2).flat_map(|number| [(1, number), (2, number)]));
            number += 4;
        }
        let late = |collection| key(collection, 0)..key(collection, number + 4);
        engine.cut_table(&mut || vec![late(2), late(1)]).unwrap();
        put(&engine, [(1, number + 4), (2, number + 4)]);
        put(&engine, (number..number + 2).flat_map(|number| [(1, number), (2, number)]));
        engine.end_late();
        number += 5;
    }
    engine.maintenance(Maintenance::Flush).unwrap();
    let found = tables(directory.path());
    let last = *found.last().unwrap();
    assert!(found.len() >= 10, "{found:?}");
    // Each table that was ever written is there, except the first, which an open writes.
    assert!(found.len() as u64 >= last - 1, "{found:?} without the merged ones");
    engine.close().unwrap();
}

/// Beside a writer that stays unfinished, such as an open transaction, every second table began
/// anywhere.
#[test]
fn tables_are_not_merged_beside_a_writer_that_does_not_end() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut number = 0;
    let mut cuts = 0;
    while cuts < 6 {
        for pair in [[number + 4, number + 5], [number + 2, number + 3], [number, number + 1]] {
            if engine.wants_cut() {
                cuts += 1;
                let late = |collection, below| key(collection, 0)..key(collection, below);
                engine.cut_table(&mut || vec![late(2, 9), late(1, number + 6)]).unwrap();
            }
            put(&engine, pair.map(|number| (1, number)));
        }
        number += 6;
    }
    engine.maintenance(Maintenance::Flush).unwrap();
    let found = tables(directory.path());
    assert!(found.len() >= 6, "{found:?}");
    assert!(found.len() as u64 >= found.last().unwrap() - 1, "{found:?} without the merged ones");
    engine.close().unwrap();
}

/// The late rows of a writer that does not end do not keep an old memtable and its log for ever:
/// not beside many late rows, and not beside many rows of another space.
#[test]
fn late_rows_end_after_much_was_written() {
    for (log_file_bytes, space, rows) in [(64 << 20, Space::Doc, 200), (1 << 20, Space::Idx, 60)] {
        let directory = TempDir::new().unwrap();
        let options = LsmOptions { log_file_bytes, ..LsmOptions::default() };
        let engine = open(directory.path(), options).unwrap().engine;
        // The log of the other case is short, and its memtables are sealed for that.
        while !engine.wants_cut() {
            let mut txn = begin(&engine, Mode::Write).unwrap();
            (0..120).for_each(|number| {
                let value = document(number, 256 << 10);
                txn.put(Space::Doc, key(1, number), value).unwrap();
            });
            txn.commit(CommitOptions::buffered()).unwrap();
        }
        engine.cut_table(&mut || vec![key(1, 0)..key(1, 1 << 40)]).unwrap();
        let before = tables(directory.path());
        for number in 200..200 + rows {
            let mut txn = begin(&engine, Mode::Write).unwrap();
            txn.put_entry(space, key(1, number), document(number, 256 << 10)).unwrap();
            txn.commit(CommitOptions::buffered()).unwrap();
        }
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tables(directory.path()).len() <= before.len() {
            assert!(std::time::Instant::now() < until, "the late rows stay in memory");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        engine.close().unwrap();
    }
}

/// The documents of a snapshot, each with its first byte.
type Model = BTreeMap<Bytes, u8>;

fn read(snapshot: &dyn Snapshot) -> Model {
    let (mut page, mut rows) = (Page::default(), Model::new());
    let mut start = Bytes::new();
    loop {
        snapshot.scan(&ScanRequest::new(Space::Doc, &start, &[]), &mut page).unwrap();
        rows.extend(page.rows.drain(..).map(|(key, value)| (key, value[0])));
        match page.resume.take() {
            Some(resume) => start = resume,
            None => return rows,
        }
    }
}

/// Late rows of any range, ended early, late or never, are read by each snapshot as they were
/// written, and also after a crash or a restart.
#[test]
fn snapshots_do_not_see_where_tables_begin() {
    let directory = TempDir::new().unwrap();
    let mut engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut rng = Rng::new(7);
    let mut model = Model::new();
    let mut held: Vec<(Box<dyn Snapshot>, Model)> = Vec::new();
    let mut cuts = 0;
    for step in 0..1_200 {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        for _ in 0..1 + rng.below(4) {
            let key = key(1 + rng.below(3) as u32, rng.below(60));
            if rng.below(6) == 0 {
                txn.delete(Space::Doc, key.clone()).unwrap();
                model.remove(&key);
            } else {
                let content = rng.below(256) as u8;
                let value = Bytes::from(vec![content; 192 << 10]);
                txn.put(Space::Doc, key.clone(), value).unwrap();
                model.insert(key, content);
            }
        }
        txn.commit(CommitOptions::buffered()).unwrap();
        if engine.wants_cut() {
            cuts += 1;
            let mut late = || {
                let range =
                    |collection| key(collection, rng.below(9))..key(collection, 9 + rng.below(60));
                (1..4).filter(|collection| (cuts + collection) % 3 > 0).map(range).collect()
            };
            engine.cut_table(&mut late).unwrap();
        }
        match step % 100 {
            20 | 70 => engine.end_late(),
            49 if step % 300 == 49 => engine.maintenance(Maintenance::Flush).unwrap(),
            _ if step % 23 == 0 => held.push((engine.snapshot().unwrap(), model.clone())),
            _ if held.len() > 3 => {
                let (snapshot, seen) = held.swap_remove(rng.below(4) as usize);
                assert!(read(&*snapshot) == seen, "step {step}");
            }
            _ => {}
        }
        if step % 150 == 120 {
            // A crash: the process is gone, and what it wrote is there.
            let crashed = TempDir::new().unwrap();
            image(directory.path(), crashed.path());
            let engine = open(crashed.path(), LsmOptions::default()).unwrap().engine;
            assert!(read(&*engine.snapshot().unwrap()) == model, "after a crash in step {step}");
        }
        if step % 400 == 399 {
            held.clear();
            engine.close().unwrap();
            engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
            assert!(read(&*engine.snapshot().unwrap()) == model, "after a restart");
        }
    }
    assert!(cuts > 5, "{cuts} cuts");
    engine.close().unwrap();
}
