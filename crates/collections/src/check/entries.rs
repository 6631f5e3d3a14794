//! Looks up the entries of indexes one by one, where an index differs from the expected entries,
//! and repairs them.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::Index;
use quire_catalog::key::Arena;
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Snapshot, Space, begin};

use super::walks::{walk, walk_documents};
use super::{Checker, Documents};
use crate::clashes::entry_range;
use crate::entry::{EntryKeys, split_entry};
use crate::failure::from_storage;
use crate::findings::{Problem, Repair};
use crate::layout::doc_key;
use crate::{RecordId, StoredDoc};

/// The number of writes of a repair in one commit.
const REPAIR_CHUNK: usize = 1000;

/// An index whose entries must be looked up.
pub(super) struct Doubt {
    pub index: Arc<Index>,
    /// The number of expected entries, if the index has none at all.
    pub lost: Option<u64>,
}

/// Index entries to delete, and then to write: a unique key may change its owner.
#[derive(Default)]
pub(super) struct Repairs {
    deletes: Vec<Bytes>,
    puts: Vec<(Bytes, Bytes)>,
    /// Entries to write whose keys are free, so that they need not wait for the deletes.
    vacant: Vec<(Bytes, Bytes)>,
}

impl Checker<'_> {
    /// Finds missing and surplus entries of these indexes.
    pub(super) fn look_up(
        &mut self,
        snapshot: &dyn Snapshot,
        doubts: &mut [Doubt],
        documents: &Documents,
    ) -> Result<Repairs> {
        let mut repairs = Repairs::default();
        if doubts.is_empty() {
            return Ok(repairs);
        }
        let (collection, interrupt) = (self.collection, self.interrupt);
        walk_documents(snapshot, collection, interrupt, |id, value| {
            if documents.bad.contains(&id) {
                return Ok(());
            }
            let doc = StoredDoc::decode(value.clone())?;
            for doubt in doubts.iter_mut() {
                self.look_up_document(snapshot, doubt, id, &doc, &mut repairs)?;
            }
            if repairs.vacant.len() >= REPAIR_CHUNK {
                let vacant = std::mem::take(&mut repairs.vacant);
                self.write(Repairs { vacant, ..Repairs::default() })?;
            }
            Ok(())
        })?;
        for doubt in doubts.iter() {
            self.check_index(snapshot, &doubt.index, documents, &mut repairs)?;
        }
        Ok(repairs)
    }

    /// Checks that every key of the document is in the index.
    fn look_up_document(
        &mut self,
        snapshot: &dyn Snapshot,
        doubt: &mut Doubt,
        id: RecordId,
        doc: &StoredDoc,
        repairs: &mut Repairs,
    ) -> Result<()> {
        let index = &doubt.index;
        // A document whose keys cannot be generated was reported before.
        let arena = Arena::new();
        let Ok(generated) = index.keys.generate(doc.as_doc(), &arena) else { return Ok(()) };
        let mut keys = EntryKeys::default();
        keys.encode(index, &generated)?;
        for at in 0..keys.len() {
            let (key, value) = keys.stored(index, at, id);
            if let Some(missing) = &mut doubt.lost {
                *missing += 1;
                repairs.vacant.push((key, value));
                continue;
            }
            match snapshot.get(Space::Idx, &key).map_err(from_storage)? {
                Some(found) if found == value => {}
                Some(other) if index.unique && other.get(..8) != value.get(..8) => {
                    let name = &index.name;
                    let problem = format!("record {id} shares a key of unique index {name}");
                    self.find(problem, Problem::Index(name.clone()), false);
                }
                _ => {
                    let name = &index.name;
                    let problem = format!("record {id} lacks an entry in {name}");
                    let what = Problem::MissingEntry { index: name.clone(), record: id };
                    self.find(problem, what, self.repair == Repair::All);
                    repairs.puts.push((key, value));
                }
            }
        }
        Ok(())
    }

    /// Checks that every entry belongs to a document that has its key.
    fn check_index(
        &mut self,
        snapshot: &dyn Snapshot,
        index: &Index,
        documents: &Documents,
        repairs: &mut Repairs,
    ) -> Result<()> {
        let (start, end) = entry_range(index);
        let mut keys = EntryKeys::default();
        walk(snapshot, Space::Idx, start, &end, self.interrupt, |key, value| {
            let record = split_entry(index.unique, key, value).ok().map(|(_, id, _)| id);
            let problem = match record {
                None => Some(format!("{} holds an entry that is none", index.name)),
                Some(id) if documents.bad.contains(&id) || documents.unreadable.contains(id) => {
                    None
                }
                Some(id) => self.surplus(snapshot, index, key, id, &mut keys)?,
            };
            if let Some(problem) = problem {
                let what = Problem::SurplusEntry { index: index.name.clone(), record };
                self.find(problem, what, self.repair == Repair::All);
                repairs.deletes.push(key.clone());
            }
            Ok(())
        })
    }

    /// Returns why an index should not contain this key of a record; `None` if it should.
    fn surplus(
        &self,
        snapshot: &dyn Snapshot,
        index: &Index,
        key: &Bytes,
        id: RecordId,
        keys: &mut EntryKeys,
    ) -> Result<Option<String>> {
        let doc_key = doc_key(self.collection.id, id);
        let doc = snapshot.get(Space::Doc, &doc_key).map_err(from_storage)?;
        let Some(doc) = doc.map(StoredDoc::decode).transpose()? else {
            return Ok(Some(format!("{} points to record {id}, which is gone", index.name)));
        };
        let arena = Arena::new();
        let has = match index.keys.generate(doc.as_doc(), &arena) {
            Ok(generated) => {
                keys.encode(index, &generated)?;
                (0..keys.len()).any(|at| keys.stored(index, at, id).0 == *key)
            }
            Err(_) => false,
        };
        let problem = || format!("{} holds a key that record {id} does not have", index.name);
        Ok((!has).then(problem))
    }

    /// Writes the repairs, if a repair was requested.
    pub(super) fn write(&mut self, repairs: Repairs) -> Result<()> {
        if self.repair != Repair::All {
            return Ok(());
        }
        let deletes = repairs.deletes.into_iter().map(|key| (key, None));
        let puts = repairs.puts.into_iter().chain(repairs.vacant);
        let puts = puts.map(|(key, value)| (key, Some(value)));
        let mut writes = deletes.chain(puts).peekable();
        let ids = self.store.record_ids(self.collection.id)?;
        let id_index = self.collection.indexes.iter().find(|index| index.is_id());
        let of_id = id_index.map(|index| index.id.to_bytes());
        while writes.peek().is_some() {
            let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
            for (key, value) in writes.by_ref().take(REPAIR_CHUNK) {
                if of_id.is_some_and(|prefix| key.starts_with(&prefix)) {
                    ids.raise_greatest_id(&key);
                }
                match value {
                    Some(value) => txn.put(Space::Idx, key, value),
                    None => txn.delete(Space::Idx, key),
                }
                .map_err(from_storage)?;
            }
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
        }
        Ok(())
    }
}
