//! Crashes and faults on the simulated disk, from seeds. Everything acknowledged as synced
//! survives, the surviving commits are a prefix of the history, and the counters agree with the
//! documents.

use std::sync::Arc;

use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, CommitOptions, Crash, Engine, Faults, Interrupt, Maintenance, Mode, Page, ScanRequest,
    SimulatedDisk, Space, StorageError, begin, open_memory,
};

/// Commits document `n` with its index entry, its change record and the counters.
fn insert(engine: &Arc<dyn Engine>, n: u64, synced: bool) -> Result<u64, StorageError> {
    let options = if synced { CommitOptions::synced() } else { CommitOptions::buffered() };
    let key = Bytes::from(n.to_be_bytes().to_vec());
    let mut txn = begin(engine, Mode::Write)?;
    txn.insert(Space::Doc, key.clone(), Bytes::from_static(b"document"), 0)?;
    txn.put_entry(Space::Idx, key.clone(), Bytes::new())?;
    txn.append_log(key);
    txn.add_counts(1, 1, 8);
    Ok(txn.commit(options)?.version.as_u64())
}

fn numbers(engine: &Arc<dyn Engine>, space: Space) -> Vec<u64> {
    let mut page = Page::default();
    let snapshot = engine.snapshot().unwrap();
    let request = ScanRequest::new(space, b"", b"").rows_max(usize::MAX);
    snapshot.scan(&request, &mut page).unwrap();
    assert!(page.resume.is_none());
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
    page.rows
        .iter()
        .map(|(key, value)| match space {
            Space::Log => number(&value[8..]),
            _ => number(key),
        })
        .collect()
}

/// Checks that documents, entries, change records and counters agree and have no gap. Returns their
/// number.
fn check_whole(engine: &Arc<dyn Engine>) -> u64 {
    let documents = numbers(engine, Space::Doc);
    let count = documents.len() as u64;
    assert_eq!(documents, (0..count).collect::<Vec<_>>(), "a hole in history");
    assert_eq!(numbers(engine, Space::Idx), documents);
    assert_eq!(numbers(engine, Space::Log), documents);
    let counts = engine.counts(1);
    assert_eq!((counts.documents, counts.bytes), (count, count * 8));
    count
}

fn crash_loop(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut disk = SimulatedDisk::new(Faults::none(seed));
    let (mut next, mut acknowledged, mut version) = (0, 0, 0);
    for _ in 0..30 {
        let engine = disk.open().unwrap();
        next = check_whole(&engine);
        assert!(next >= acknowledged, "seed {seed}: a synced commit was lost");
        assert!(engine.version().as_u64() >= version, "seed {seed}: versions went back");
        let mut time = engine.cluster_time();
        for _ in 0..rng.below(20) {
            let synced = rng.one_in(4);
            disk.clock().set_ms(1_600_000_000_000 + rng.below(200_000_000_000));
            version = match insert(&engine, next, synced) {
                Ok(done) => done,
                Err(StorageError::Conflict(_)) => continue,
                Err(other) => panic!("{other}"),
            };
            next += 1;
            assert!(engine.cluster_time() > time, "seed {seed}: time went back");
            time = engine.cluster_time();
            if synced {
                acknowledged = next;
            }
            if rng.one_in(8) {
                engine.maintenance(Maintenance::Tick).unwrap();
                acknowledged = next;
            }
        }
        let how = [Crash::Process, Crash::Power, Crash::TornTail][rng.below(3) as usize];
        let unsynced = disk.unsynced();
        let lost = disk.crash(how);
        match how {
            Crash::Process => assert_eq!(lost, 0),
            Crash::Power => assert!(lost <= unsynced),
            Crash::TornTail => assert!(lost > 0 || unsynced == 0),
        }
        if lost > 0 {
            version = 0;
        }
    }
    assert!(next >= acknowledged);
}

#[test]
fn nothing_synced_is_lost_and_history_has_no_holes() {
    for seed in 0..100 {
        crash_loop(seed);
    }
}

#[test]
fn a_failed_write_or_fsync_poisons_the_engine_for_good() {
    for after in 0..12 {
        let mut disk = SimulatedDisk::new(Faults::none(after));
        disk.set_faults(Faults { io_error_after: Some(after), ..Faults::none(after) });
        let engine = disk.open().unwrap();
        let mut acknowledged = 0;
        let failure = loop {
            match insert(&engine, acknowledged, acknowledged % 2 == 0) {
                Ok(_) => acknowledged += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(failure, StorageError::OutcomeUnknown(_)), "{failure}");
        let refused = insert(&engine, acknowledged, true);
        assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
        assert!(matches!(engine.health(), Err(StorageError::Unavailable(_))));
        assert_eq!(numbers(&engine, Space::Doc).len() as u64, acknowledged, "reads go on");
        disk.crash(Crash::Process);
        let engine = disk.open().unwrap();
        // The failed commit may survive: its batch was written, but its fsync failed.
        let count = check_whole(&engine);
        assert!(count == acknowledged || count == acknowledged + 1);
    }
}

/// The commit returned `Io`, as if nothing had been written.
#[test]
fn a_visible_commit_whose_fsync_fails_has_an_unknown_outcome() {
    for how in [Crash::Process, Crash::Power] {
        let mut disk = SimulatedDisk::new(Faults::none(3));
        let engine = disk.open().unwrap();
        insert(&engine, 0, true).unwrap();
        // A writer that waits in a line for a key makes the group visible before it is on disk.
        let place = engine.join_line(7, &Interrupt::new());
        disk.set_faults(Faults { io_error_after: Some(1), ..Faults::none(3) });
        let failure = insert(&engine, 1, true).unwrap_err();
        assert!(matches!(failure, StorageError::OutcomeUnknown(_)), "{failure}");
        assert_eq!(numbers(&engine, Space::Doc), [0, 1]);
        engine.leave_line(place);
        let refused = insert(&engine, 2, true);
        assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
        disk.crash(how);
        let count = check_whole(&disk.open().unwrap());
        assert!(count == 2 || (count == 1 && how == Crash::Power), "{count}");
    }
}

#[test]
fn injected_conflicts_change_nothing_but_the_number_of_attempts() {
    let disk = SimulatedDisk::new(Faults { conflict_one_in: 3, ..Faults::none(5) });
    let engine = disk.open().unwrap();
    for n in 0..200 {
        while let Err(error) = insert(&engine, n, false) {
            assert!(matches!(error, StorageError::Conflict(_)), "{error}");
        }
    }
    assert_eq!(check_whole(&engine), 200);
    assert!(engine.stats().conflicts > 20);
}

#[test]
fn cluster_time_follows_the_clock_and_never_goes_back() {
    let disk = SimulatedDisk::new(Faults::none(1));
    let engine = disk.open().unwrap();
    disk.clock().set_ms(5_000_000);
    insert(&engine, 0, false).unwrap();
    let first = engine.cluster_time();
    assert_eq!((first.secs(), first.increment()), (5_000, 1));
    insert(&engine, 1, false).unwrap();
    assert_eq!(engine.cluster_time().increment(), 2);
    disk.clock().set_ms(4_000_000);
    insert(&engine, 2, false).unwrap();
    assert_eq!((engine.cluster_time().secs(), engine.cluster_time().increment()), (5_000, 3));
    disk.clock().advance_ms(2_000_000);
    insert(&engine, 3, false).unwrap();
    assert_eq!((engine.cluster_time().secs(), engine.cluster_time().increment()), (6_000, 1));
}

#[test]
fn a_group_is_one_fsync() {
    let engine = open_memory().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..200u64 {
                    insert(engine, thread * 1000 + round, true).unwrap();
                }
            });
        }
    });
    let stats = engine.stats();
    assert_eq!(stats.commits, 1600);
    assert_eq!(stats.fsyncs, stats.groups);
}
