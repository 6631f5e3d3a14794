//! The rows of a sealed memtable in the form in which lsm-tree writes them to a table.

use lsm_tree::{InternalValue, UserKey, UserValue, ValueType};
use quire_storage::Direction;

use crate::memtable::{Memtable, MemtableRows};

/// Returns the newest row of each key, in ascending order. Older versions are not written: a
/// snapshot that sees them keeps the memtable.
pub(crate) fn rows(memtable: &Memtable) -> impl Iterator<Item = InternalValue> {
    MemtableRows::new(memtable, u64::MAX, Direction::Forward, &[]).map(|row| {
        let kind = if row.value.is_some() { ValueType::Value } else { ValueType::Tombstone };
        let key = UserKey::from(row.key);
        let value = UserValue::from(row.value.unwrap_or_default());
        InternalValue::from_components(key, value, row.seqno, kind)
    })
}
