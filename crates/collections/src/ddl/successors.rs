//! Indexes that are built to replace others of the same name. A successor follows the index that it
//! replaces in the list, and the commit that publishes it removes that one (`index_build.rs`).

use std::sync::Arc;

use quire_catalog::{Collection, Index, IndexId, IndexSpec, IndexState, Namespace};
use quire_document::DocBuf;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::{next_epoch, put_collection, take_id};
use crate::Store;
use crate::index_builds::OpenSide;

/// What `reIndex` replies.
#[derive(Debug, Clone)]
pub struct RebuiltIndexes {
    /// `nIndexesWas`: the indexes that the collection had.
    pub before: usize,
    /// `indexes`: the specifications of the current indexes.
    pub specs: Vec<DocBuf>,
}

impl Store {
    /// Builds all indexes of a collection again, while other clients read and write. The old
    /// indexes are used until the new ones replace them in one commit. Facts of the old ones about
    /// arrays and long keys are dropped if no document needs them any more.
    ///
    /// # Errors
    /// 26 NamespaceNotFound, 117 ConflictingOperationInProgress while an index is being built,
    /// 11000 DuplicateKey if documents have the same key in a unique index, and 276
    /// IndexBuildAborted if an index is dropped meanwhile. On an error the old indexes stay.
    pub fn rebuild_indexes(
        self: &Arc<Self>,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<RebuiltIndexes> {
        let (announced, side) = self.announce_successors(namespace, |collection| {
            Ok(collection.ready_indexes().map(|index| index.spec.clone()).collect())
        })?;
        let before = announced.index_count();
        self.run_build(&announced, side, interrupt, options)?;
        let catalog = self.catalog();
        let rebuilt = catalog.require(namespace)?;
        let specs = rebuilt.listed_indexes().map(|index| index.to_document()).collect();
        Ok(RebuiltIndexes { before, specs })
    }

    /// Announces indexes with the specifications that `specs` computes from the collection. Each
    /// has the name of an existing index.
    ///
    /// # Errors
    /// 26 NamespaceNotFound, 117 ConflictingOperationInProgress if one of the indexes is not ready
    /// or has a successor already, and the errors of `specs`.
    pub(super) fn announce_successors(
        self: &Arc<Self>,
        namespace: &Namespace,
        specs: impl Fn(&Collection) -> Result<Vec<IndexSpec>>,
    ) -> Result<(Arc<Collection>, OpenSide<'_>)> {
        self.change_catalog(&CommitOptions::buffered(), |writer, catalog, next_id| {
            let collection = catalog.require(namespace)?;
            let mut next = next_epoch(collection);
            let mut ids = Vec::new();
            for spec in specs(collection)? {
                let namesakes = collection.indexes.iter().filter(|index| index.name == spec.name);
                if namesakes.map(|index| index.state).ne([IndexState::Ready]) {
                    let text = format!("index {} is being built already", spec.name);
                    return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
                }
                let id = IndexId(take_id(next_id)?);
                next.indexes.push(Arc::new(Index::new(id, spec, IndexState::WriteOnly)));
                ids.push(id);
            }
            put_collection(writer, &next)?;
            let next = Arc::new(next);
            Ok((Some(catalog.with(Arc::clone(&next))), (next, self.builds.open(&ids))))
        })
    }
}
