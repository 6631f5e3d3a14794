//! The head of a collection that documents leave in the order of insertion, such as a ring: the first
//! record. It is the stored low-water mark, which each insert into such a collection writes.

use bytes::Bytes;
use quire_catalog::{Collection, CollectionId, low_water_key};
use quire_storage::{Snapshot, Space};

use super::Writer;
use crate::RecordId;
use crate::failure::Attempt;
use crate::layout::low_water_of;

impl Writer {
    /// Stores the record before which the collection has no documents. The commit conflicts with
    /// every other one that stores it.
    pub(super) fn store_head(&mut self, collection: &Collection, head: RecordId) -> Attempt<()> {
        let key = Bytes::copy_from_slice(&low_water_key(collection.id));
        let value = Bytes::copy_from_slice(&head.0.to_be_bytes());
        self.txn.put(Space::Meta, key, value)?;
        self.taken(collection)?.moves_head = true;
        Ok(())
    }

    /// Notes each head that this commit stores. It is read again, because a rollback may have undone
    /// a later one.
    pub(super) fn note_heads(&mut self) -> Attempt<()> {
        for taken in self.taken.iter_mut().filter(|taken| taken.moves_head) {
            let key = low_water_key(CollectionId(taken.collection));
            let stored = self.txn.get(Space::Meta, &key)?;
            taken.head = stored.map(|value| low_water_of(&value)).transpose()?;
        }
        Ok(())
    }
}
