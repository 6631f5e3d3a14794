//! Reads: keys, ranges, pages, snapshots, a transaction's own writes, limits.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::{Harness, commit, get, key, keys, put, rows, write};
use crate::contract::{
    ClusterTime, Maintenance, Page, ScanRequest, Snapshot, Space, VisitedRow, prefix_end,
};
use crate::error::StorageError;
use crate::txn::{Mode, begin};

pub(super) fn get_put_delete(harness: &dyn Harness) {
    let engine = harness.open();
    for space in [Space::Meta, Space::Doc, Space::Idx] {
        put(&engine, space, "a", space.name());
    }
    put(&engine, Space::Doc, "b", "");
    let snapshot = engine.snapshot().expect("a snapshot");
    for space in [Space::Meta, Space::Doc, Space::Idx] {
        assert_eq!(get(&*snapshot, space, "a").as_deref(), Some(space.name()));
        assert_eq!(get(&*snapshot, space, "aa"), None);
        assert_eq!(get(&*snapshot, space, ""), None);
    }
    assert_eq!(get(&*snapshot, Space::Doc, "b").as_deref(), Some(""));
    let mut out = Vec::new();
    let wanted: [&[u8]; 4] = [b"b", b"zz", b"a", b"a"];
    snapshot.get_many(Space::Doc, &wanted, &mut out).expect("many keys");
    let lengths: Vec<_> = out.iter().map(|value| value.as_ref().map(Bytes::len)).collect();
    assert_eq!(lengths, [Some(0), None, Some(3), Some(3)]);

    let mut txn = write(&engine);
    txn.delete(Space::Doc, key("a")).expect("a delete");
    txn.delete(Space::Doc, key("never there")).expect("a delete of nothing");
    commit(txn);
    let snapshot = engine.snapshot().expect("a snapshot");
    assert_eq!(get(&*snapshot, Space::Doc, "a"), None);
    assert_eq!(get(&*snapshot, Space::Idx, "a").as_deref(), Some("idx"));
}

pub(super) fn scans(harness: &dyn Harness) {
    let engine = harness.open();
    for name in ["a", "b", "ba", "bb", "c", "\u{7f}"] {
        put(&engine, Space::Idx, name, &format!("<{name}>"));
    }
    let snapshot = engine.snapshot().expect("a snapshot");
    let all = ScanRequest::new(Space::Idx, b"", b"");
    assert_eq!(keys(&*snapshot, all), "a b ba bb c \u{7f}");
    assert_eq!(keys(&*snapshot, all.reverse()), "\u{7f} c bb ba b a");
    let range = |start, end| ScanRequest::new(Space::Idx, start, end);
    assert_eq!(keys(&*snapshot, range(b"b", b"c")), "b ba bb");
    assert_eq!(keys(&*snapshot, range(b"b", b"c").reverse()), "bb ba b");
    assert_eq!(keys(&*snapshot, range(b"b\0", b"bb")), "ba");
    assert_eq!(keys(&*snapshot, range(b"c", b"b")), "");
    assert_eq!(keys(&*snapshot, range(b"c", b"c").reverse()), "");
    assert_eq!(keys(&*snapshot, range(b"d", b"")), "\u{7f}");
    assert_eq!(keys(&*snapshot, range(b"zz", b"").reverse()), "\u{7f}");
    assert_eq!(keys(&*snapshot, ScanRequest::new(Space::Doc, b"", b"")), "");
    let end = prefix_end(b"b");
    assert_eq!(keys(&*snapshot, range(b"b", &end)), "b ba bb");
    let expected = vec![("b".into(), "<b>".into()), ("ba".into(), "<ba>".into())];
    assert_eq!(rows(&*snapshot, range(b"b", b"bb")), expected);
    let only = rows(&*snapshot, range(b"b", b"ba").keys_only());
    assert_eq!(only, vec![("b".to_owned(), String::new())]);
    let mut pages = Vec::new();
    let many = [range(b"c", b""), range(b"b", b"c").reverse()];
    snapshot.scan_many(&many, &mut pages).expect("two ranges");
    let lengths: Vec<_> = pages.iter().map(|page| page.rows.len()).collect();
    assert_eq!(lengths, [2, 3]);
}

pub(super) fn pages(harness: &dyn Harness) {
    let engine = harness.open();
    let mut txn = write(&engine);
    for number in 0..100 {
        txn.put(Space::Doc, key(&format!("{number:03}")), key("0123456789")).expect("a write");
    }
    commit(txn);
    let snapshot = engine.snapshot().expect("a snapshot");
    let forward: String = (0..100).map(|number| format!("{number:03} ")).collect();
    let reverse: String = (0..100).rev().map(|number| format!("{number:03} ")).collect();
    for rows_max in [1, 2, 7, 99, 100, 101] {
        let request = ScanRequest::new(Space::Doc, b"", b"").rows_max(rows_max);
        assert_eq!(keys(&*snapshot, request) + " ", forward);
        assert_eq!(keys(&*snapshot, request.reverse()) + " ", reverse);
    }
    let mut page = Page::default();
    let mut request = ScanRequest::new(Space::Doc, b"", b"");
    request.bytes_max = 26;
    snapshot.scan(&request, &mut page).expect("a page");
    assert_eq!(page.rows.len(), 2, "the row that reaches the limit is the last");
    request.bytes_max = 1;
    snapshot.scan(&request, &mut page).expect("a page");
    assert_eq!(page.rows.len(), 1, "a page has at least one row");
    let exact = ScanRequest::new(Space::Doc, b"010", b"020").rows_max(10);
    snapshot.scan(&exact, &mut page).expect("a page");
    assert_eq!(page.rows.len(), 10);
    visits(&*snapshot, exact, 10);
    let mut txn = write(&engine);
    txn.delete(Space::Doc, key("011")).expect("a delete");
    txn.put(Space::Doc, key("0150"), key("new")).expect("a write");
    txn.put(Space::Doc, key("0151"), key("new")).expect("a write");
    visits(&txn, exact, 11);
    visits(&txn, exact.reverse(), 11);
}

/// Compares what visitors who stop after some rows get with the rows of a scan.
fn visits(snapshot: &dyn Snapshot, range: ScanRequest<'_>, count: usize) {
    let expected = rows(snapshot, range);
    assert_eq!(expected.len(), count);
    for steps in 1..=count + 1 {
        let (mut visited, mut resume) = (Vec::new(), None);
        loop {
            let request = resume.as_deref().map_or(range, |resume| range.resumed(resume));
            let until = visited.len() + steps;
            let mut visitor = |row: &VisitedRow<'_>| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                visited.push((text(row.key), text(row.value)));
                match visited.len() < until {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            };
            resume = snapshot.visit(&request, &mut visitor).expect("a visit");
            if resume.is_none() {
                break;
            }
        }
        assert_eq!(visited, expected);
    }
}

pub(super) fn snapshots_stay(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Doc, "a", "1");
    put(&engine, Space::Doc, "b", "1");
    let before = engine.snapshot().expect("a snapshot");
    put(&engine, Space::Doc, "a", "2");
    put(&engine, Space::Doc, "c", "2");
    let mut txn = write(&engine);
    txn.delete(Space::Doc, key("b")).expect("a delete");
    commit(txn);
    let after = engine.snapshot().expect("a snapshot");
    assert!(before.version() < after.version());
    assert!(before.cluster_time() < after.cluster_time());
    let all = ScanRequest::new(Space::Doc, b"", b"");
    for _ in 0..2 {
        assert_eq!(get(&*before, Space::Doc, "a").as_deref(), Some("1"));
        assert_eq!(keys(&*before, all), "a b");
        assert_eq!(keys(&*before, all.reverse()), "b a");
        assert_eq!(get(&*after, Space::Doc, "a").as_deref(), Some("2"));
        assert_eq!(keys(&*after, all), "a c");
        for round in 0..50 {
            put(&engine, Space::Doc, "a", &format!("3.{round}"));
            put(&engine, Space::Doc, &format!("d{round}"), "");
        }
    }
}

/// The state at the time of each commit can be read later, also while the engine is written to. A
/// time ahead of all commits becomes a time before the commits that follow.
pub(super) fn past(harness: &dyn Harness) {
    let engine = harness.open();
    engine.keep_history(Duration::from_secs(600));
    let before = put(&engine, Space::Doc, "a", "0").cluster_time;
    let told: Vec<_> = (1..=50)
        .map(|round| put(&engine, Space::Doc, "a", &round.to_string()).cluster_time)
        .collect();
    let read = |time| engine.snapshot_at(time).map(|view| get(&*view, Space::Doc, "a"));
    for (round, time) in (1..=50).zip(&told) {
        assert_eq!(read(*time), Ok(Some(round.to_string())));
    }
    assert_eq!(read(before), Ok(Some("0".to_owned())));
    let held = engine.snapshot_at(before).expect("the past");
    let ahead = ClusterTime(engine.cluster_time().0 + 1000);
    assert_eq!(read(ahead), Ok(Some("50".to_owned())));
    assert!(put(&engine, Space::Doc, "a", "later").cluster_time > ahead);
    assert_eq!(read(ahead), Ok(Some("50".to_owned())), "a time that was read stays as it was read");
    assert_eq!(read(ClusterTime::new(1, 1)), Err(StorageError::SnapshotTooOld));
    engine.maintenance(Maintenance::Reclaim).expect("maintenance");
    assert_eq!(read(before), Err(StorageError::SnapshotTooOld));
    assert_eq!(get(&*held, Space::Doc, "a").as_deref(), Some("0"), "who reads it keeps it");
    engine.keep_history(Duration::ZERO);
    let told = put(&engine, Space::Doc, "a", "now").cluster_time;
    put(&engine, Space::Doc, "a", "then");
    assert_eq!(read(told), Err(StorageError::SnapshotTooOld));
}

/// Writers keep two keys equal. At the time of any commit a reader finds them equal, and a second
/// read finds the same.
pub(super) fn past_of_many(harness: &dyn Harness) {
    let engine = harness.open();
    engine.keep_history(Duration::from_secs(600));
    let both = |text: &str| {
        let mut txn = write(&engine);
        txn.put_entry(Space::Doc, key("a"), Bytes::copy_from_slice(text.as_bytes())).expect("a");
        txn.put_entry(Space::Idx, key("a"), Bytes::copy_from_slice(text.as_bytes())).expect("b");
        commit(txn)
    };
    both("first");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let both = &both;
                scope.spawn(move || (0..200).for_each(|n| _ = both(&format!("{writer}.{n}"))))
            })
            .collect();
        scope.spawn(|| {
            let mut seen: Vec<(ClusterTime, Option<String>)> = Vec::new();
            while !done.load(Ordering::Acquire) {
                // Every second read uses a time just ahead, which a commit may pass meanwhile. That
                // time may then lie between two commits of one group, and such a time has no view.
                let ahead = seen.len() as u64 % 2;
                let time = ClusterTime(engine.cluster_time().0 + ahead);
                let view = match engine.snapshot_at(time) {
                    Err(StorageError::SnapshotTooOld) if ahead == 1 => continue,
                    view => view.expect("a time just told"),
                };
                let found = get(&*view, Space::Doc, "a");
                assert_eq!(found, get(&*view, Space::Idx, "a"));
                seen.push((time, found));
            }
            for (time, found) in seen {
                let view = engine.snapshot_at(time).expect("a time told lately");
                assert_eq!(get(&*view, Space::Doc, "a"), found);
            }
        });
        for writer in writers {
            writer.join().expect("a writer ends");
        }
        done.store(true, Ordering::Release);
    });
}

pub(super) fn own_writes(harness: &dyn Harness) {
    let engine = harness.open();
    for name in ["b", "d", "f", "h"] {
        put(&engine, Space::Doc, name, "old");
    }
    let mut txn = write(&engine);
    for name in ["a", "c", "i"] {
        txn.put_entry(Space::Doc, key(name), key("new")).expect("a write");
    }
    txn.put(Space::Doc, key("d"), key("new")).expect("a write");
    txn.delete(Space::Doc, key("f")).expect("a delete");
    txn.delete_entry(Space::Doc, key("h")).expect("a delete");
    txn.delete(Space::Doc, key("g")).expect("a delete of nothing");
    assert_eq!(get(&txn, Space::Doc, "d").as_deref(), Some("new"));
    assert_eq!(get(&txn, Space::Doc, "f"), None);
    assert_eq!(get(&txn, Space::Doc, "b").as_deref(), Some("old"));
    let mut out = Vec::new();
    txn.get_many(Space::Doc, &[b"f", b"c", b"b"], &mut out).expect("many keys");
    let lengths: Vec<_> = out.iter().map(|value| value.as_ref().map(Bytes::len)).collect();
    assert_eq!(lengths, [None, Some(3), Some(3)]);
    for rows_max in [1, 2, 3, 100] {
        let all = ScanRequest::new(Space::Doc, b"", b"").rows_max(rows_max);
        assert_eq!(keys(&txn, all), "a b c d i");
        assert_eq!(keys(&txn, all.reverse()), "i d c b a");
        let part = ScanRequest::new(Space::Doc, b"b", b"i").rows_max(rows_max);
        assert_eq!(keys(&txn, part), "b c d");
        assert_eq!(keys(&txn, part.reverse()), "d c b");
    }
    let request = ScanRequest::new(Space::Doc, b"d", b"e");
    assert_eq!(rows(&txn, request), vec![("d".to_owned(), "new".to_owned())]);
    let other = engine.snapshot().expect("a snapshot");
    assert_eq!(keys(&*other, ScanRequest::new(Space::Doc, b"", b"")), "b d f h");
    commit(txn);
    let after = engine.snapshot().expect("a snapshot");
    assert_eq!(keys(&*after, ScanRequest::new(Space::Doc, b"", b"")), "a b c d i");
}

pub(super) fn large_values(harness: &dyn Harness) {
    let engine = harness.open();
    let large: Vec<u8> =
        (0..16u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let large = Bytes::from(large);
    let mut txn = write(&engine);
    txn.put(Space::Doc, key("large"), large.clone()).expect("16 MiB fit");
    commit(txn);
    put(&engine, Space::Doc, "small", "x");
    let snapshot = engine.snapshot().expect("a snapshot");
    assert!(snapshot.get(Space::Doc, b"large").expect("a read") == Some(large));
    assert_eq!(keys(&*snapshot, ScanRequest::new(Space::Doc, b"", b"")), "large small");
}

pub(super) fn limits(harness: &dyn Harness) {
    let engine = harness.open();
    let caps = *engine.caps();
    let mut txn = write(&engine);
    let longest = Bytes::from(vec![b'k'; caps.key_bytes_max]);
    txn.put(Space::Idx, longest.clone(), key("v")).expect("the longest key fits");
    let longer = Bytes::from(vec![b'k'; caps.key_bytes_max + 1]);
    let refused = txn.put(Space::Idx, longer, key("v"));
    assert_eq!(refused, Err(StorageError::TooLarge));
    commit(txn);
    let snapshot = engine.snapshot().expect("a snapshot");
    assert!(snapshot.get(Space::Idx, &longest).expect("a read").is_some());
    let mut txn = begin(&engine, Mode::Read).expect("a transaction");
    assert!(matches!(txn.put(Space::Doc, key("a"), key("")), Err(StorageError::Unsupported(_))));
}

pub(super) fn own_keys(harness: &dyn Harness) {
    let engine = harness.open();
    put(&engine, Space::Meta, "catalog", "x");
    let mut txn = write(&engine);
    txn.add_counts(7, 1, 100);
    let refused = txn.put(Space::Meta, Bytes::from_static(b"\0x"), key(""));
    assert!(matches!(refused, Err(StorageError::Unsupported(_))));
    commit(txn);
    let snapshot = engine.snapshot().expect("a snapshot");
    let all = ScanRequest::new(Space::Meta, b"", b"");
    assert_eq!(keys(&*snapshot, all), "catalog");
    assert_eq!(keys(&*snapshot, all.reverse()), "catalog");
    assert_eq!(snapshot.get(Space::Meta, &[0, 1]).expect("a read"), None);
}
