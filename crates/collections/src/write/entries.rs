//! The index entries of the documents that a writer inserts, changes and deletes.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::clustered::check_clustered_id;
use quire_catalog::key::{Arena, GeneratedKeys};
use quire_catalog::{Collection, Facts, FactsBuf, Index, IndexState};
use quire_document::{Doc, Value};
use quire_storage::{Snapshot, Space, StorageError};

use super::Writer;
use crate::RecordId;
use crate::clashes;
use crate::duplicate::duplicate_key_error;
use crate::entry::{EntryKeys, record_bytes, record_id_of_unique};
use crate::failure::Attempt;
use crate::layout::doc_key;
use crate::multikey::grow;
use crate::prepared;

/// Buffers that a writer reuses for each document.
#[derive(Default)]
pub(super) struct Scratch {
    old: EntryKeys,
    new: EntryKeys,
    removed: Vec<usize>,
    added: Vec<usize>,
}

impl Writer {
    /// Writes the entries of a new document in every index.
    pub(super) fn insert_entries(
        &mut self,
        collection: &Collection,
        id: RecordId,
        doc: Doc<'_>,
    ) -> Attempt<()> {
        let mut keys = std::mem::take(&mut self.scratch.new);
        let ended = collection
            .indexes
            .iter()
            .try_for_each(|index| self.add_document(collection, index, id, doc, &mut keys));
        self.scratch.new = keys;
        ended
    }

    /// Writes all entries of one document in one index.
    pub(crate) fn add_document(
        &mut self,
        collection: &Collection,
        index: &Arc<Index>,
        id: RecordId,
        doc: Doc<'_>,
        keys: &mut EntryKeys,
    ) -> Attempt<()> {
        let arena = Arena::new();
        let generated = index.keys.generate(doc, &arena)?;
        keys.encode(index, &generated)?;
        self.grow_facts(index, &generated, keys)?;
        if index.is_id() {
            if index.is_clustered() {
                check_clustered_id(doc.get("_id").unwrap_or(Value::Null))?;
            }
            if is_for_reads(collection, index) {
                self.store.id_cache().put(collection.id, keys.unique_key(index, 0), id);
            }
        }
        (0..keys.len())
            .try_for_each(|at| self.add_entry(collection, index, keys, at, &generated, id))
    }

    /// Deletes and adds the entries that an update changes, in every index.
    pub(super) fn update_entries(
        &mut self,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
        new: Doc<'_>,
    ) -> Attempt<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let ended = collection.indexes.iter().try_for_each(|index| {
            self.change_document(collection, index, id, old, new, &mut scratch)
        });
        self.scratch = scratch;
        ended
    }

    /// Deletes the entries of a document in every index.
    pub(super) fn delete_entries(
        &mut self,
        collection: &Collection,
        id: RecordId,
        old: Doc<'_>,
    ) -> Attempt<()> {
        let mut keys = std::mem::take(&mut self.scratch.old);
        let ended = collection.indexes.iter().try_for_each(|index| {
            let arena = Arena::new();
            let generated = index.keys.generate(old, &arena)?;
            keys.encode(index, &generated)?;
            (0..keys.len()).try_for_each(|at| self.delete_entry(index, &keys, at, id))
        });
        self.scratch.old = keys;
        ended
    }

    /// Deletes the entries of documents in one index.
    pub(super) fn delete_entries_of<'d>(
        &mut self,
        index: &Index,
        mut docs: impl Iterator<Item = (RecordId, Doc<'d>)>,
    ) -> Attempt<()> {
        let (mut keys, mut arena) = (std::mem::take(&mut self.scratch.old), Arena::new());
        let ended = docs.try_for_each(|(id, doc)| {
            arena.reset();
            let generated = index.keys.generate(doc, &arena)?;
            keys.encode(index, &generated)?;
            (0..keys.len()).try_for_each(|at| self.delete_entry(index, &keys, at, id))
        });
        self.scratch.old = keys;
        ended
    }

    /// Writes the current entries of a record whose keys writers noted while the index was being
    /// loaded. All notes are of this record; their keys do not contain it.
    pub(crate) fn settle_record(
        &mut self,
        collection: &Collection,
        index: &Arc<Index>,
        notes: &[(RecordId, Vec<u8>)],
        keys: &mut EntryKeys,
    ) -> Attempt<()> {
        let Some(id) = notes.first().map(|note| note.0) else { return Ok(()) };
        self.txn.guard(Space::Doc, &doc_key(collection.id, id));
        let doc = self.view().get(collection, id)?;
        let arena = Arena::new();
        let generated = match &doc {
            Some(doc) => index.keys.generate(doc.as_doc(), &arena)?,
            None => GeneratedKeys::default(),
        };
        keys.encode(index, &generated)?;
        for (_, key) in notes {
            match keys.find(key) {
                Some(at) => self.add_entry(collection, index, keys, at, &generated, id)?,
                None => self.remove_noted(index, key, id)?,
            }
        }
        Ok(())
    }

    /// Removes the entry with a key that the record had before, if it exists.
    fn remove_noted(&mut self, index: &Index, key: &[u8], id: RecordId) -> Attempt<()> {
        if !index.unique {
            let key = self.pieces.join([key, &record_bytes(id)]);
            return Ok(self.txn.delete_entry(Space::Idx, key)?);
        }
        let found = self.txn.get(Space::Idx, key)?;
        if found.map(|value| record_id_of_unique(&value)).transpose()? == Some(id) {
            self.txn.delete(Space::Idx, Bytes::copy_from_slice(key))?;
        }
        Ok(())
    }

    fn change_document(
        &mut self,
        collection: &Collection,
        index: &Arc<Index>,
        id: RecordId,
        old: Doc<'_>,
        new: Doc<'_>,
        scratch: &mut Scratch,
    ) -> Attempt<()> {
        if !index.keys.is_touched(old, new) {
            return Ok(());
        }
        let arena = Arena::new();
        let was = index.keys.generate(old, &arena)?;
        let becomes = index.keys.generate(new, &arena)?;
        scratch.old.encode(index, &was)?;
        scratch.new.encode(index, &becomes)?;
        self.grow_facts(index, &becomes, &scratch.new)?;
        let Scratch { old, new, removed, added } = scratch;
        EntryKeys::difference(old, new, removed, added);
        for at in removed.iter() {
            self.delete_entry(index, old, *at, id)?;
        }
        for at in added.iter() {
            self.add_entry(collection, index, new, *at, &becomes, id)?;
        }
        Ok(())
    }

    /// Stores facts about the entries that this writer's commit adds.
    pub(crate) fn add_facts(&mut self, index: &Index, facts: &FactsBuf) -> Attempt<()> {
        let arrays = facts.arrays.iter().map(String::as_str).collect();
        let facts = Facts { paths: &facts.paths, long_keys: facts.long_keys, arrays: &arrays };
        let grown = grow(&mut self.txn, index, &facts)?;
        self.grown.extend(grown);
        Ok(())
    }

    fn grow_facts(
        &mut self,
        index: &Index,
        generated: &GeneratedKeys<'_>,
        keys: &EntryKeys,
    ) -> Attempt<()> {
        if keys.has_long() || generated.multikey.iter().any(|bits| *bits != 0) {
            let facts = Facts {
                paths: &generated.multikey,
                long_keys: keys.has_long(),
                arrays: &generated.arrays,
            };
            let grown = grow(&mut self.txn, index, &facts)?;
            self.grown.extend(grown);
        }
        Ok(())
    }

    /// Returns the key and the value of an entry.
    fn cut(&mut self, keys: &EntryKeys, index: &Index, at: usize, id: RecordId) -> (Bytes, Bytes) {
        let record = record_bytes(id);
        let (key, value) = keys.parts(index, at, &record);
        (self.pieces.join(key), self.pieces.join(value))
    }

    fn add_entry(
        &mut self,
        collection: &Collection,
        index: &Index,
        keys: &EntryKeys,
        at: usize,
        generated: &GeneratedKeys<'_>,
        id: RecordId,
    ) -> Attempt<()> {
        if index.loading {
            self.store.builds.note(index.id, id, keys.unique_key(index, at));
            return Ok(());
        }
        let (key, value) = self.cut(keys, index, at, id);
        if !index.unique {
            if index.prepare_unique && index.state == IndexState::Ready {
                let claim = keys.unique_key(index, at);
                if prepared::is_taken(&mut self.txn, claim, id)? {
                    let values = generated.keys().nth(keys.source(at)).unwrap_or(&[]);
                    return Err(duplicate_key_error(collection, index, values).into());
                }
            }
            return Ok(self.txn.put_entry(Space::Idx, key, value)?);
        }
        let is_new =
            is_for_reads(collection, index) && self.is_greatest_id(collection, index.id, &key)?;
        let tag = u64::from(index.id.0);
        let ended = match is_new {
            true => self.txn.insert_new(Space::Idx, key, value, tag),
            false => self.txn.insert(Space::Idx, key, value, tag),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(StorageError::Duplicate(_)) => {
                let (key, value) = keys.stored(index, at, id);
                // Only a build can find its own entry here, after a write has added it.
                let other = self.txn.get(Space::Idx, &key)?;
                if other.map(|value| record_id_of_unique(&value)).transpose()? == Some(id) {
                    return Ok(self.txn.put(Space::Idx, key, value)?);
                }
                if index.state == IndexState::WriteOnly {
                    return clashes::note(&mut self.txn, index.id, id);
                }
                let source = keys.source(at);
                let values = generated.keys().nth(source).unwrap_or(&[]);
                Err(duplicate_key_error(collection, index, values).into())
            }
            Err(other) => Err(other.into()),
        }
    }

    fn delete_entry(
        &mut self,
        index: &Index,
        keys: &EntryKeys,
        at: usize,
        id: RecordId,
    ) -> Attempt<()> {
        if index.loading {
            self.store.builds.note(index.id, id, keys.unique_key(index, at));
            return Ok(());
        }
        let key = self.pieces.join(keys.parts(index, at, &record_bytes(id)).0);
        if !index.unique {
            return Ok(self.txn.delete_entry(Space::Idx, key)?);
        }
        if index.state == IndexState::WriteOnly {
            // The build may not have processed a note about it yet, and another document may have
            // the key.
            let found = self.txn.get(Space::Idx, &key)?;
            if found.map(|value| record_id_of_unique(&value)).transpose()? != Some(id) {
                // If the build processes it before this commit, it must not leave the entry behind.
                self.txn.guard(Space::Idx, &key);
                return Ok(());
            }
        }
        Ok(self.txn.delete(Space::Idx, key)?)
    }
}

/// Returns true if this is the `_id` index in use, and not one that is being built to replace it.
fn is_for_reads(collection: &Collection, index: &Index) -> bool {
    index.is_id() && collection.id_index().is_some_and(|used| used.id == index.id)
}
