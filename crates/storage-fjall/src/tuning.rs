//! The sizes with which fjall keeps each space: what an open gives to fjall, and what those read who
//! write tables or count memory themselves.

use quire_storage::Space;

/// The memtable size of a space: what is written most gets most.
pub(crate) const fn memtable_bytes(space: Space) -> u64 {
    match space {
        Space::Meta => 8 << 20,
        Space::Doc => 32 << 20,
        Space::Idx | Space::Log => 16 << 20,
    }
}

/// The block size of a space. Index entries are small and looked up one by one. Documents are also
/// scanned, and every block that a scan comes to costs it two searches; 32 KiB is what WiredTiger
/// reads at a time, too.
pub(crate) const fn block_bytes(space: Space) -> u32 {
    match space {
        Space::Doc => 32 << 10,
        Space::Meta | Space::Idx | Space::Log => 4 << 10,
    }
}

/// After how many keys of a block one is written in full. A document's key is nothing beside the
/// document: written in full it is read where it stands, a shortened one is put together in memory
/// of its own for each document of a scan.
pub(crate) const fn restart_interval(space: Space) -> u8 {
    match space {
        Space::Doc => 1,
        Space::Meta | Space::Idx | Space::Log => 16,
    }
}

/// Tables are cut at this size: small enough that a dropped collection frees most of its own.
pub(crate) const TABLE_BYTES: u64 = 32 << 20;
