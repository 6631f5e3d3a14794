//! The functions for readers of the change records: the durable version, the search by time, and the
//! beginning of the records.

use std::sync::Arc;

use quire_storage::committer::split_log_key;
use quire_storage::rng::Rng;
use quire_storage::{
    Bytes, ClusterTime, CommitOptions, Crash, Engine, Faults, Maintenance, Mode, Page, ScanRequest,
    SimulatedDisk, Space, Version, begin, seek_log,
};

fn append(engine: &Arc<dyn Engine>, options: CommitOptions) -> Version {
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.append_log(Bytes::from_static(b"first"));
    txn.append_log(Bytes::from_static(b"second"));
    txn.commit(options).unwrap().version
}

/// Returns key and cluster time of each record.
fn records(engine: &Arc<dyn Engine>) -> Vec<(Bytes, ClusterTime)> {
    let mut page = Page::default();
    let request = ScanRequest::new(Space::Log, b"", b"").rows_max(usize::MAX);
    engine.snapshot().unwrap().scan(&request, &mut page).unwrap();
    let time = |value: &Bytes| ClusterTime(u64::from_be_bytes(value[..8].try_into().unwrap()));
    page.rows.into_iter().map(|(key, value)| (key, time(&value))).collect()
}

#[test]
fn the_durable_version_is_what_a_power_cut_leaves() {
    let mut disk = SimulatedDisk::new(Faults::none(1));
    let engine = disk.open().unwrap();
    let synced = append(&engine, CommitOptions::synced());
    assert_eq!(engine.durable_version(), synced);
    let buffered = append(&engine, CommitOptions::buffered());
    assert_eq!((engine.durable_version(), engine.version()), (synced, buffered));
    engine.maintenance(Maintenance::Tick).unwrap();
    assert_eq!(engine.durable_version(), buffered);
    for _ in 0..20 {
        append(&engine, CommitOptions::buffered());
    }
    let durable = engine.durable_version();
    disk.crash(Crash::Power);
    assert!(disk.open().unwrap().version() >= durable);
}

/// The clock jumps in both directions, but the times still ascend, so that a record can be found by
/// its time.
#[test]
fn a_record_is_found_by_its_time() {
    let disk = SimulatedDisk::new(Faults::none(1));
    let engine = disk.open().unwrap();
    let mut rng = Rng::new(3);
    for _ in 0..200 {
        disk.clock().set_ms(1_000_000_000 + rng.below(5_000_000));
        match rng.below(3) {
            // A commit without a record.
            0 => {
                let mut txn = begin(&engine, Mode::Write).unwrap();
                txn.put(Space::Doc, Bytes::from_static(b"key"), Bytes::new()).unwrap();
                txn.commit(CommitOptions::buffered()).unwrap();
            }
            _ => drop(append(&engine, CommitOptions::buffered())),
        }
    }
    engine.truncate_log(Version::from_u64(40)).unwrap();
    let snapshot = engine.snapshot().unwrap();
    let is_left = |key: &Bytes| split_log_key(key).unwrap().0 >= 40;
    let left: Vec<_> = records(&engine).into_iter().filter(|(key, _)| is_left(key)).collect();
    assert!(left.is_sorted_by_key(|(_, time)| *time) && left.len() > 100);
    let around = left.iter().flat_map(|(_, time)| [time.0 - 1, time.0, time.0 + 1]);
    for time in around.chain([0, u64::MAX]).map(ClusterTime) {
        let expected = left.iter().find(|(_, found)| *found >= time).map(|(key, _)| key.clone());
        assert_eq!(seek_log(&*snapshot, engine.log_begins_at(), time).unwrap(), expected);
    }
}

#[test]
fn what_is_truncated_is_gone_for_good() {
    let mut disk = SimulatedDisk::new(Faults::none(1));
    let engine = disk.open().unwrap();
    let versions: Vec<Version> =
        (0..9).map(|_| append(&engine, CommitOptions::buffered())).collect();
    assert_eq!(engine.log_begins_at(), Version::from_u64(0));
    engine.truncate_log(versions[3]).unwrap();
    engine.truncate_log(versions[2]).unwrap();
    assert_eq!(engine.log_begins_at(), versions[3]);
    engine.truncate_log(versions[5]).unwrap();
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(records(&engine).len(), 8);
    disk.crash(Crash::Power);
    let engine = disk.open().unwrap();
    assert_eq!(engine.log_begins_at(), versions[5]);
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(records(&engine).len(), 8);
    // Truncation does not pass the next commit.
    engine.truncate_log(Version::from_u64(1000)).unwrap();
    let next = append(&engine, CommitOptions::buffered());
    assert!(engine.log_begins_at() <= next);
    engine.maintenance(Maintenance::Reclaim).unwrap();
    assert_eq!(records(&engine).len(), 2);
}
