//! Snapshots that stay open while more is overwritten than the engine keeps for a snapshot.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use quire_storage::{
    Bytes, CommitOptions, CommitterOptions, Engine, Maintenance, Mode, Page, ScanRequest, Snapshot,
    Space, StorageError, Txn, begin,
};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, key};

const RECORDS: u64 = 2000;
const RECORD_BYTES: usize = 1000;

/// Writes one generation of all records except the first, which is only inserted once; every tenth
/// record is deleted in odd generations.
fn write(engine: &Arc<dyn Engine>, generation: u64) {
    for chunk in 0..RECORDS / 500 {
        let mut txn = begin(engine, Mode::Write).unwrap();
        for number in chunk * 500..(chunk + 1) * 500 {
            if number == 0 && generation > 0 {
                continue;
            }
            if number % 10 == 5 && generation % 2 == 1 {
                txn.delete(Space::Doc, key(1, number)).unwrap();
            } else {
                let value = document((generation << 32) | number, RECORD_BYTES);
                txn.put(Space::Doc, key(1, number), value).unwrap();
            }
            txn.put_entry(Space::Idx, key(1, number), Bytes::from(vec![generation as u8])).unwrap();
        }
        txn.commit(CommitOptions::buffered()).unwrap();
    }
}

/// Returns the result of a scan, in both directions and in pages of several sizes.
fn rows(snapshot: &dyn Snapshot, space: Space) -> Vec<(Bytes, Bytes)> {
    let read = |request: ScanRequest<'_>| {
        let (mut rows, mut page, mut resume): (Vec<_>, _, Option<Bytes>) =
            (Vec::new(), Page::default(), None);
        loop {
            let step = resume.as_ref().map_or(request, |resume| request.resumed(resume));
            snapshot.scan(&step, &mut page).unwrap();
            rows.append(&mut page.rows);
            resume = page.resume.take();
            if resume.is_none() {
                return rows;
            }
        }
    };
    let request = ScanRequest::new(space, b"", b"").rows_max(300);
    let rows = read(request);
    let mut backwards = read(request.reverse());
    backwards.reverse();
    assert!(rows == backwards, "the scan in reverse finds something else");
    rows
}

fn options() -> LsmOptions {
    let committer = CommitterOptions {
        snapshot_retained_bytes_max: 1 << 20,
        history_window: Duration::ZERO,
        ..CommitterOptions::default()
    };
    LsmOptions { committer, ..LsmOptions::default() }
}

fn transaction(engine: &Arc<dyn Engine>) -> Txn {
    begin(engine, Mode::Transaction).unwrap()
}

/// A transaction lost its snapshot after other transactions had written 64 MB.
#[test]
fn a_transaction_keeps_its_snapshot_while_all_keys_are_overwritten() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), options()).unwrap().engine;
    write(&engine, 0);
    let at_first = transaction(&engine);
    let expected = (rows(&at_first, Space::Doc), rows(&at_first, Space::Idx));
    let mut loser = transaction(&engine);
    let mut winner = transaction(&engine);
    for generation in 1..40 {
        write(&engine, generation);
        if generation % 13 == 0 {
            // The next transactions have other memtables, and tables.
            engine.maintenance(Maintenance::Flush).unwrap();
        }
    }
    let at_last = transaction(&engine);
    let expected_last = (rows(&at_last, Space::Doc), rows(&at_last, Space::Idx));
    for generation in 40..60 {
        write(&engine, generation);
    }
    engine.maintenance(Maintenance::Compact).unwrap();
    engine.maintenance(Maintenance::Tick).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.snapshots_held, stats.snapshots_revoked), (2, 0), "{stats:?}");
    assert!(stats.snapshots_held_bytes > 0);
    for (transaction, expected) in [(&at_first, &expected), (&at_last, &expected_last)] {
        assert!(rows(transaction, Space::Doc) == expected.0);
        assert!(rows(transaction, Space::Idx) == expected.1);
        for (key, value) in &expected.0 {
            assert_eq!(transaction.get(Space::Doc, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(transaction.get(Space::Doc, &key(1, RECORDS)).unwrap(), None);
    }
    assert_eq!(at_last.get(Space::Doc, &key(1, 5)).unwrap(), None, "deleted in generation 39");

    loser.put(Space::Doc, key(1, 7), Bytes::new()).unwrap();
    assert!(matches!(loser.push(), Err(StorageError::Conflict(_))));
    winner.put(Space::Doc, key(1, 0), Bytes::from_static(b"own")).unwrap();
    winner.push().unwrap();
    winner.commit(CommitOptions::synced()).unwrap();
    assert!(rows(&at_first, Space::Doc) == expected.0, "a commit after it is not seen");

    drop((at_first, at_last, loser));
    engine.maintenance(Maintenance::Tick).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.snapshots_held, stats.snapshots_held_bytes), (0, 0), "{stats:?}");
}

/// A held snapshot does not prevent the engine from closing, and after a crash its tables are not
/// reported as unknown files.
#[test]
fn an_engine_closes_and_opens_again_over_held_snapshots() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), options()).unwrap().engine;
    write(&engine, 0);
    engine.maintenance(Maintenance::Flush).unwrap();
    let held = engine.snapshot().unwrap();
    for generation in 1..10 {
        write(&engine, generation);
    }
    engine.maintenance(Maintenance::Compact).unwrap();
    engine.maintenance(Maintenance::Tick).unwrap();
    assert_eq!(engine.stats().snapshots_held, 1);
    let image = TempDir::new().unwrap();
    crate::support::image(directory.path(), image.path());
    let newest = rows(&*engine.snapshot().unwrap(), Space::Doc);
    engine.close().unwrap();
    assert_eq!(held.get(Space::Doc, &key(1, 1)), Err(StorageError::SnapshotTooOld));
    for path in [directory.path(), image.path()] {
        let engine = open(path, options()).unwrap().engine;
        assert!(rows(&*engine.snapshot().unwrap(), Space::Doc) == newest);
        engine.close().unwrap();
    }
}

/// A visitor may run a filter that takes long. The engine closes its snapshot meanwhile, and the
/// visitor still gets all rows of its page; the next page fails.
#[test]
fn a_snapshot_can_be_closed_while_a_visitor_runs() {
    let directory = TempDir::new().unwrap();
    let mut options = options();
    options.committer.snapshots_held_bytes_max = 0;
    options.committer.snapshot_grace = Duration::ZERO;
    let engine = open(directory.path(), options).unwrap().engine;
    write(&engine, 0);
    engine.maintenance(Maintenance::Flush).unwrap();
    let snapshot = engine.snapshot().unwrap();
    let expected = rows(&*snapshot, Space::Doc);
    let request = ScanRequest::new(Space::Doc, b"", b"").rows_max(100);
    let mut visited = Vec::new();
    let resume = snapshot.visit(&request, &mut |row| {
        if visited.is_empty() {
            (1..10).for_each(|generation| write(&engine, generation));
            engine.maintenance(Maintenance::Tick).unwrap();
            assert!(engine.stats().snapshots_revoked > 0);
        }
        visited.push((Bytes::copy_from_slice(row.key), row.to_bytes(0)));
        ControlFlow::Continue(())
    });
    assert!(visited == expected[..100]);
    let resume = resume.unwrap().unwrap();
    let next = request.resumed(&resume).rows_max(1);
    let failed = snapshot.visit(&next, &mut |_| panic!("a row of a closed snapshot"));
    assert_eq!(failed, Err(StorageError::SnapshotTooOld));
}

/// Each held snapshot kept memory of its own, and nothing bounded the sum.
#[test]
fn snapshots_that_would_keep_too_much_memory_are_not_held() {
    let directory = TempDir::new().unwrap();
    let mut options = options();
    options.committer.snapshots_held_bytes_max = 100 << 20;
    options.committer.snapshot_grace = Duration::ZERO;
    let engine = open(directory.path(), options).unwrap().engine;
    let mut snapshots = Vec::new();
    for generation in 0..8 {
        write(&engine, generation);
        snapshots.push(engine.snapshot().unwrap());
        write(&engine, generation);
        engine.maintenance(Maintenance::Flush).unwrap();
        engine.maintenance(Maintenance::Tick).unwrap();
        assert!(engine.stats().snapshots_held_bytes <= 100 << 20);
    }
    let stats = engine.stats();
    assert!(stats.snapshots_held > 0 && stats.snapshots_revoked > 0, "{stats:?}");
    assert!(snapshots[0].get(Space::Doc, &key(1, 1)).unwrap().is_some(), "the oldest goes last");
    let last = snapshots.last().unwrap();
    assert_eq!(last.get(Space::Doc, &key(1, 1)), Err(StorageError::SnapshotTooOld));
}
