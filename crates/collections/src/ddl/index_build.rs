//! Fills announced indexes. First the entries of all documents are loaded (`index_load.rs`). Keys
//! that two records had meanwhile are checked again; then the indexes are published.

use std::sync::Arc;

use quire_catalog::{Catalog, Collection, IndexId, IndexState, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt, KeyTurn, Space};

use super::{drop_index_data, next_epoch, put_collection};
use crate::clashes;
use crate::entry::EntryKeys;
use crate::index_builds::{IndexBuild, OpenSide};
use crate::layout::doc_key;
use crate::write::Attempts;
use crate::{Attempt, ChunkSize, Failure, Store, Writer, WriterMode, is_in_doubt};

/// The number of documents, or of notes about them, in one step of a build.
pub(super) const CHUNK_ROWS: usize = 1000;

impl Store {
    /// Fills announced indexes and publishes them; removes them if that fails. They stay when the
    /// outcome of the publishing commit is unknown: the next start removes unfinished indexes.
    pub(super) fn run_build(
        self: &Arc<Self>,
        collection: &Collection,
        side: OpenSide<'_>,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<()> {
        let documents = self.counts(collection).documents;
        let running = self.builds.begin(self.new_uuid(), documents, side, interrupt);
        let build = &running.build;
        match self.build_indexes(collection, build, options) {
            Ok(()) => {
                running.committed();
                Ok(())
            }
            Err(error) if is_in_doubt(&error) => Err(error),
            Err(error) => {
                let Collection { namespace, uuid, .. } = collection;
                self.remove_indexes(namespace, &build.ids, &CommitOptions::buffered())?;
                let id = build.uuid;
                let what = format!("Index build failed: {id}: Collection {namespace} ( {uuid} )");
                Err(error.context(&what))
            }
        }
    }

    /// Fills the indexes and publishes them. On an error they stay announced.
    fn build_indexes(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        options: &CommitOptions,
    ) -> Result<()> {
        let IndexBuild { ids, interrupt, .. } = build;
        let gathered = self.gather_keys(collection, build)?;
        let facts = self.load_keys(collection, build, gathered)?;
        for (id, side) in self.hand_over(collection, build, &facts)? {
            self.settle_notes(collection, build, id, &side)?;
        }
        self.builds.note_scanned();
        loop {
            self.in_chunks(interrupt, |rows, turn| {
                self.settle_chunk(collection, build, rows, turn)
            })?;
            if self.publish_indexes(&collection.namespace, ids, options)? {
                return Ok(());
            }
        }
    }

    /// Calls `step` with a number of rows until it reports that nothing is left.
    pub(super) fn in_chunks(
        &self,
        interrupt: &Arc<Interrupt>,
        mut step: impl FnMut(usize, Option<&KeyTurn>) -> Attempt<bool>,
    ) -> Result<()> {
        let mut size = ChunkSize::new(CHUNK_ROWS);
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            match step(size.rows(), attempts.begin()?) {
                Ok(false) => return Ok(()),
                Ok(true) => {
                    size.won();
                    attempts = Attempts::new(self, interrupt);
                }
                Err(failure) => {
                    // Another writer changed a record of the chunk, or noted a clash meanwhile.
                    if matches!(failure, Failure::Conflict(_)) {
                        size.lost();
                    }
                    attempts.wait_after(failure)?;
                }
            }
        }
    }

    /// Writes the entries of records that had another record's key, after the build has read all
    /// documents. Returns false if there are none; 11000 DuplicateKey if the other record still has
    /// the key.
    fn settle_chunk(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        rows: usize,
        turn: Option<&KeyTurn>,
    ) -> Attempt<bool> {
        let IndexBuild { ids, interrupt, .. } = build;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let current = current(writer.catalog(), collection, ids)?;
        writer.guard(&current)?;
        let mut keys = EntryKeys::default();
        for id in ids {
            let noted = clashes::noted(writer.view().snapshot(), *id, rows)?;
            let Some(index) = current.index_by_id(*id).filter(|_| !noted.is_empty()) else {
                continue;
            };
            // With the checks of a ready index.
            let index = Arc::new(index.in_state(IndexState::Ready));
            for record in noted {
                writer.txn_mut().guard(Space::Doc, &doc_key(current.id, record));
                if let Some(doc) = writer.view().get(&current, record)? {
                    writer.add_document(&current, &index, record, doc.as_doc(), &mut keys)?;
                }
                clashes::settle(writer.txn_mut(), *id, record)?;
            }
        }
        let any = !writer.is_empty();
        writer.commit(CommitOptions::buffered().ended_by(interrupt))?;
        Ok(any)
    }

    /// Makes the indexes ready; a successor replaces the index with its name. Returns false if a
    /// clash was noted since the last check.
    fn publish_indexes(
        self: &Arc<Self>,
        namespace: &Namespace,
        ids: &[IndexId],
        options: &CommitOptions,
    ) -> Result<bool> {
        self.change_catalog(options, |writer, catalog, _| {
            let collection = catalog.lookup(namespace).ok_or_else(aborted)?;
            let mut next = next_epoch(collection);
            let mut found = 0;
            for index in next.indexes.iter_mut().filter(|index| ids.contains(&index.id)) {
                if index.unique {
                    if !clashes::noted(writer.view().snapshot(), index.id, 1)?.is_empty() {
                        return Ok((None, false));
                    }
                    clashes::close(writer.txn_mut(), index.id)?;
                }
                Arc::make_mut(index).state = IndexState::Ready;
                found += 1;
            }
            for id in ids {
                replace_predecessor(writer, &mut next, *id)?;
            }
            if found != ids.len() {
                return Err(aborted());
            }
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), true))
        })
    }

    /// Removes the indexes with these numbers that exist.
    pub(crate) fn remove_indexes(
        self: &Arc<Self>,
        namespace: &Namespace,
        ids: &[IndexId],
        options: &CommitOptions,
    ) -> Result<()> {
        self.change_catalog(options, |writer, catalog, _| {
            let Some(collection) = catalog.lookup(namespace) else { return Ok((None, ())) };
            let doomed: Vec<_> =
                collection.indexes.iter().filter(|index| ids.contains(&index.id)).collect();
            if doomed.is_empty() {
                return Ok((None, ()));
            }
            doomed.iter().try_for_each(|index| drop_index_data(writer, index))?;
            let mut next = next_epoch(collection);
            next.indexes.retain(|index| !ids.contains(&index.id));
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), ()))
        })
    }
}

/// Replaces the index with the same name, if there is one, by an index that has been built. It
/// takes over the options that were changed meanwhile.
fn replace_predecessor(
    writer: &mut Writer,
    collection: &mut Collection,
    id: IndexId,
) -> Result<()> {
    let Some(at) = collection.indexes.iter().position(|index| index.id == id) else {
        return Ok(());
    };
    let name = &collection.indexes[at].name;
    let Some(place) = collection.indexes.iter().position(|index| index.name == *name) else {
        return Ok(());
    };
    if place == at {
        return Ok(());
    }
    let new = collection.indexes.remove(at);
    let old = std::mem::replace(&mut collection.indexes[place], new);
    drop_index_data(writer, &old)?;
    let new = Arc::make_mut(&mut collection.indexes[place]);
    new.hidden = old.hidden;
    new.prepare_unique = old.prepare_unique && !new.unique;
    new.expire_after_seconds = old.expire_after_seconds;
    new.spec = match new.unique && !old.unique {
        true => old.spec.converted(),
        false => old.spec.clone(),
    };
    Ok(())
}

/// Returns the collection as a catalog has it, if the indexes are still announced.
pub(super) fn current(
    catalog: &Catalog,
    collection: &Collection,
    ids: &[IndexId],
) -> Result<Arc<Collection>> {
    let now = catalog.lookup(&collection.namespace).ok_or_else(aborted)?;
    if now.id != collection.id || ids.iter().any(|id| now.index_by_id(*id).is_none()) {
        return Err(aborted());
    }
    Ok(Arc::clone(now))
}

pub(super) fn aborted() -> Error {
    Error::new(
        ErrorCode::IndexBuildAborted,
        "the index build was aborted: the collection or the index was dropped",
    )
}
