//! A cache from `_id` to record id, so that a point read usually needs no look-up in the `_id`
//! index. A result is always checked against the document itself, so it may be stale or belong to
//! another key.

use std::sync::atomic::{AtomicU64, Ordering};

use quire_catalog::CollectionId;
use twox_hash::XxHash3_64;

use crate::RecordId;

const SLOTS: usize = 1 << 16;
const RECORD_BITS: u32 = 48;

/// Slots with 16 bits of hash and 48 bits of record id; 512 KiB, allocated as it fills.
pub(crate) struct IdCache {
    slots: Box<[AtomicU64]>,
}

impl IdCache {
    pub(crate) fn new() -> Self {
        IdCache { slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Returns the record that had this encoded `_id` at the last look-up.
    pub(crate) fn get(&self, collection: CollectionId, key: &[u8]) -> Option<RecordId> {
        let hash = hash(collection, key);
        let slot = self.slots[slot_of(hash)].load(Ordering::Relaxed);
        let record = slot & ((1 << RECORD_BITS) - 1);
        (record != 0 && slot >> RECORD_BITS == hash >> RECORD_BITS).then_some(RecordId(record))
    }

    pub(crate) fn put(&self, collection: CollectionId, key: &[u8], id: RecordId) {
        if id.0 >> RECORD_BITS == 0 {
            let hash = hash(collection, key);
            let tag = hash >> RECORD_BITS << RECORD_BITS;
            self.slots[slot_of(hash)].store(tag | id.0, Ordering::Relaxed);
        }
    }
}

fn hash(collection: CollectionId, key: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(collection.0), key)
}

fn slot_of(hash: u64) -> usize {
    hash as usize & (SLOTS - 1)
}
