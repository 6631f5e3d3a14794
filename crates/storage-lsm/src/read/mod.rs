//! Reads: a snapshot is a view and the number of the last batch that it sees. Scans and look-ups
//! decode rows in place, from memtables and from the blocks of tables.

pub(crate) mod held;
pub(crate) mod lookups;
pub(crate) mod range;
pub(crate) mod range_back;
pub(crate) mod range_source;
pub(crate) mod snapshot;
