//! The collection that a leaf reads, as the current view has it.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::View;
use quire_error::{Error, ErrorCode, Result};

use crate::env::Run;

/// The collection of a leaf. Each leaf resolves its own, so that a plan may read several.
pub(crate) struct Table {
    collection: Arc<Collection>,
    /// The generation of the run whose view it was resolved on; 0 before the first.
    generation: u64,
}

impl Table {
    pub fn new(collection: &Arc<Collection>) -> Self {
        Table { collection: Arc::clone(collection), generation: 0 }
    }

    /// Returns the collection as the run's view has it.
    ///
    /// # Errors
    /// 175 QueryPlanKilled if it was dropped or renamed.
    pub fn resolve(&mut self, run: &Run<'_>) -> Result<&Arc<Collection>> {
        if self.generation != run.generation {
            self.collection = same_collection(&run.view(), &self.collection)?;
            self.generation = run.generation;
        }
        Ok(&self.collection)
    }
}

/// Returns the collection in a newer view; 175 QueryPlanKilled if it was dropped or renamed.
fn same_collection(view: &View<'_>, old: &Arc<Collection>) -> Result<Arc<Collection>> {
    let found = view.catalog().lookup(&old.namespace).filter(|found| found.id == old.id);
    match found {
        Some(found) => Ok(Arc::clone(found)),
        None => Err(gone(view, old)),
    }
}

/// Returns the error of a plan whose collection no longer has its name.
#[cold]
fn gone(view: &View<'_>, old: &Collection) -> Error {
    let text = match view.catalog().by_id(old.id) {
        Some(renamed) => format!(
            "collection renamed from '{}' to '{}'. UUID {}",
            old.namespace, renamed.namespace, old.uuid
        ),
        None => format!("collection dropped. UUID {}", old.uuid),
    };
    Error::new(ErrorCode::QueryPlanKilled, text)
}
