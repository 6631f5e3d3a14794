//! What a writer takes from a collection: ids of new records, and what it knows of the greatest key of the
//! `_id` index. The ids that an unfinished writer has taken bound what a snapshot can lack; they are given
//! back with the commit, or when the writer is dropped.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, CollectionId, IndexId, low_water_key};
use quire_error::{Error, Result};
use quire_storage::{Committed, Space, StorageError};
use smallvec::SmallVec;

use super::Writer;
use crate::RecordId;
use crate::failure::Attempt;
use crate::low_water::RecordIds;

/// Record ids that this writer has taken from a collection.
pub(super) struct Taken {
    pub(super) collection: u32,
    ids: Arc<RecordIds>,
    floor: u64,
    inserted: bool,
    deleted: bool,
    /// True after [`Writer::store_head`].
    pub(super) moves_head: bool,
    /// The head that the commit stores.
    pub(super) head: Option<RecordId>,
    /// The `_id` index, after an entry of it was written.
    id_index: Option<IndexId>,
    /// A key that is not below any key of that index except this writer's own; `None` while it is
    /// unknown.
    greatest_id: Option<SmallVec<[u8; 32]>>,
}

impl Writer {
    pub(super) fn take_record_id(&mut self, collection: &Collection) -> Attempt<RecordId> {
        let taken = self.taken(collection)?;
        taken.inserted = true;
        Ok(taken.ids.take())
    }

    /// Returns true if a new entry of the `_id` index is above all others except those of this
    /// writer. The second entry of a writer makes it search for the greatest key, if that was not
    /// done before: for a single document a look-up of its own key costs less.
    pub(super) fn is_greatest_id(
        &mut self,
        collection: &Collection,
        index: IndexId,
        key: &[u8],
    ) -> Attempt<bool> {
        let taken = self.taken(collection)?;
        if let Some(greatest) = &taken.greatest_id {
            return Ok(key > &greatest[..]);
        }
        // The greatest key of the index that this one has replaced is not valid here.
        let known = |ids: &RecordIds| {
            ids.greatest_id().filter(|greatest| greatest.starts_with(&index.to_bytes()))
        };
        taken.greatest_id = known(&taken.ids);
        if taken.greatest_id.is_none() && taken.id_index.is_some() {
            let ids = Arc::clone(&taken.ids);
            // If the end of the index is damaged, each key is looked up.
            let _ = self.store.find_greatest_id(&ids, index);
            self.taken(collection)?.greatest_id = known(&ids);
        }
        let taken = self.taken(collection)?;
        taken.id_index = Some(index);
        Ok(taken.greatest_id.as_ref().is_some_and(|greatest| key > &greatest[..]))
    }

    pub(super) fn note_deleted(&mut self, collection: &Collection) -> Attempt<()> {
        self.taken(collection)?.deleted = true;
        Ok(())
    }

    pub(super) fn taken(&mut self, collection: &Collection) -> Attempt<&mut Taken> {
        let number = collection.id.0;
        let at = match self.taken.iter().position(|taken| taken.collection == number) {
            Some(at) => at,
            None => {
                let (ids, floor) = self.store.enter(collection.id)?;
                self.taken.push(Taken {
                    collection: number,
                    ids,
                    floor,
                    inserted: false,
                    deleted: false,
                    moves_head: false,
                    head: None,
                    id_index: None,
                    greatest_id: None,
                });
                self.taken.len() - 1
            }
        };
        self.taken
            .get_mut(at)
            .ok_or_else(|| Error::internal("a collection's record ids were lost").into())
    }

    /// Notes before the commit what it changes of the greatest keys and of the low-water marks.
    pub(super) fn note_ids(&mut self) -> Attempt<()> {
        for taken in &self.taken {
            let prefix = taken.id_index.map(IndexId::to_bytes);
            if let Some(key) = prefix.and_then(|id| self.txn.greatest_written(Space::Idx, id)) {
                taken.ids.raise_greatest_id(key);
            }
        }
        self.note_heads()?;
        for taken in self.taken.iter().filter(|taken| taken.deleted && !taken.moves_head) {
            if let Some(mark) = taken.ids.worth_storing() {
                let key = low_water_key(CollectionId(taken.collection));
                let value = Bytes::copy_from_slice(&mark.to_be_bytes());
                self.txn.put_entry(Space::Meta, Bytes::copy_from_slice(&key), value)?;
            }
        }
        Ok(())
    }
}

impl Taken {
    pub(super) fn finish(mut self, ended: &Result<Committed, StorageError>) {
        match ended {
            Ok(committed) => {
                self.end(Some(committed.version).filter(|_| self.inserted));
                if self.head.is_some() {
                    self.ids.saw_first(committed.version, self.head);
                }
            }
            // The writer stays registered as unfinished: its inserts may be visible.
            Err(StorageError::OutcomeUnknown(_)) => self.floor = 0,
            Err(_) => self.end(None),
        }
    }

    fn end(&mut self, committed: Option<quire_storage::Version>) {
        if self.floor != 0 {
            self.ids.leave(self.floor, committed);
            self.floor = 0;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.end(None);
    }
}
