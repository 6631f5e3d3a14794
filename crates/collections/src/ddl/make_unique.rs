//! Converts an index with `prepareUnique` to a unique one, for `collMod`. A unique index stores its
//! entries in another format, so a successor is built while reads and writes continue, and replaces
//! the index.

use std::sync::Arc;

use quire_catalog::{Index, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::IndexChoice;
use super::modify_index::find;
use crate::Store;

/// Which index to convert, and how.
#[derive(Debug, Clone)]
pub struct MakeUnique {
    /// The index to convert, by name or by key pattern.
    pub index: IndexChoice,
    /// True to only report duplicates.
    pub dry_run: bool,
}

impl Store {
    /// Converts an index with `prepareUnique` to a unique one. Returns false if nothing changed:
    /// the index is unique already, or `dry_run` is set.
    ///
    /// # Errors
    /// 72 InvalidOptions without `prepareUnique`, 359 CannotConvertIndexToUnique with the
    /// duplicates, 117 ConflictingOperationInProgress if another command converts the index, the
    /// errors of [`modify_collection`](Self::modify_collection) about the index's name, and 276
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
            let old = index.id;
            let (announced, side) = self.announce_successors(namespace, |collection| {
                let index = collection.index_by_id(old).ok_or_else(super::index_build::aborted)?;
                check_prepared(index)?;
                Ok(vec![index.spec.converted()])
            })?;
            match self.run_build(&announced, side, interrupt, options) {
                Ok(()) => return Ok(true),
                // `prepareUnique` was removed meanwhile: the current options of the index decide.
                Err(error) if error.code() == ErrorCode::DuplicateKey => {}
                Err(error) => return Err(error),
            }
        }
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
