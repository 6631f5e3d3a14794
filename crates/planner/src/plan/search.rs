//! The search of an index, as the nodes of a plan share it.

use std::sync::Arc;

use quire_catalog::key::{SearchMethod, SearchScan};
use quire_catalog::{Collection, Index, MultikeyPaths};
use quire_mql::filter::{Node as Condition, Search};

use super::IndexScan;

/// A search of an index.
#[derive(Debug)]
pub struct SearchNode {
    /// The collection of the index.
    pub collection: Arc<Collection>,
    /// The index that is searched.
    pub index: Arc<Index>,
    /// The array paths that the plan relies on.
    pub multikey: MultikeyPaths,
    /// The test that the scans apply to each key.
    pub key_filter: Option<Condition>,
    /// The condition that the index answers.
    pub search: Arc<dyn Search>,
    /// How the index answers it.
    pub method: Arc<dyn SearchMethod>,
}

impl SearchNode {
    /// Returns the scan of a part of the index.
    pub fn scan(&self, part: SearchScan) -> IndexScan {
        IndexScan {
            bounds: part.bounds,
            backward: part.backward,
            filter: self.key_filter.clone(),
            ..IndexScan::whole(&self.collection, &self.index, self.multikey.clone())
        }
    }
}
