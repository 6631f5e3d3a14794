//! Writes the batches of the log to the memtables again when a database is opened.

use std::fs::File;
use std::path::PathBuf;

use lsm_tree::AbstractTree;
use quire_storage::{Result, Space};

use crate::directory::damage::Damage;
use crate::log::journal::{self, Decoded};
use crate::store::Store;
use crate::table::trees::of_space;

/// Replays log files, the oldest first. `log_guard` has cut them before, so that every record in
/// them is intact. Rows that are in tables are skipped: every row of a batch up to the newest one in
/// any table of the space is in a table. `flush` sees to that.
pub(crate) fn replay(store: &Store, files: &[(u64, PathBuf)]) -> Result<()> {
    let persisted = Space::ALL.map(|space| store.trees.of(space).get_highest_persisted_seqno());
    for (number, path) in files {
        store.replayed_before(*number);
        let (bytes, length) = journal::read(path)?;
        let file = File::options().write(true).open(path)?;
        if bytes.len() < length {
            // The zeros would occupy space until the next flush.
            file.set_len(bytes.len() as u64)?;
        }
        // A table must not outlive the batches before it.
        file.sync_data()?;
        let mut at = 0;
        while let Some(batch) = journal::decode(&bytes, at) {
            let Decoded { seqno, mut ops, end } = batch;
            ops.retain(|op| of_space(&persisted, op.space).is_none_or(|last| seqno > last));
            store.restore(ops, seqno, *number)?;
            at = end;
        }
        if at < bytes.len() {
            return Err(Damage::new(path, "changed while it was read").into());
        }
    }
    store.replayed_before(u64::MAX);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use quire_storage::Op;

    use super::*;
    use crate::LsmOptions;
    use crate::store::Running;
    use crate::table::dropped::DroppedRanges;

    /// A flush can make all memtables empty before the next file is read.
    #[test]
    fn a_flush_during_a_replay_keeps_the_files_that_follow() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let op = |key: u8| {
            let (key, value) = (Bytes::from(vec![key]), Some(Bytes::from(vec![key; 100])));
            vec![Op { space: Space::Doc, key, value }]
        };
        let dropped = Arc::new(DroppedRanges::default());
        let options = LsmOptions::default();
        let open = |log| {
            let store = Store::open(data, &options, &dropped, log).unwrap();
            Running::start(store, 1).unwrap()
        };
        let running = open(1);
        let write = |key| running.store().write(op(key), true).unwrap();
        write(1);
        running.store().log.end_file().unwrap();
        write(2);
        drop(running);
        let logs = journal::numbered(data).unwrap();
        assert_eq!(logs.len(), 2);
        let running = open(3);
        let store = running.store();
        let (first, rest) = logs.split_first().unwrap();
        store.replayed_before(first.0);
        store.restore(op(1), 1, first.0).unwrap();
        store.flush(Space::Doc).unwrap();
        drop(running);
        assert!(rest[0].1.exists());
        let running = open(4);
        replay(running.store(), &logs).unwrap();
        let (view, seqno) = running.store().snapshot();
        for key in [1, 2] {
            let value = crate::read::lookups::get(view.of(Space::Doc), seqno, &[key]).unwrap();
            assert_eq!(value, Some(Bytes::from(vec![key; 100])));
        }
    }

    fn put(collection: u32, number: u64, bytes: usize) -> Op {
        let key = [collection.to_be_bytes().to_vec(), number.to_be_bytes().to_vec()].concat();
        let value = Some(Bytes::from(vec![7; bytes]));
        Op { space: Space::Doc, key: Bytes::from(key), value }
    }

    fn begin(data: &std::path::Path, log: u64) -> Running {
        let dropped = Arc::new(DroppedRanges::default());
        let store = Store::open(data, &LsmOptions::default(), &dropped, log).unwrap();
        Running::start(store, 1).unwrap()
    }

    fn has(running: &Running, op: &Op) -> bool {
        let (view, seqno) = running.store().snapshot();
        crate::read::lookups::get(view.of(Space::Doc), seqno, &op.key).unwrap().is_some()
    }

    /// Late rows are flushed before rows of earlier batches. A crash lost the earlier ones.
    #[test]
    fn a_crash_after_a_flush_of_late_rows_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let running = begin(data, 1);
        let store = running.store();
        store.write(vec![put(1, 1, 1000)], true).unwrap();
        store.cut(Space::Doc, |_| true, || vec![put(1, 0, 0).key..put(1, 10, 0).key]);
        store.write(vec![put(1, 20, 1000)], true).unwrap();
        store.write(vec![put(1, 5, 1000)], true).unwrap();
        store.end_late(Space::Doc, |_| true);
        while store.view().of(Space::Doc).memtables.len() > 1 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!store.view().of(Space::Doc).tables.runs.is_empty());
        drop(running);
        let running = begin(data, 2);
        replay(running.store(), &journal::numbered(data).unwrap()[..1]).unwrap();
        for number in [1, 20, 5] {
            assert!(has(&running, &put(1, number, 0)), "record {number}");
        }
    }

    /// The tables of a memtable are registered one after the other.
    #[test]
    fn a_crash_between_two_tables_of_a_memtable_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let running = begin(data, 1);
        let store = running.store();
        for number in 0..10 {
            let ops = (1..=3).map(|collection| put(collection, number, 1 << 20)).collect();
            store.write(ops, true).unwrap();
        }
        let tree = store.trees.of(Space::Doc);
        let view = store.view();
        let tables =
            crate::table::flush::write(tree, Space::Doc, view.of(Space::Doc).active(), u64::MAX)
                .unwrap();
        assert_eq!((tables.apart.len(), tables.rest.len()), (3, 0));
        tree.register_tables(&tables.apart[..1], None, None, &[], crate::table::trees::NO_SNAPSHOT)
            .unwrap();
        drop(view);
        drop(running);
        let running = begin(data, 2);
        replay(running.store(), &journal::numbered(data).unwrap()[..1]).unwrap();
        for number in 0..10 {
            assert!((1..=3).all(|collection| has(&running, &put(collection, number, 0))));
        }
    }
}
