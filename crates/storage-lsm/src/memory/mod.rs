//! The rows that are in no table yet. A memtable is a B-tree with every version of a key; one writer
//! fills it, any number of snapshots read it. All of it is lost in a crash and comes back from the
//! log.

pub(crate) mod key_filter;
pub(crate) mod memtable;
pub(crate) mod row_tree;
