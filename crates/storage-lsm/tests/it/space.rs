//! Memory and disk space stay bounded: dropped ranges are freed, and an idle snapshot cannot keep
//! more than its limit.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quire_storage::committer::log_key;
use quire_storage::{
    CommitOptions, CommitterOptions, Engine, Maintenance, Mode, Space, StorageError, begin,
};
use quire_storage_lsm::{DiskSpace, LsmOptions, open};
use tempfile::TempDir;

use crate::support::{document, fill, image, insert, key, numbers};

const DOCUMENTS: u64 = 30_000;

fn two_collections(directory: &TempDir) -> Arc<dyn Engine> {
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    fill(&engine, 1, DOCUMENTS, 700);
    fill(&engine, 2, DOCUMENTS, 700);
    engine.maintenance(Maintenance::Flush).unwrap();
    engine
}

fn table_bytes(engine: &Arc<dyn Engine>) -> u64 {
    let stats = engine.stats();
    stats.disk_bytes - stats.journal_bytes
}

#[test]
fn the_space_of_a_dropped_collection_comes_back() {
    let directory = TempDir::new().unwrap();
    let engine = two_collections(&directory);
    let before = table_bytes(&engine);
    let old = engine.snapshot().unwrap();
    engine.drop_range(Space::Doc, &key(1, 0), &key(2, 0)).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(numbers(&*old, Space::Doc, 1).len() as u64, DOCUMENTS, "an older snapshot sees it");
    assert_eq!(engine.stats().ranges_dropped, 1);
    drop(old);
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let after = table_bytes(&engine);
    assert!(after < before * 6 / 10, "{before} bytes before, {after} after");
    let snapshot = engine.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 1).len(), 0);
    assert_eq!(numbers(&*snapshot, Space::Doc, 2).len() as u64, DOCUMENTS);
    let value = snapshot.get(Space::Doc, &key(2, 77)).unwrap();
    assert_eq!(value, Some(document(77, 700)));
    let size = engine.approximate_size(Space::Doc, &key(2, 0), &key(3, 0)).unwrap();
    assert!((DOCUMENTS / 2..=DOCUMENTS * 2).contains(&size.keys), "{size:?}");
}

/// Deleted and overwritten rows count as dead in their own range only, and no longer after a
/// compaction.
#[test]
fn the_space_that_a_compaction_would_free_is_estimated() {
    let directory = TempDir::new().unwrap();
    let engine = two_collections(&directory);
    let dead = |collection: u32, live: Option<u64>| {
        let (start, end) = (key(collection, 0), key(collection + 1, 0));
        engine.reclaimable_bytes(Space::Doc, &start, &end, live).unwrap()
    };
    assert_eq!((dead(1, None), dead(1, Some(DOCUMENTS))), (0, 0));
    let mut txn = begin(&engine, Mode::Write).unwrap();
    for number in 0..DOCUMENTS / 2 {
        txn.delete(Space::Doc, key(1, number)).unwrap();
    }
    txn.commit(CommitOptions::buffered()).unwrap();
    engine.maintenance(Maintenance::Flush).unwrap();
    let half = table_bytes(&engine) / 4;
    for live in [None, Some(DOCUMENTS / 2)] {
        let dead = dead(1, live);
        assert!((half / 2..half * 2).contains(&dead), "{dead} of about {half}, {live:?}");
    }
    assert_eq!((dead(2, None), dead(2, Some(DOCUMENTS))), (0, 0));
    let before = table_bytes(&engine);
    engine.maintenance(Maintenance::Compact).unwrap();
    assert_eq!((dead(1, None), dead(1, Some(DOCUMENTS / 2))), (0, 0));
    let freed = before - table_bytes(&engine);
    assert!((half / 2..half * 2).contains(&freed), "{freed} of about {half}");
}

#[test]
fn a_drop_is_finished_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let engine = two_collections(&directory);
    let before = table_bytes(&engine);
    let pinned = engine.snapshot().unwrap();
    engine.drop_range(Space::Doc, &key(2, 0), &key(3, 0)).unwrap();
    drop(pinned);
    engine.close().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    engine.maintenance(Maintenance::Compact).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let after = table_bytes(&engine);
    assert!(after < before * 6 / 10, "{before} bytes before, {after} after");
    let snapshot = engine.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 1).len() as u64, DOCUMENTS);
    assert_eq!(numbers(&*snapshot, Space::Doc, 2).len(), 0);
}

/// The log still holds the rows of tables, and an open replays what is newer than any table: after
/// the tables of a dropped range were gone, it replayed the whole range, although its record was
/// gone too.
#[test]
fn a_killed_process_leaves_nothing_of_a_dropped_range() {
    let directory = TempDir::new().unwrap();
    let committer = CommitterOptions { tick: None, ..CommitterOptions::default() };
    let options = LsmOptions { committer, ..LsmOptions::default() };
    let engine = open(directory.path(), options).unwrap().engine;
    fill(&engine, 1, DOCUMENTS, 700);
    fill(&engine, 2, DOCUMENTS, 700);
    engine.maintenance(Maintenance::Compact).unwrap();
    engine.drop_range(Space::Doc, &key(2, 0), &key(3, 0)).unwrap();
    engine.maintenance(Maintenance::Compact).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let killed = TempDir::new().unwrap();
    image(directory.path(), killed.path());
    engine.close().unwrap();
    let engine = open(killed.path(), LsmOptions::default()).unwrap().engine;
    engine.maintenance(Maintenance::Reclaim).unwrap();
    let snapshot = engine.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 1).len() as u64, DOCUMENTS);
    assert_eq!(numbers(&*snapshot, Space::Doc, 2).len(), 0);
    drop(snapshot);
    engine.close().unwrap();
    // The log no longer has the range.
    let engine = open(killed.path(), LsmOptions::default()).unwrap().engine;
    engine.maintenance(Maintenance::Reclaim).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.ranges_dropped, stats.ranges_freed), (0, 0));
}

/// The tables of a second range prevent the replay of the log, until that range is dropped as well.
#[test]
fn a_dropped_range_does_not_come_back_with_the_next_drop() {
    let directory = TempDir::new().unwrap();
    let options = || {
        let committer = CommitterOptions { tick: None, ..CommitterOptions::default() };
        LsmOptions { committer, ..LsmOptions::default() }
    };
    let mut place = directory.path().to_owned();
    let mut killed = Vec::new();
    for dropped in [2, 3] {
        let engine = open(&place, options()).unwrap().engine;
        if dropped == 2 {
            (1..=3).for_each(|number| fill(&engine, number, DOCUMENTS, 300));
            engine.maintenance(Maintenance::Compact).unwrap();
        } else {
            engine.maintenance(Maintenance::Reclaim).unwrap();
        }
        engine.drop_range(Space::Doc, &key(dropped, 0), &key(dropped + 1, 0)).unwrap();
        engine.maintenance(Maintenance::Compact).unwrap();
        assert_eq!(engine.stats().ranges_dropped, 0);
        let next = TempDir::new().unwrap();
        image(&place, next.path());
        engine.close().unwrap();
        place = next.path().to_owned();
        killed.push(next);
    }
    let engine = open(&place, options()).unwrap().engine;
    engine.maintenance(Maintenance::Reclaim).unwrap();
    let snapshot = engine.snapshot().unwrap();
    let left = [1, 2, 3].map(|number| numbers(&*snapshot, Space::Doc, number).len() as u64);
    assert_eq!(left, [DOCUMENTS, 0, 0]);
}

#[test]
fn the_record_of_a_drop_is_removed_with_the_log_that_has_its_range() {
    let directory = TempDir::new().unwrap();
    let engine = two_collections(&directory);
    engine.drop_range(Space::Doc, &key(2, 0), &key(3, 0)).unwrap();
    // Only the documents are flushed, so the log file stays for the other spaces.
    engine.maintenance(Maintenance::Reclaim).unwrap();
    let stats = engine.stats();
    assert_eq!((stats.ranges_dropped, stats.ranges_freed), (0, 1));
    fill(&engine, 3, 1, 2100);
    engine.maintenance(Maintenance::Flush).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_freed, 0);
}

/// A compaction that began before a drop does not filter the range, and the tables that it writes
/// are newer than the drop.
#[test]
fn a_drop_during_a_compaction_ends_when_its_rows_are_gone() {
    let directory = TempDir::new().unwrap();
    let engine = two_collections(&directory);
    let before = files(directory.path());
    let compacting = std::thread::spawn({
        let engine = Arc::clone(&engine);
        move || engine.maintenance(Maintenance::Compact).unwrap()
    });
    while files(directory.path()) <= before && !compacting.is_finished() {
        std::thread::yield_now();
    }
    engine.drop_range(Space::Doc, &key(2, 0), &key(3, 0)).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    compacting.join().unwrap();
    engine.maintenance(Maintenance::Compact).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let snapshot = engine.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 2).len(), 0);
}

/// Returns the number of tables of documents on disk.
fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("data/keyspaces/2/tables")).unwrap().count()
}

#[test]
fn creating_and_dropping_many_collections_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    for collection in 10..310 {
        insert(&engine, collection, 0, document(0, 100), CommitOptions::buffered());
        engine.drop_range(Space::Doc, &key(collection, 0), &key(collection + 1, 0)).unwrap();
    }
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let snapshot = engine.snapshot().unwrap();
    for collection in 10..310 {
        assert_eq!(numbers(&*snapshot, Space::Doc, collection).len(), 0);
    }
}

#[test]
fn a_snapshot_cannot_keep_more_than_its_cap() {
    let directory = TempDir::new().unwrap();
    let committer = CommitterOptions {
        snapshot_retained_bytes_max: 4 << 20,
        snapshots_held_bytes_max: 0,
        snapshot_grace: Duration::ZERO,
        history_window: Duration::ZERO,
        ..CommitterOptions::default()
    };
    let options = LsmOptions { committer, ..LsmOptions::default() };
    let engine = open(directory.path(), options).unwrap().engine;
    fill(&engine, 1, 1000, 1000);
    let held = engine.snapshot().unwrap();
    for _ in 0..10 {
        assert!(engine.stats().snapshots <= 3);
        fill(&engine, 1, 1000, 1000);
    }
    assert_eq!(held.get(Space::Doc, &key(1, 5)), Err(StorageError::SnapshotTooOld));
    assert_eq!(engine.stats().snapshots_revoked, 1);
    engine.maintenance(Maintenance::Flush).unwrap();
    falls_below(1 << 20, || engine.stats().memtable_bytes);
}

/// Waits until the memory is below a bound: a background thread can use a view a little longer.
fn falls_below(bound: u64, bytes: impl Fn() -> u64) {
    let until = Instant::now() + Duration::from_secs(20);
    while bytes() >= bound {
        assert!(Instant::now() < until, "{} bytes stay in memory", bytes());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_history_is_bounded_and_given_up() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut told = Vec::new();
    for _ in 0..100 {
        fill(&engine, 1, 1000, 1000);
        told.push(engine.cluster_time());
    }
    assert!(engine.snapshot_at(told[96]).is_ok());
    assert!(matches!(engine.snapshot_at(told[80]), Err(StorageError::SnapshotTooOld)));
    let kept = || {
        engine.maintenance(Maintenance::Flush).unwrap();
        engine.maintenance(Maintenance::Tick).unwrap();
        engine.stats().memtable_bytes
    };
    // The 8 MB of writes are in two memtables of documents, which together hold 100 MB.
    falls_below(80 << 20, kept);
    engine.keep_history(Duration::ZERO);
    falls_below(1 << 20, kept);
}

/// A large range of documents caused a flush of the memtables of all four keyspaces.
#[test]
fn reclaiming_a_range_flushes_only_its_own_keyspace() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    fill(&engine, 1, DOCUMENTS, 700);
    let mut txn = begin(&engine, Mode::Write).unwrap();
    for number in 0..2000 {
        txn.put_entry(Space::Idx, key(7, number), document(number, 500)).unwrap();
    }
    txn.commit(CommitOptions::buffered()).unwrap();
    engine.drop_range(Space::Doc, &key(1, 0), &key(2, 0)).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(engine.stats().ranges_dropped, 0);
    let left = engine.stats().memtable_bytes;
    assert!(left >= 1_000_000, "{left} bytes are left in memory");
}

/// The change records are truncated by whole tables, twice, and stay truncated after a restart.
#[test]
fn a_truncated_log_frees_its_tables() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut versions = Vec::new();
    for number in 0..10_000 {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        (0..4).for_each(|part| txn.append_log(document(number * 4 + part, 1000)));
        versions.push(txn.commit(CommitOptions::buffered()).unwrap().version);
    }
    engine.maintenance(Maintenance::Compact).unwrap();
    let whole = table_bytes(&engine);
    for (at, share) in [(5_000, 2), (9_000, 10)] {
        engine.truncate_log(versions[at]).unwrap();
        engine.maintenance(Maintenance::Compact).unwrap();
        let left = table_bytes(&engine);
        assert!(left < whole / share * 12 / 10, "{left} of {whole} bytes are left");
    }
    engine.close().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    assert_eq!(engine.log_begins_at(), versions[9_000]);
    let snapshot = engine.snapshot().unwrap();
    let (mut page, begin) = (quire_storage::Page::default(), log_key(versions[9_000].as_u64(), 0));
    let request = quire_storage::ScanRequest::new(Space::Log, &[], &[]).keys_only().rows_max(1);
    snapshot.scan(&request, &mut page).unwrap();
    assert_eq!(page.rows[0].0, begin);
}

/// Returns the blocks of all files of a directory, in bytes.
#[cfg(unix)]
fn used(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.path().symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => used(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}

/// Syncs that no commit waits for are no reason to fill the next log file.
#[cfg(unix)]
#[test]
fn buffered_commits_fill_no_log_file() {
    const LOG_BYTES: u64 = 16 << 20;
    let directory = TempDir::new().unwrap();
    let tick = Some(Duration::from_millis(1));
    let options = LsmOptions {
        committer: CommitterOptions { tick, ..CommitterOptions::default() },
        log_fill_syncs: 20,
        log_file_bytes: LOG_BYTES,
        ..LsmOptions::default()
    };
    let engine = open(directory.path(), options).unwrap().engine;
    let put = |number: u64, options: CommitOptions| {
        let mut txn = begin(&engine, Mode::Write).unwrap();
        txn.put_entry(Space::Doc, key(1, number), document(number, 200)).unwrap();
        txn.commit(options).unwrap();
    };
    for number in 0..300 {
        put(number, CommitOptions::buffered());
        std::thread::sleep(Duration::from_millis(3));
    }
    let log = || used(&directory.path().join("data"));
    assert!(log() < LOG_BYTES / 2, "{} bytes", log());
    (300..400).for_each(|number| put(number, CommitOptions::synced()));
    let end = Instant::now() + Duration::from_secs(20);
    while log() < LOG_BYTES {
        assert!(Instant::now() < end, "no file is filled, {} bytes", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    engine.close().unwrap();
}

/// The next log file is filled with zeros where commits wait for syncs. The space of the zeros is
/// given back as soon as commits need it, also if another program takes it during the filling.
#[cfg(unix)]
#[test]
fn zeros_of_the_log_refuse_no_commit() {
    const LOG_BYTES: u64 = 16 << 20;
    const RESERVE_BYTES: u64 = 100 << 20;
    for (free, taken) in [(18 << 20, 0), (20 << 20, 0), (24 << 20, 0), (30 << 20, 18 << 20)] {
        let directory = TempDir::new().unwrap();
        let root = directory.path().to_owned();
        let highest = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&highest);
        let probe = move |_: &Path| {
            let used = used(&root);
            let highest = seen.fetch_max(used, Ordering::Relaxed).max(used);
            let others = if highest > LOG_BYTES / 2 { taken } else { 0 };
            let available_bytes = (RESERVE_BYTES + free).saturating_sub(used + others);
            Some(DiskSpace { total_bytes: 4 << 30, available_bytes })
        };
        let tick = Some(Duration::from_millis(5));
        let options = LsmOptions {
            committer: CommitterOptions { tick, ..CommitterOptions::default() },
            reserve_bytes: RESERVE_BYTES,
            log_fill_syncs: 200,
            log_file_bytes: LOG_BYTES,
            space_probe: Arc::new(probe),
            ..LsmOptions::default()
        };
        let engine = open(directory.path(), options).unwrap().engine;
        let refused = (0..2000).filter(|number| {
            let mut txn = begin(&engine, Mode::Write).unwrap();
            txn.put_entry(Space::Doc, key(1, *number), document(*number, 2000)).unwrap();
            match txn.commit(CommitOptions::synced()) {
                Ok(_) => false,
                Err(StorageError::Full) => true,
                Err(error) => panic!("{error}"),
            }
        });
        assert_eq!(refused.count(), 0, "{free} free, {taken} taken");
        let highest = highest.load(Ordering::Relaxed);
        assert!(highest > LOG_BYTES / 2, "no file was filled: {highest} bytes were used");
        engine.close().unwrap();
    }
}

/// A disk of which another program takes all but some bytes, on demand.
#[cfg(unix)]
struct SmallDisk {
    root: PathBuf,
    /// What the data used when the space was taken, and the free bytes then.
    taken: Mutex<Option<(u64, u64)>>,
}

#[cfg(unix)]
impl SmallDisk {
    fn options(directory: &Path) -> (Arc<Self>, LsmOptions) {
        let disk = Arc::new(Self { root: directory.to_owned(), taken: Mutex::default() });
        let probed = Arc::clone(&disk);
        let tick = Some(Duration::from_millis(2));
        let history_window = Duration::ZERO;
        let options = LsmOptions {
            committer: CommitterOptions { tick, history_window, ..CommitterOptions::default() },
            reserve_bytes: 100 << 20,
            space_probe: Arc::new(move |_: &Path| Some(probed.space())),
            ..LsmOptions::default()
        };
        (disk, options)
    }

    fn take_all_but(&self, free: u64) {
        *self.taken.lock().unwrap() = Some((used(&self.root), free));
    }

    fn give_back(&self) {
        *self.taken.lock().unwrap() = None;
    }

    fn space(&self) -> DiskSpace {
        let available_bytes = match *self.taken.lock().unwrap() {
            None => 1 << 40,
            Some((before, free)) => (free + before).saturating_sub(used(&self.root)),
        };
        DiskSpace { total_bytes: 1 << 41, available_bytes }
    }
}

fn eventually(what: &str, is_so: &mut dyn FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes a document, or deletes one.
fn commit(engine: &Arc<dyn Engine>, collection: u32, number: u64, length: Option<usize>) -> bool {
    let mut txn = begin(engine, Mode::Write).unwrap();
    let key = key(collection, number);
    match length {
        Some(length) => txn.put_entry(Space::Doc, key, document(number, length)).unwrap(),
        None => txn.delete_entry(Space::Doc, key).unwrap(),
    }
    match txn.commit(CommitOptions::synced()) {
        Ok(_) => true,
        Err(StorageError::Full) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Another program fills the disk while more waits for a flush than is left. The flush waits, and
/// deletes go on. Everything goes on when there is room again.
#[cfg(unix)]
#[test]
fn a_flush_without_room_waits() {
    let directory = TempDir::new().unwrap();
    let (disk, options) = SmallDisk::options(directory.path());
    let engine = open(directory.path(), options).unwrap().engine;
    let flushes = || engine.maintenance(Maintenance::Flush);
    for round in 0..3 {
        assert!((0..24).all(|number| commit(&engine, 1, number, Some(1 << 20))));
        disk.take_all_but(20 << 20);
        eventually("data is refused", &mut || !commit(&engine, 1, 30, Some(100)));
        let before = files(directory.path());
        for number in 0..20 {
            assert_eq!(flushes(), Err(StorageError::Full));
            assert!(commit(&engine, 1, 100 * round + number, None), "delete {number}");
        }
        assert_eq!(files(directory.path()), before);
        disk.give_back();
        eventually("it goes on", &mut || commit(&engine, 1, 30, Some(100)));
        eventually("it is flushed", &mut || flushes().is_ok());
        assert!(files(directory.path()) > 0);
    }
    engine.close().unwrap();
}

/// What a dropped collection frees is the room that the flush needs.
#[cfg(unix)]
#[test]
fn a_dropped_collection_makes_room_for_a_flush() {
    let directory = TempDir::new().unwrap();
    let (disk, options) = SmallDisk::options(directory.path());
    let engine = open(directory.path(), options).unwrap().engine;
    assert!((0..40).all(|number| commit(&engine, 1, number, Some(1 << 20))));
    engine.maintenance(Maintenance::Flush).unwrap();
    assert!((0..24).all(|number| commit(&engine, 2, number, Some(1 << 20))));
    disk.take_all_but(20 << 20);
    eventually("data is refused", &mut || !commit(&engine, 2, 30, Some(100)));
    engine.drop_range(Space::Doc, &key(1, 0), &key(2, 0)).unwrap();
    eventually("it is flushed", &mut || {
        assert!(commit(&engine, 2, 40, None), "a delete is refused");
        engine.maintenance(Maintenance::Flush).is_ok()
    });
    eventually("its space is free", &mut || engine.stats().ranges_dropped == 0);
    let snapshot = engine.snapshot().unwrap();
    assert_eq!(numbers(&*snapshot, Space::Doc, 1).len(), 0);
    assert!(numbers(&*snapshot, Space::Doc, 2).iter().take(24).copied().eq(0..24));
    drop(snapshot);
    engine.close().unwrap();
}
