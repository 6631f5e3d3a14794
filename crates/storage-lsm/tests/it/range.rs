//! Scans and lookups on the newest snapshot, which read the blocks of tables directly, compared
//! with a model: with versions and tombstones in several tables and in the memtable.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, CommitOptions, Engine, Maintenance, Mode, Page, ScanRequest, Snapshot, Space, begin,
};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::{fill, numbers};

type Model = BTreeMap<Vec<u8>, Bytes>;

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(3000);
    match rng.below(8) {
        0 => format!("key{}", number % 50).into_bytes(),
        1 => vec![1; 1 + (number % 300) as usize],
        _ => format!("a long prefix that all of them share {number:06}").into_bytes(),
    }
}

/// Writes and deletes some hundred random keys in one commit.
fn write(engine: &Arc<dyn Engine>, space: Space, rng: &mut Rng, model: &mut Model) {
    let mut txn = begin(engine, Mode::Write).unwrap();
    for _ in 0..1 + rng.below(400) {
        let mut key = vec![1];
        key.extend(random_key(rng));
        if rng.below(3) == 0 {
            txn.delete(space, Bytes::from(key.clone())).unwrap();
            model.remove(&key);
        } else {
            let value = Bytes::from(vec![rng.below(256) as u8; rng.below(120) as usize]);
            txn.put(space, Bytes::from(key.clone()), value.clone()).unwrap();
            model.insert(key, value);
        }
    }
    txn.commit(CommitOptions::buffered()).unwrap();
}

/// Compares a random range, read in pages, with the model.
fn compare(snapshot: &dyn Snapshot, space: Space, rng: &mut Rng, model: &Model) {
    let bound = |rng: &mut Rng| match rng.below(4) {
        0 => Vec::new(),
        1 => vec![1],
        _ => [vec![1], random_key(rng)].concat(),
    };
    let (start, end) = (bound(rng), bound(rng));
    let mut request = ScanRequest::new(space, &start, &end);
    request.rows_max = 1 + rng.below(700) as usize;
    request.bytes_max = if rng.below(3) == 0 { 1 + rng.below(3000) as usize } else { 1 << 20 };
    request.keys_only = rng.below(3) == 0;
    let (keys_only, rows_max) = (request.keys_only, request.rows_max);
    let inside = |key: &&Vec<u8>| end.is_empty() || **key < end;
    let from = model.range(start.clone()..).take_while(|(key, _)| inside(key));
    let mut expected: Vec<(Bytes, Bytes)> = from
        .map(|(key, value)| {
            (Bytes::from(key.clone()), if keys_only { Bytes::new() } else { value.clone() })
        })
        .collect();
    if rng.below(2) == 0 {
        request = request.reverse();
        expected.reverse();
    }
    let (mut page, mut resume): (_, Option<Bytes>) = (Page::default(), None);
    let mut passed = 0;
    loop {
        let step = resume.as_deref().map_or(request, |resume| request.resumed(resume));
        let count = snapshot.pass(&step, &mut page).unwrap();
        assert!(count <= rows_max);
        passed += count;
        if count > 0 {
            assert_eq!(page.rows, [expected[passed - 1].clone()]);
        }
        resume = page.resume.take();
        if resume.is_none() {
            break;
        }
    }
    assert_eq!(passed, expected.len());
    compare_visits(snapshot, request, rng, &expected);
    let mut expected = expected.into_iter();
    loop {
        let step = resume.as_deref().map_or(request, |resume| request.resumed(resume));
        snapshot.scan(&step, &mut page).unwrap();
        assert!(page.rows.len() <= rows_max);
        for row in page.rows.drain(..) {
            assert_eq!(Some(row), expected.next());
        }
        resume = page.resume.take();
        if resume.is_none() {
            break;
        }
    }
    assert_eq!(expected.next(), None);
}

/// Compares the rows that a visitor gets, who breaks now and then, with those expected.
fn compare_visits(
    snapshot: &dyn Snapshot,
    request: ScanRequest<'_>,
    rng: &mut Rng,
    expected: &[(Bytes, Bytes)],
) {
    let (mut expected, mut resume): (_, Option<Bytes>) = (expected.iter(), None);
    loop {
        let step = resume.as_deref().map_or(request, |resume| request.resumed(resume));
        let (mut visited, mut bytes) = (0, 0);
        resume = snapshot
            .visit(&step, &mut |row| {
                assert!(visited < step.rows_max && bytes < step.bytes_max);
                visited += 1;
                bytes += row.key.len() + row.value.len();
                let (key, value) = expected.next().unwrap();
                assert_eq!((row.key, row.value), (&key[..], &value[..]));
                assert_eq!(row.to_bytes(row.value.len().min(1)), row.value.get(1..).unwrap_or(b""));
                match rng.below(100) {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            })
            .unwrap();
        if resume.is_none() {
            break;
        }
    }
    assert_eq!(expected.next(), None);
}

/// Compares the values of some keys, read singly and together, with the model.
fn compare_keys(snapshot: &dyn Snapshot, space: Space, rng: &mut Rng, model: &Model) {
    let keys = (0..1 + rng.below(40)).map(|_| [vec![1], random_key(rng)].concat());
    compare_values(snapshot, space, &keys.collect::<Vec<_>>(), model);
}

fn compare_values(snapshot: &dyn Snapshot, space: Space, keys: &[Vec<u8>], model: &Model) {
    let wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut found = Vec::new();
    snapshot.get_many(space, &wanted, &mut found).unwrap();
    assert_eq!(found.len(), keys.len());
    for (key, value) in keys.iter().zip(found) {
        assert_eq!(value.as_ref(), model.get(key));
        assert_eq!(snapshot.get(space, key).unwrap(), value);
    }
}

fn rounds(space: Space, seed: u64) {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut rng = Rng::new(seed);
    let mut model = Model::new();
    let mut earlier: Option<(Box<dyn Snapshot>, Model)> = None;
    for round in 0..60 {
        write(&engine, space, &mut rng, &mut model);
        match rng.below(6) {
            0 | 1 => engine.maintenance(Maintenance::Flush).unwrap(),
            2 if round % 7 == 0 => engine.maintenance(Maintenance::Compact).unwrap(),
            _ => {}
        }
        let snapshot = engine.snapshot().unwrap();
        for _ in 0..15 {
            compare(&*snapshot, space, &mut rng, &model);
            compare_keys(&*snapshot, space, &mut rng, &model);
            if let Some((snapshot, model)) = &earlier {
                compare_keys(&**snapshot, space, &mut rng, model);
                compare(&**snapshot, space, &mut rng, model);
            }
        }
        if rng.below(4) == 0 {
            earlier = Some((snapshot, model.clone()));
        }
    }
}

#[test]
fn scans_of_whole_keys_are_those_of_a_map() {
    rounds(Space::Doc, 1);
}

#[test]
fn scans_of_shortened_keys_are_those_of_a_map() {
    rounds(Space::Idx, 2);
    rounds(Space::Meta, 3);
}

/// While one thread commits, each page that another thread reads is a page of its snapshot.
#[test]
fn scans_under_writes_see_their_snapshot() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    const KEYS: u64 = 500;
    let put = |generation: u64| {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        for number in 0..KEYS {
            let value = Bytes::copy_from_slice(&generation.to_be_bytes());
            txn.put_entry(Space::Idx, crate::support::key(1, number), value).unwrap();
        }
        txn.commit(CommitOptions::buffered()).unwrap();
    };
    put(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for generation in 1..150 {
                put(generation);
                if generation % 20 == 0 {
                    engine.maintenance(Maintenance::Flush).unwrap();
                }
            }
        });
        for _ in 0..400 {
            let snapshot = engine.snapshot().unwrap();
            let mut page = Page::default();
            let request = ScanRequest::new(Space::Idx, &[0, 0, 0, 1], &[0, 0, 0, 2]);
            snapshot.scan(&request, &mut page).unwrap();
            assert_eq!(page.rows.len() as u64, KEYS);
            let first = &page.rows[0].1;
            assert!(page.rows.iter().all(|(_, value)| value == first));
        }
    });
}

/// Keys that rise from flush to flush are in tables that do not overlap: one run of many tables, of
/// which a page is read from at most two.
#[test]
fn scans_over_many_tables_of_one_run_are_those_of_a_map() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut rng = Rng::new(11);
    let mut model = Model::new();
    for table in 0..9_u64 {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        for number in 0..300 {
            let number = table * 300 + number;
            let key = format!("\u{1}a long prefix that all of them share {number:06}").into_bytes();
            let value = Bytes::from(vec![7; rng.below(200) as usize]);
            txn.put(Space::Doc, Bytes::from(key.clone()), value.clone()).unwrap();
            model.insert(key, value);
        }
        txn.commit(CommitOptions::buffered()).unwrap();
        if table < 8 {
            engine.maintenance(Maintenance::Flush).unwrap();
        }
    }
    let snapshot = engine.snapshot().unwrap();
    for _ in 0..200 {
        compare(&*snapshot, Space::Doc, &mut rng, &model);
        // Consecutive keys, some of them twice, and some that do not exist.
        let first = rng.below(2700);
        let mut keys = Vec::new();
        for number in first..first + 1 + rng.below(40) {
            let key = format!("\u{1}a long prefix that all of them share {number:06}").into_bytes();
            match rng.below(8) {
                0 => keys.extend([key.clone(), key]),
                1 => keys.push([key, vec![b'x']].concat()),
                _ => keys.push(key),
            }
        }
        compare_values(&*snapshot, Space::Doc, &keys, &model);
    }
}

/// Looks up entries while other entries are written, flushed and deleted: the look-up finds exactly
/// the entries of its snapshot.
#[test]
fn lookups_under_writes_see_their_snapshot() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    const KEYS: u64 = 4000;
    let key = |number| crate::support::key(1, number);
    let put = |number: u64| {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        txn.put_entry(Space::Idx, key(number), Bytes::from_static(b"there")).unwrap();
        if let Some(old) = number.checked_sub(100) {
            txn.delete(Space::Idx, key(old)).unwrap();
        }
        let value = Bytes::copy_from_slice(&number.to_be_bytes());
        txn.put_entry(Space::Idx, crate::support::key(2, 0), value).unwrap();
        txn.commit(CommitOptions::buffered()).unwrap();
    };
    put(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1..KEYS {
                put(number);
                if number % 150 == 0 {
                    engine.maintenance(Maintenance::Flush).unwrap();
                }
                if number % 1500 == 0 {
                    engine.maintenance(Maintenance::Compact).unwrap();
                }
            }
        });
        let mut rng = Rng::new(3);
        while !writer.is_finished() {
            let snapshot = engine.snapshot().unwrap();
            for _ in 0..20 {
                let last = snapshot.get(Space::Idx, &crate::support::key(2, 0)).unwrap().unwrap();
                let last = u64::from_be_bytes(last[..].try_into().unwrap());
                let number = last.saturating_sub(150) + rng.below(300);
                let is_there = number <= last && number + 100 > last;
                let found = snapshot.get(Space::Idx, &key(number)).unwrap();
                assert_eq!(found.is_some(), is_there, "{number} of {last}");
            }
        }
    });
}

/// After a crash the memtable holds the replayed log; a filter of later writes does not cover those
/// keys.
#[test]
fn lookups_find_rows_that_were_replayed_from_the_log() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let put = |engine: &Arc<dyn Engine>, number| {
        let mut txn = begin(engine, Mode::Write).unwrap();
        txn.put(Space::Idx, crate::support::key(1, number), Bytes::from_static(b"there")).unwrap();
        txn.commit(CommitOptions::synced()).unwrap();
    };
    (0..50).for_each(|number| put(&engine, number));
    let crashed = TempDir::new().unwrap();
    crate::support::image(directory.path(), crashed.path());
    let engine = open(crashed.path(), LsmOptions::default()).unwrap().engine;
    for round in 0..4 {
        let snapshot = engine.snapshot().unwrap();
        for number in 0..100 {
            let found = snapshot.get(Space::Idx, &crate::support::key(1, number)).unwrap();
            assert_eq!(found.is_some(), number < 50 + round, "{number} in round {round}");
        }
        put(&engine, 50 + round);
        if round == 2 {
            engine.maintenance(Maintenance::Flush).unwrap();
        }
    }
}

/// An estimate reads while a batch is written. What it finds empty then is not empty afterwards.
#[test]
fn an_estimate_beside_a_batch_hides_no_row() {
    let directory = TempDir::new().unwrap();
    let options = LsmOptions { slow_head: std::time::Duration::ZERO, ..LsmOptions::default() };
    let engine = open(directory.path(), options).unwrap().engine;
    let ended = std::sync::atomic::AtomicBool::new(false);
    let collection = std::sync::atomic::AtomicU32::new(1);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(order) {
                let number = collection.load(order);
                let (start, end) = (number.to_be_bytes(), (number + 1).to_be_bytes());
                engine.approximate_size(Space::Doc, &start, &end).unwrap();
            }
        });
        let mut hidden = Vec::new();
        for number in 1..=200 {
            collection.store(number, order);
            fill(&engine, number, 200, 100);
            if numbers(&*engine.snapshot().unwrap(), Space::Doc, number).len() != 200 {
                hidden.push(number);
            }
        }
        ended.store(true, order);
        assert!(hidden.is_empty(), "rows of these collections are hidden: {hidden:?}");
    });
    engine.close().unwrap();
}
