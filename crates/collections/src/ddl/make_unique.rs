//! `collMod` on an index with `prepareUnique`: it becomes unique. Entries of a unique index are stored
//! in another way, so a successor is built while reads and writes go on, and replaces the index.

use std::sync::Arc;

use quire_catalog::{Collection, Index, IndexId, IndexState, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::builds::OpenSide;
use super::modify_index::find;
use super::{IndexChoice, next_epoch, put_collection, take_id};
use crate::{Store, is_in_doubt};

/// The index to convert, and whether only to look for duplicates.
#[derive(Debug, Clone)]
pub struct MakeUnique {
    /// The index to convert, by name or by key pattern.
    pub index: IndexChoice,
    /// Report duplicates, and convert nothing.
    pub dry_run: bool,
}

impl Store {
    /// Converts an index with `prepareUnique` to a unique one. Returns false if nothing changed: it
    /// is unique already, or the run is dry.
    ///
    /// # Errors
    /// 72 InvalidOptions without `prepareUnique`, 359 CannotConvertIndexToUnique with the
    /// duplicates, 117 ConflictingOperationInProgress if another command converts the index,
    /// what [`modify_index`](Self::modify_index) answers about the index's name, and 276
    /// IndexBuildAborted if the index is dropped meanwhile.
    pub fn make_unique(
        self: &Arc<Self>,
        namespace: &Namespace,
        change: &MakeUnique,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<bool> {
        loop {
            let catalog = self.catalog();
            let collection = catalog.require(namespace)?;
            let index = find(collection, &change.index)?;
            if index.unique {
                return Ok(false);
            }
            check_prepared(index)?;
            self.violations(collection, index, interrupt)?.into_result()?;
            if change.dry_run {
                return Ok(false);
            }
            let (announced, side) = self.announce_successor(namespace, index.id)?;
            let running = self.begin_build(&announced, side, interrupt);
            match self.build_indexes(&announced, &running.build, options) {
                Ok(()) => {
                    running.committed();
                    return Ok(true);
                }
                Err(error) if is_in_doubt(&error) => return Err(error),
                Err(error) => {
                    let ids = &running.build.ids;
                    self.remove_indexes(namespace, ids, &CommitOptions::buffered())?;
                    // `prepareUnique` was taken away meanwhile: what the index is now decides.
                    if error.code() != ErrorCode::DuplicateKey {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Adds the unique index, to be built, behind the one that it will replace.
    fn announce_successor(
        self: &Arc<Self>,
        namespace: &Namespace,
        old: IndexId,
    ) -> Result<(Arc<Collection>, OpenSide<'_>)> {
        self.change_catalog(&CommitOptions::buffered(), |writer, catalog, next_id| {
            let collection = catalog.require(namespace)?;
            let index = collection.index_by_id(old).ok_or_else(super::index_build::aborted)?;
            check_prepared(index)?;
            if collection.indexes.iter().any(|other| other.id != old && other.name == index.name) {
                let text = format!("index {} is being converted to unique already", index.name);
                return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
            }
            let id = IndexId(take_id(next_id)?);
            let mut next = next_epoch(collection);
            let spec = index.spec.converted();
            next.indexes.push(Arc::new(Index::new(id, spec, IndexState::WriteOnly)));
            put_collection(writer, &next)?;
            let next = Arc::new(next);
            Ok((Some(catalog.with(Arc::clone(&next))), (next, self.builds.open(&[id]))))
        })
    }
}

fn check_prepared(index: &Index) -> Result<()> {
    match index.prepare_unique {
        true => Ok(()),
        false => {
            let text =
                "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.";
            Err(Error::new(ErrorCode::InvalidOptions, text))
        }
    }
}
