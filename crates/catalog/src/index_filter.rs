//! Index filters (`planCacheSetFilter`): the indexes that the planner may choose from for requests
//! of one shape. They are kept in memory only, as in MongoDB.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use quire_document::{DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

use crate::Index;

/// The most index filters of one collection (2 BadValue beyond it). MongoDB has no limit.
pub const INDEX_FILTERS_MAX: usize = 1000;
/// The most bytes of BSON in all index filters of one collection (2 BadValue beyond it). MongoDB
/// has no limit.
pub const INDEX_FILTERS_BYTES_MAX: usize = 16 << 20;

/// An index that a filter allows. It need not exist.
#[derive(Debug, Clone, PartialEq)]
pub enum AllowedIndex {
    /// The index of that name.
    Name(String),
    /// The indexes with that key pattern.
    Pattern(DocBuf),
    /// No index: a scan of the collection, which only query settings can allow.
    Natural {
        /// True for a scan from the end.
        backward: bool,
    },
}

impl AllowedIndex {
    /// Returns true if it allows the index.
    pub fn allows(&self, index: &Index) -> bool {
        match self {
            AllowedIndex::Name(name) => index.name == *name,
            AllowedIndex::Pattern(pattern) => index.has_key(pattern.as_doc()),
            AllowedIndex::Natural { .. } => false,
        }
    }
}

/// The indexes that the planner may use for requests of one shape.
#[derive(Debug, Clone)]
pub struct IndexFilter {
    /// The shape of the requests, as the planner computes it.
    pub shape: u64,
    /// The filter from which the shape was computed.
    pub query: DocBuf,
    /// The sort from which the shape was computed.
    pub sort: DocBuf,
    /// The projection from which the shape was computed.
    pub projection: DocBuf,
    /// The collation as the user gave it; empty for the collection's collation.
    pub collation: DocBuf,
    /// The allowed indexes, in the order in which they were given.
    pub indexes: Vec<AllowedIndex>,
}

impl IndexFilter {
    /// Writes the filter as `planCacheListFilters` shows it.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        out.append("query", &self.query).append("sort", &self.sort);
        out.append("projection", &self.projection);
        if !self.collation.as_doc().is_empty() {
            out.append("collation", &self.collation);
        }
        let mut indexes = out.array("indexes");
        for allowed in &self.indexes {
            match allowed {
                AllowedIndex::Name(name) => indexes.push(name.as_str()),
                AllowedIndex::Pattern(pattern) => indexes.push(pattern),
                AllowedIndex::Natural { .. } => indexes.push("$natural"),
            };
        }
    }

    fn bytes(&self) -> usize {
        let parts = [&self.query, &self.sort, &self.projection, &self.collation];
        let indexes = self.indexes.iter().map(|allowed| match allowed {
            AllowedIndex::Name(name) => name.len(),
            AllowedIndex::Pattern(pattern) => pattern.as_bytes().len(),
            AllowedIndex::Natural { .. } => 0,
        });
        parts.iter().map(|part| part.as_bytes().len()).sum::<usize>() + indexes.sum::<usize>()
    }
}

/// The index filters of one collection, in the order in which they were set. Shared by all versions
/// of the collection's record.
#[derive(Debug, Default)]
pub struct IndexFilters {
    /// True if there is a filter. Without one, a request takes no lock.
    any: AtomicBool,
    filters: RwLock<Vec<Arc<IndexFilter>>>,
}

impl IndexFilters {
    /// Returns the filter for a shape. Calls `shape` only if there are filters.
    pub fn find(&self, shape: impl FnOnce() -> u64) -> Option<Arc<IndexFilter>> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let shape = shape();
        self.filters.read().iter().find(|filter| filter.shape == shape).cloned()
    }

    /// Returns all filters.
    pub fn all(&self) -> Vec<Arc<IndexFilter>> {
        self.filters.read().clone()
    }

    /// Sets a filter; it replaces the filter of the same shape.
    ///
    /// # Errors
    /// 2 BadValue beyond [`INDEX_FILTERS_MAX`] or [`INDEX_FILTERS_BYTES_MAX`].
    pub fn set(&self, filter: IndexFilter) -> Result<()> {
        let mut filters = self.filters.write();
        let others = || filters.iter().filter(|other| other.shape != filter.shape);
        let bytes = others().map(|other| other.bytes()).sum::<usize>() + filter.bytes();
        if others().count() >= INDEX_FILTERS_MAX || bytes > INDEX_FILTERS_BYTES_MAX {
            let text = format!(
                "a collection holds at most {INDEX_FILTERS_MAX} index filters of {INDEX_FILTERS_BYTES_MAX} bytes together"
            );
            return Err(Error::new(ErrorCode::BadValue, text));
        }
        filters.retain(|other| other.shape != filter.shape);
        filters.push(Arc::new(filter));
        self.any.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the filters of a shape; with `None`, all of them.
    pub fn clear(&self, shape: Option<u64>) {
        let mut filters = self.filters.write();
        filters.retain(|filter| shape.is_some_and(|shape| filter.shape != shape));
        self.any.store(!filters.is_empty(), Ordering::Relaxed);
    }
}
