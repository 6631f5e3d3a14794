//! Commits: conflicts, versions, counters, dropped ranges, durability, restart.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Harness, commit, get, key, keys, put, rows, write};
use crate::committer::split_log_key;
use crate::contract::{
    ClusterTime, Counts, Engine, Maintenance, Page, ScanRequest, Space, prefix_end,
};
use crate::error::StorageError;
use crate::txn::{CommitOptions, Mode, begin};

pub(super) fn duplicates(harness: &dyn Harness) {
    let engine = harness.open();
    let mut txn = write(&engine);
    txn.insert(Space::Doc, key("a"), key("1"), 7).expect("a is new");
    assert_eq!(txn.insert(Space::Doc, key("a"), key("2"), 8), Err(StorageError::Duplicate(8)));
    commit(txn);
    let mut txn = write(&engine);
    assert_eq!(txn.insert(Space::Doc, key("a"), key("3"), 9), Err(StorageError::Duplicate(9)));
    txn.delete(Space::Doc, key("a")).expect("a delete");
    txn.insert(Space::Doc, key("a"), key("4"), 10).expect("a was deleted");
    commit(txn);
    // A duplicate is one also if there is no room for it.
    let (large, longest) =
        (Bytes::from(vec![7; 1 << 20]), vec![7; engine.caps().value_bytes_max + 1]);
    let mut txn = write(&engine);
    txn.insert(Space::Doc, key("large"), large, 0).expect("it is new");
    for (taken, ended) in [
        ("a", StorageError::Duplicate(1)),
        ("large", StorageError::Duplicate(1)),
        ("new", StorageError::TooLarge),
    ] {
        let inserted = txn.insert(Space::Doc, key(taken), Bytes::from(longest.clone()), 1);
        assert_eq!(inserted, Err(ended), "{taken}");
    }
    let inserted = txn.insert_new(Space::Doc, key("large"), Bytes::from(longest), 2);
    assert_eq!(inserted, Err(StorageError::Duplicate(2)));
    drop(txn);
    let mut first = write(&engine);
    let mut second = write(&engine);
    first.insert(Space::Doc, key("b"), key("first"), 0).expect("b is new");
    second.insert(Space::Doc, key("b"), key("second"), 0).expect("b is new here as well");
    commit(first);
    let lost = second.commit(CommitOptions::buffered());
    assert!(matches!(lost, Err(StorageError::Conflict(_))), "{lost:?}");
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "a").as_deref(), Some("4"));
    assert_eq!(get(&*snapshot, Space::Doc, "b").as_deref(), Some("first"));
}

pub(super) fn clashes(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "0");
    for loser_deletes in [false, true] {
        let mut loser = write(&engine);
        if loser_deletes {
            loser.delete(Space::Doc, key("a")).expect("a delete");
        } else {
            loser.put(Space::Doc, key("a"), key("loser")).expect("a write");
        }
        loser.put(Space::Idx, key("entry"), key("loser")).expect("a write");
        put(&engine, Space::Doc, "a", "winner");
        match loser.commit(CommitOptions::buffered()) {
            Err(StorageError::Conflict(conflict)) => {
                assert_eq!((conflict.space, &conflict.key[..]), (Space::Doc, &b"a"[..]));
                assert!(!conflict.held);
            }
            other => panic!("the second writer won: {other:?}"),
        }
    }
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "a").as_deref(), Some("winner"));
    assert_eq!(get(&*snapshot, Space::Idx, "entry"), None);

    let mut one = write(&engine);
    let mut two = write(&engine);
    one.put_entry(Space::Idx, key("e"), key("1")).expect("a write");
    two.put_entry(Space::Idx, key("e"), key("2")).expect("a write");
    one.put(Space::Doc, key("same bytes"), key("")).expect("a write");
    two.put(Space::Idx, key("same bytes"), key("")).expect("a write");
    commit(one);
    commit(two);
    let stats = engine.stats();
    assert_eq!(stats.conflicts, 2);
}

pub(super) fn guards(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Meta, "epoch", "1");
    let mut one = write(&engine);
    let mut two = write(&engine);
    for txn in [&mut one, &mut two] {
        txn.guard(Space::Meta, b"epoch");
        txn.guard(Space::Meta, b"epoch");
    }
    one.put(Space::Doc, key("1"), key("")).expect("a write");
    two.put(Space::Doc, key("2"), key("")).expect("a write");
    commit(one);
    commit(two);
    let mut late = write(&engine);
    late.guard(Space::Meta, b"epoch");
    late.put(Space::Doc, key("3"), key("")).expect("a write");
    put(&engine, Space::Meta, "epoch", "2");
    assert!(matches!(late.commit(CommitOptions::buffered()), Err(StorageError::Conflict(_))));
}

pub(super) fn numbers(harness: &dyn Harness) {
    let engine = harness.open();
    let mut last = None;
    for round in 0..20u32 {
        let mut txn = write(&engine);
        txn.append_log(Bytes::from(format!("r{round}.0")));
        txn.append_log(Bytes::from(format!("r{round}.1")));
        let done = commit(txn);
        assert_eq!(engine.version(), done.version);
        assert_eq!(engine.cluster_time(), done.cluster_time);
        if let Some((version, time)) = last {
            assert!(done.version > version && done.cluster_time > time);
        }
        last = Some((done.version, done.cluster_time));
    }
    let snapshot = engine.snapshot().expect("a snapshot");
    let mut page = Page::default();
    snapshot.scan(&ScanRequest::new(Space::Log, b"", b""), &mut page).expect("a scan");
    let mut expected = Vec::new();
    for round in 0..20 {
        expected.extend([format!("r{round}.0"), format!("r{round}.1")]);
    }
    let records: Vec<_> = page
        .rows
        .iter()
        .map(|(_, value)| String::from_utf8_lossy(value.get(8..).unwrap_or_default()).into_owned())
        .collect();
    assert_eq!(records, expected);
    let (key, value) = page.rows.last().expect("there are records");
    let (version, time) = last.expect("there were commits");
    assert_eq!(split_log_key(key), Some((version.as_u64(), 1)));
    assert_eq!(value.get(..8), Some(&time.0.to_be_bytes()[..]));
    let read = begin(&engine, Mode::Read).expect("a transaction");
    let nothing = read.commit(CommitOptions::synced()).expect("nothing to commit");
    assert_eq!(nothing.version, version);
}

pub(super) fn counters(harness: &dyn Harness) {
    let engine = harness.open();
    let count = |collection| engine.counts(collection);
    let mut txn = write(&engine);
    txn.add_counts(1, 3, 300);
    txn.add_counts(2, 1, 10);
    txn.add_counts(1, 1, 50);
    assert_eq!(count(1), Counts::default());
    commit(txn);
    assert_eq!(count(1), Counts { documents: 4, bytes: 350 });
    let mut txn = write(&engine);
    let savepoint = txn.savepoint();
    txn.add_counts(1, 100, 100);
    txn.rollback_to(savepoint);
    txn.add_counts(1, -1, -50);
    txn.forget_counts(2);
    commit(txn);
    assert_eq!(count(1), Counts { documents: 3, bytes: 300 });
    assert_eq!(count(2), Counts::default());
    let mut txn = write(&engine);
    txn.forget_counts(1);
    txn.add_counts(1, 1, 1);
    commit(txn);
    assert_eq!(count(1), Counts { documents: 1, bytes: 1 });
    let mut loser = write(&engine);
    loser.put(Space::Doc, key("a"), key("")).expect("a write");
    loser.add_counts(1, 50, 50);
    put(&engine, Space::Doc, "a", "");
    assert!(loser.commit(CommitOptions::buffered()).is_err());
    assert_eq!(count(1), Counts { documents: 1, bytes: 1 });
}

pub(super) fn dropped_ranges(harness: &dyn Harness) {
    let engine = harness.open();
    for collection in ["a", "b", "c"] {
        for chunk in 0..4 {
            let mut txn = write(&engine);
            for number in 0..1000 {
                let name = format!("{collection}{chunk}{number:04}");
                txn.put_entry(Space::Doc, key(&name), key("some value")).expect("a write");
            }
            commit(txn);
        }
    }
    let mut txn = write(&engine);
    txn.delete(Space::Meta, key("catalog entry of b")).expect("a delete");
    txn.drop_range(Space::Doc, key("b"), Bytes::from(prefix_end(b"b")));
    commit(txn);
    assert_eq!(engine.stats().ranges_dropped, 1);
    engine.maintenance(Maintenance::Reclaim).expect("reclaiming");
    assert_eq!(engine.stats().ranges_dropped, 0);
    let snapshot = engine.snapshot().expect("a snapshot");
    let count = |prefix: &[u8]| {
        let end = prefix_end(prefix);
        rows(&*snapshot, ScanRequest::new(Space::Doc, prefix, &end)).len()
    };
    assert_eq!(count(b"a"), 4000);
    assert_eq!(count(b"b"), 0);
    assert_eq!(count(b"c"), 4000);
    engine.drop_range(Space::Doc, b"a", b"b").expect("a drop");
    engine.maintenance(Maintenance::Reclaim).expect("reclaiming");
    assert_eq!(count(b"a"), 4000, "a snapshot older than the drop keeps the range");
    assert_eq!(engine.stats().ranges_dropped, 1);
    drop(snapshot);
    engine.maintenance(Maintenance::Reclaim).expect("reclaiming");
    let snapshot = engine.snapshot().expect("a snapshot");
    let all = rows(&*snapshot, ScanRequest::new(Space::Doc, b"", b""));
    assert_eq!(all.len(), 4000);
}

pub(super) fn hot_key(harness: &dyn Harness) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 100;
    let engine = harness.open();
    put(&engine, Space::Doc, "n", "0");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    increment(&engine);
                }
            });
        }
    });
    let snapshot = engine.snapshot().expect("a snapshot");
    let expected = (THREADS * ROUNDS).to_string();
    assert_eq!(get(&*snapshot, Space::Doc, "n"), Some(expected));
    assert_eq!(engine.counts(1).documents, THREADS * ROUNDS);
}

fn increment(engine: &Arc<dyn Engine>) {
    loop {
        let mut txn = write(engine);
        let now: u64 = get(&txn, Space::Doc, "n").and_then(|n| n.parse().ok()).expect("a number");
        txn.put(Space::Doc, key("n"), key(&(now + 1).to_string())).expect("a write");
        txn.add_counts(1, 1, 8);
        match txn.commit(CommitOptions::buffered()) {
            Ok(_) => return,
            Err(StorageError::Conflict(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

pub(super) fn parallel(harness: &dyn Harness) {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 50;
    let engine = harness.open();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let mut txn = write(engine);
                    let name = format!("{thread}-{round:03}");
                    txn.insert(Space::Doc, key(&name), key("x"), 0).expect("a new key");
                    txn.append_log(key(&name));
                    txn.add_counts(1, 1, 1);
                    let options = match round % 10 {
                        0 => CommitOptions::synced(),
                        _ => CommitOptions::buffered(),
                    };
                    let done = txn.commit(options).expect("nobody clashes");
                    let snapshot = engine.snapshot().expect("a snapshot");
                    assert!(snapshot.version() >= done.version, "own commit not visible");
                    assert!(get(&*snapshot, Space::Doc, &name).is_some());
                }
            });
        }
    });
    let snapshot = engine.snapshot().expect("a snapshot");
    let total = usize::try_from(THREADS * ROUNDS).expect("small");
    assert_eq!(rows(&*snapshot, ScanRequest::new(Space::Doc, b"", b"")).len(), total);
    assert_eq!(rows(&*snapshot, ScanRequest::new(Space::Log, b"", b"")).len(), total);
    assert_eq!(engine.counts(1).documents, THREADS * ROUNDS);
    let stats = engine.stats();
    assert_eq!(stats.commits, THREADS * ROUNDS);
    assert!(stats.groups <= stats.commits);
}

pub(super) fn durability(harness: &dyn Harness) {
    let engine = harness.open();
    let fsyncs = engine.stats().fsyncs;
    let mut txn = write(&engine);
    txn.put(Space::Doc, key("a"), key("")).expect("a write");
    let done = txn.commit(CommitOptions::synced()).expect("a commit");
    assert_eq!(engine.stats().fsyncs, fsyncs + 1, "a synced commit is one fsync");
    engine.barrier(done.version).expect("a barrier");
    assert_eq!(engine.stats().fsyncs, fsyncs + 1, "what is durable needs no second fsync");
    let done = put(&engine, Space::Doc, "b", "");
    engine.barrier(done.version).expect("a barrier");
    engine.maintenance(Maintenance::Tick).expect("a tick");
    assert_eq!(engine.stats().fsyncs, fsyncs + 2);
    engine.maintenance(Maintenance::Flush).expect("a flush");
    engine.maintenance(Maintenance::Compact).expect("a compaction");
    engine.health().expect("a healthy engine");
}

pub(super) fn restart(harness: &dyn Harness) {
    let engine = harness.open();
    for number in 0..100 {
        let mut txn = write(&engine);
        txn.put(Space::Doc, key(&format!("{number:03}")), key("v")).expect("a write");
        txn.add_counts(9, 1, 1);
        commit(txn);
    }
    let last = put(&engine, Space::Meta, "m", "v");
    let mut txn = write(&engine);
    txn.drop_range(Space::Doc, key("05"), key("06"));
    let dropped = commit(txn);
    assert!(dropped.version > last.version);
    let before = engine.cluster_time();
    let Some(engine) = harness.reopen(engine) else { return };
    assert!(engine.version() >= dropped.version);
    assert!(engine.cluster_time() >= before);
    assert_eq!(engine.counts(9), Counts { documents: 100, bytes: 100 });
    engine.maintenance(Maintenance::Reclaim).expect("reclaiming");
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(keys(&*snapshot, ScanRequest::new(Space::Doc, b"049", b"061")), "049 060");
    assert_eq!(get(&*snapshot, Space::Meta, "m").as_deref(), Some("v"));
    let next = put(&engine, Space::Doc, "next", "");
    assert!(next.version > dropped.version && next.cluster_time > before);
    let Some(engine) = harness.reopen(engine) else { return };
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "next").as_deref(), Some(""));
    assert_eq!(engine.counts(9).documents, 100);
}

pub(super) fn impatience(harness: &dyn Harness) {
    let engine = harness.open();
    let fsyncs = engine.stats().fsyncs;
    let committed = put(&engine, Space::Doc, "a", "");
    assert_eq!(engine.barrier_within(committed.version, Duration::from_secs(60)), Ok(true));
    assert!(engine.stats().fsyncs > fsyncs, "a buffered commit is forced out for a waiter");
    let fsyncs = engine.stats().fsyncs;
    assert_eq!(engine.barrier_within(committed.version, Duration::ZERO), Ok(true));
    assert_eq!(engine.stats().fsyncs, fsyncs, "what is durable is not waited for");
}

pub(super) fn clock(harness: &dyn Harness) {
    let engine = harness.open();
    let told = ClusterTime::new(put(&engine, Space::Doc, "a", "").cluster_time.secs() + 100, 7);
    engine.advance_clock(told);
    engine.advance_clock(ClusterTime::new(1, 1));
    let next = put(&engine, Space::Doc, "b", "").cluster_time;
    assert_eq!(next, ClusterTime::new(told.secs(), 8));
    assert!(put(&engine, Space::Doc, "c", "").cluster_time > next);
}

pub(super) fn closed(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "");
    let snapshot = engine.snapshot().expect("a snapshot");
    let mut txn = write(&engine);
    txn.put(Space::Doc, key("b"), key("")).expect("a write");
    engine.close().expect("the engine closes");
    engine.close().expect("closing twice does nothing");
    assert!(engine.snapshot().is_err());
    assert!(snapshot.get(Space::Doc, b"a").is_err());
    assert_eq!(txn.commit(CommitOptions::buffered()), Err(StorageError::Closed));
    assert_eq!(engine.health(), Err(StorageError::Closed));
}
