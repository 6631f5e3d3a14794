//! Tables of documents that begin where the layer above asks.

use quire_storage::{Bytes, CommitOptions, Maintenance, Mode, Space, begin};
use quire_storage_lsm::{LsmOptions, open};
use tempfile::TempDir;

use crate::support::key;

#[test]
fn a_table_begins_where_it_is_cut() {
    let directory = TempDir::new().unwrap();
    let engine = open(directory.path(), LsmOptions::default()).unwrap().engine;
    let mut number = 0;
    for _ in 0..3 {
        let first = number;
        while !engine.wants_cut() {
            let mut txn = begin(&engine, Mode::Write).unwrap();
            let value = Bytes::from(vec![7; 256 << 10]);
            txn.put(Space::Doc, key(1, number), value).unwrap();
            txn.commit(CommitOptions::buffered()).unwrap();
            number += 1;
        }
        // A new table begins neither at once nor only when the memtable is full.
        assert!((100..128).contains(&(number - first)), "{} documents", number - first);
        engine.cut_table().unwrap();
        assert!(!engine.wants_cut());
        engine.cut_table().unwrap();
        engine.maintenance(Maintenance::Flush).unwrap();
    }
    let tables = directory.path().join("data/keyspaces/2/tables");
    assert_eq!(std::fs::read_dir(tables).unwrap().count(), 3);
    engine.close().unwrap();
}
