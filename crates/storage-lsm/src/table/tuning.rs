//! The sizes of each space.

use quire_storage::Space;

use crate::table::cut::Cut;

/// Returns the size of a memtable, in bytes, from which on the store makes another one begin. Spaces
/// with more writes get larger memtables.
///
/// For documents it is far above `CUT_DUE_BYTES`, because a memtable that begins without a cut makes
/// tables overlap, and a writer that has begun makes no cut: several large groups of commits fit
/// in between.
pub(crate) const fn memtable_bytes(space: Space) -> u64 {
    match space {
        Space::Meta => 8 << 20,
        Space::Doc => 48 << 20,
        Space::Idx | Space::Log => 16 << 20,
    }
}

/// The size of the memtable of documents, in bytes, from which on the next writer makes another one
/// begin (`Store::cut`).
pub(crate) const CUT_DUE_BYTES: u64 = 28 << 20;

/// The bytes of the memtable of documents and of the one before it, from which on late rows end.
pub(crate) const LATE_BYTES_MAX: u64 = CUT_DUE_BYTES + memtable_bytes(Space::Doc);

/// Returns the size from which on a block of a space is ended, in bytes. Index entries are small and
/// looked up one by one. Documents are also scanned, and a scan pays two searches for every block;
/// 32 KiB is also the page size of WiredTiger. With the row that ends it, a block of documents mostly
/// fits into 32 KiB of memory; the next size of the allocator is 40 KiB.
pub(crate) const fn block_bytes(space: Space) -> u32 {
    match space {
        Space::Doc => 30 << 10,
        Space::Meta | Space::Idx | Space::Log => 4 << 10,
    }
}

/// Returns after how many keys of a block a key is written in full. A document's key is small
/// compared with the document: a key written in full is read in place, a shortened one must be put
/// together in separate memory for each document of a scan.
pub(crate) const fn restart_interval(space: Space) -> u8 {
    match space {
        Space::Doc => 1,
        Space::Meta | Space::Idx | Space::Log => 16,
    }
}

/// Returns the bits for each key in the filters of the tables of a level.
///
/// A new key of a unique index is looked up in every level, where a wrong answer of a filter costs
/// the read of a block. The first levels are small, so there more bits cost little memory (Dayan et
/// al., "Monkey: Optimal Navigable Key-Value Store", SIGMOD 2017).
pub(crate) const fn filter_bits(space: Space, level: u8) -> f32 {
    match (space, level) {
        (Space::Idx, 0) => 16.0,
        (Space::Idx, 1) => 14.0,
        _ => 10.0,
    }
}

/// The number of levels of a tree.
pub(crate) const LEVELS: u8 = 7;

/// The size at which tables are cut, in bytes: small enough that a dropped collection lies mostly
/// in tables of its own, which are dropped whole.
pub(crate) const TABLE_BYTES: u64 = 32 << 20;

/// The bytes of a table after which it is synced while it is being written. The sync takes the thread
/// some milliseconds. A table that is synced only at its end, as a whole, delays the small syncs of
/// the log until all of it is on the device.
pub(crate) const SYNC_BYTES: usize = 4 << 20;

/// The new documents of a collection in a memtable get tables of their own if they are at least this
/// many bytes.
pub(crate) const PART_BYTES: u64 = 4 << 20;

/// Where merges cut the tables that they write. `row_bytes` is the memory that a merge needs.
pub(crate) const CUT: Cut = Cut { file_bytes: TABLE_BYTES, row_bytes: 128 << 20 };
