//! Closing and reopening of points: a crash at any step leaves each point once, as a record or in a bucket, and damaged
//! directories are found and repaired.

use super::*;
use bytes::Bytes;
use quire_catalog::{CollectionOptions, format_key};
use quire_collections::{BucketCursor, ClosePolicy, Closed, Closing, Span};
use quire_document::Value;
use quire_storage::simulated::{Crash, Faults, SimulatedDisk};
use quire_storage::{Engine, Mode, Page, ScanRequest, Snapshot, Space, begin, prefix_end};

const EVERYTHING: ClosePolicy = ClosePolicy { now_ms: 0, everything: true, is_forced: false };

fn series(store: &Arc<Store>) -> Arc<Collection> {
    let series = doc! { "timeField": "t", "metaField": "m", "granularity": "seconds" };
    let options = CollectionOptions::from_document(doc! { "timeseries": &series }).unwrap();
    store.create_collection(&ns("d.s"), options, &CommitOptions::synced()).unwrap()
}

fn fill(store: &Arc<Store>, count: i64) -> Vec<DocBuf> {
    let points: Vec<DocBuf> = (0..count)
        .map(|n| doc! { "t": Value::Date(n * 1000), "m": (n % 3), "_id": n, "v": 0.5 })
        .collect();
    let collection = store.catalog().lookup(&ns("d.s")).cloned().unwrap();
    store
        .write(&CommitOptions::synced(), &Interrupt::new(), |writer| {
            for point in &points {
                writer.insert(&collection, point.as_doc())?;
            }
            Ok(())
        })
        .unwrap();
    points
}

fn close(store: &Arc<Store>, policy: ClosePolicy) -> Result<Closed> {
    let collection = store.catalog().lookup(&ns("d.s")).cloned().unwrap();
    Closing::new(&collection, policy).run(store, &Interrupt::new())
}

fn reopen(store: &Arc<Store>) -> Result<()> {
    let collection = store.catalog().lookup(&ns("d.s")).cloned().unwrap();
    store.with_all_as_records(&collection, &Interrupt::new(), || Ok(()))
}

/// Returns the points of records and buckets in the order of their `_id`s.
fn points(store: &Arc<Store>) -> Vec<DocBuf> {
    let mut found = records(store, "d.s");
    let view = store.read_view().unwrap();
    let collection = view.catalog().lookup(&ns("d.s")).cloned().unwrap();
    if let Some(buckets) = collection.buckets {
        let mut cursor = BucketCursor::by_time(buckets, Span::ALL, Direction::Forward);
        while view.view().next_points(&collection, &mut cursor, &mut found).unwrap() {}
    }
    let mut points: Vec<DocBuf> = found.iter().map(|found| found.doc.as_doc().to_owned()).collect();
    points.sort_by_key(|point| point.get("_id").and_then(|id| id.exact_i64()));
    points
}

#[test]
fn points_are_closed_source_by_source_when_they_fill_a_bucket_or_are_old() {
    let store = store();
    series(&store);
    let all = fill(&store, 300);
    let policy = |now_ms| ClosePolicy { now_ms, everything: false, is_forced: false };
    assert_eq!(close(&store, policy(1_000_000)).unwrap(), Closed::default(), "they are new");
    let closed = close(&store, policy(i64::MAX)).unwrap();
    assert_eq!(closed, Closed { buckets: 3, points: 300 });
    assert!(records(&store, "d.s").is_empty());
    assert_eq!(points(&store), all);
    assert_clean(&store);
    // A few points are not worth a bucket.
    let few = fill(&store, 9);
    assert_eq!(close(&store, policy(i64::MAX)).unwrap(), Closed::default());
    assert_eq!(close(&store, EVERYTHING).unwrap(), Closed { buckets: 3, points: 9 });
    assert_eq!(points(&store).len(), all.len() + few.len());
    reopen(&store).unwrap();
    assert_eq!(records(&store, "d.s").len(), all.len() + few.len());
    assert_clean(&store);
}

/// A source may have few points for ever; each of them as a record would take many times the space.
#[test]
fn a_few_points_are_closed_when_they_are_old() {
    let store = store();
    series(&store);
    let all = fill(&store, 3 * 4 + 2);
    let at = |now_ms| ClosePolicy { now_ms, everything: false, is_forced: false };
    let last_is_old = 13_000 + 3_600_000 + 1;
    assert_eq!(close(&store, at(last_is_old - 2000)).unwrap(), Closed { buckets: 1, points: 4 });
    assert_eq!(close(&store, at(last_is_old)).unwrap(), Closed { buckets: 2, points: 10 });
    let late = fill(&store, 3 * 3);
    assert_eq!(close(&store, at(i64::MAX)).unwrap(), Closed::default(), "three are too few");
    assert_eq!(records(&store, "d.s").len(), late.len());
    assert_eq!(points(&store).len(), all.len() + late.len());
    assert_clean(&store);
}

/// A pass closes points of several sources in a commit: full buckets, long points, and points that stay records.
#[test]
fn one_commit_closes_buckets_of_several_sources() {
    let store = store();
    let collection = series(&store);
    let long = "x".repeat(600);
    let point = |n: i64| {
        let value = match (n % 5, n % 700) {
            (_, 0) => "y".repeat(70_000),
            (1, _) => long.clone(),
            _ => format!("{n}"),
        };
        doc! { "t": Value::Date(n), "m": (n % 5), "_id": n, "v": value.as_str() }
    };
    let all: Vec<DocBuf> = (0..12_000).map(point).collect();
    for chunk in all.chunks(1000) {
        let write = |writer: &mut Writer| {
            chunk.iter().try_for_each(|point| writer.insert(&collection, point.as_doc()).map(drop))
        };
        store.write(&CommitOptions::buffered(), &Interrupt::new(), write).unwrap();
    }
    let mut closing = Closing::new(&collection, EVERYTHING);
    let mut most = 0;
    loop {
        let before = closing.closed().buckets;
        let more = closing.step(&store, &Interrupt::new()).unwrap();
        most = most.max(closing.closed().buckets - before);
        if !more {
            break;
        }
    }
    assert!(most > 1, "{most}");
    let stay = (0..12_000).filter(|n| n % 700 == 0).count();
    assert_eq!(closing.closed().points as usize, all.len() - stay);
    assert_eq!(records(&store, "d.s").len(), stay);
    assert_eq!(points(&store), all);
    assert_clean(&store);
}

#[test]
fn nothing_is_closed_while_a_statement_needs_records() {
    let store = store();
    let collection = series(&store);
    fill(&store, 30);
    let closed = store.series_writes(&collection).run(|| close(&store, EVERYTHING));
    assert_eq!(closed.unwrap(), Closed::default());
    assert_eq!(close(&store, EVERYTHING).unwrap().points, 30);
}

/// Changes the number of the format in its record. Returns the number before.
fn set_format(engine: &Arc<dyn Engine>, format: u8) -> u8 {
    let mut txn = begin(engine, Mode::Write).unwrap();
    let record = txn.get(Space::Meta, &format_key()).unwrap().unwrap();
    let name = b"format\0";
    let at = record.windows(name.len()).position(|bytes| bytes == name).unwrap() + name.len();
    let mut changed = record.to_vec();
    changed[at] = format;
    txn.put(Space::Meta, Bytes::copy_from_slice(&format_key()), changed.into()).unwrap();
    txn.commit(CommitOptions::buffered()).unwrap();
    record[at]
}

/// Format 4 has time-series collections whose points are all records.
#[test]
fn data_of_format_4_get_buckets_and_format_5() {
    let engine = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    series(&store);
    let all = fill(&store, 300);
    drop(store);
    set_format(&engine, 4);
    let store = open(Arc::clone(&engine));
    assert_eq!(points(&store), all);
    let old = ClosePolicy { now_ms: i64::MAX, everything: false, is_forced: false };
    assert_eq!(close(&store, old).unwrap().points, 300);
    assert_eq!(points(&store), all);
    assert_clean(&store);
    assert_eq!(set_format(&engine, 5), 5, "an earlier version must not open them");
    drop(store);
    let store = open(engine);
    assert_eq!(points(&store), all);
    assert!(records(&store, "d.s").is_empty());
}

#[test]
fn a_pass_that_finds_nothing_gives_no_number_and_says_when_it_can() {
    let store = store();
    let collection = series(&store);
    fill(&store, 300);
    let at = |now_ms| ClosePolicy { now_ms, everything: false, is_forced: false };
    let mark = store.points_mark(&collection);
    let mut closing = Closing::new(&collection, at(400_000));
    while closing.step(&store, &Interrupt::new()).unwrap() {}
    assert_eq!(closing.closed(), Closed::default());
    assert!(store.catalog().lookup(&ns("d.s")).unwrap().buckets.is_none());
    assert_eq!(store.points_mark(&collection), mark);
    // The newest point of the first source.
    let due = 297_000 + 3_600_000 + 1;
    assert_eq!(closing.next_due_ms(), due);
    assert_eq!(close(&store, at(due - 1)).unwrap().points, 0);
    assert_eq!(close(&store, at(due)).unwrap().points, 100);
    let moved = store.points_mark(&collection);
    assert_ne!(moved, mark);
    reopen(&store).unwrap();
    assert_ne!(store.points_mark(&collection), moved);
}

#[test]
fn a_crash_at_any_step_leaves_each_point_once() {
    for how in [Crash::Process, Crash::Power, Crash::TornTail] {
        // Giving the collection its number is one commit, the first bucket is one, the other two are one, and giving the
        // points of each back is one.
        for steps in 0..=6 {
            let mut disk = SimulatedDisk::new(Faults::none(steps));
            let store = open(disk.open().unwrap());
            series(&store);
            let all = fill(&store, 90);
            disk.set_faults(Faults { io_error_after: Some(steps), ..Faults::none(steps) });
            let ended = close(&store, EVERYTHING).and_then(|_| reopen(&store));
            assert_eq!(ended.is_ok(), steps >= 6, "{steps} {ended:?}");
            drop(store);
            disk.crash(how);
            disk.set_faults(Faults::none(steps));
            let store = open(disk.open().unwrap());
            assert_eq!(points(&store), all, "{how:?} {steps}");
            assert_clean(&store);
            close(&store, EVERYTHING).unwrap();
            assert!(records(&store, "d.s").is_empty(), "{how:?} {steps}");
            assert_eq!(points(&store), all);
            assert_clean(&store);
        }
    }
}

#[test]
fn conflicts_delay_closing_and_lose_nothing() {
    let faults = Faults { conflict_one_in: 3, ..Faults::none(5) };
    let disk = SimulatedDisk::new(faults);
    let store = open(disk.open().unwrap());
    series(&store);
    let all = fill(&store, 90);
    for _ in 0..5 {
        assert_eq!(close(&store, EVERYTHING).unwrap().points, 90);
        reopen(&store).unwrap();
    }
    assert_eq!(points(&store), all);
    assert_clean(&store);
}

/// Returns the rows of the buckets whose keys have this byte after the number.
fn rows(store: &Arc<Store>, tag: u8) -> Vec<(Bytes, Bytes)> {
    let buckets = store.catalog().lookup(&ns("d.s")).unwrap().buckets.unwrap();
    let start = [&buckets.to_bytes()[..], &[tag]].concat();
    let mut page = Page::default();
    let snapshot = store.engine().snapshot().unwrap();
    snapshot.scan(&ScanRequest::new(Space::Idx, &start, &prefix_end(&start)), &mut page).unwrap();
    page.rows
}

#[test]
fn a_check_finds_and_repairs_damaged_directories_and_finds_damaged_buckets() {
    let store = store();
    series(&store);
    let all = fill(&store, 90);
    close(&store, EVERYTHING).unwrap();
    for tag in [2, 3] {
        let listed = rows(&store, tag);
        let mut txn = begin(store.engine(), Mode::Write).unwrap();
        txn.delete(Space::Idx, listed[0].0.clone()).unwrap();
        let strange = [&listed[1].0[..], &[7]].concat();
        txn.put(Space::Idx, strange.into(), listed[1].1.clone()).unwrap();
        txn.commit(CommitOptions::buffered()).unwrap();
        assert!(!check(&store, false).unwrap().is_clean());
        check(&store, true).unwrap();
        assert_clean(&store);
        assert_eq!(rows(&store, tag), listed);
    }
    assert_eq!(points(&store), all);
    let (key, data) = rows(&store, 1).swap_remove(0);
    let mut damaged = data.to_vec();
    damaged[20] ^= 1;
    let mut txn = begin(store.engine(), Mode::Write).unwrap();
    txn.put(Space::Idx, key, damaged.into()).unwrap();
    txn.commit(CommitOptions::buffered()).unwrap();
    let report = check(&store, false).unwrap();
    assert!(report.findings.iter().any(|found| found.problem.contains("is damaged")), "{report:?}");
}
