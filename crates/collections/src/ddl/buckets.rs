//! Buckets of a time-series collection in statements that change the catalog: the number under which they are stored, and
//! what an index demands of points that have no entries in it.

use std::sync::Arc;

use quire_catalog::key::Arena;
use quire_catalog::{Collection, CollectionId, Index, IndexId, IndexSpec, IndexState};
use quire_document::Doc;
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt};

use super::{next_epoch, put_collection, take_id};
use crate::entry::EntryKeys;
use crate::series::serves_rows_only;
use crate::{PackedBucket, Span, Store, takes_buckets};

/// Makes sure that a collection has such a number. Returns false if it was dropped.
///
/// # Errors
/// The errors of the commit.
pub(crate) fn number_buckets(
    store: &Arc<Store>,
    id: CollectionId,
    options: &CommitOptions,
) -> Result<bool> {
    store.change_catalog(options, |writer, catalog, next_id| {
        let Some(found) = catalog.by_id(id) else { return Ok((None, false)) };
        if found.buckets.is_some() {
            return Ok((None, true));
        }
        let mut next = next_epoch(found);
        next.buckets = Some(IndexId(take_id(next_id)?));
        put_collection(writer, &next)?;
        Ok((Some(catalog.with(Arc::new(next))), true))
    })
}

impl Store {
    /// Makes sure that the buckets of a time-series collection have a number, under which what belongs to them is stored.
    ///
    /// # Errors
    /// The errors of the commit.
    pub fn number_buckets(self: &Arc<Self>, series: &Collection) -> Result<()> {
        if series.buckets.is_none() {
            number_buckets(self, series.id, &CommitOptions::buffered())?;
        }
        Ok(())
    }

    /// Prepares the points in buckets for new indexes: all become records if an index must have entries for all points;
    /// else only those of buckets with a point that an index refuses, so that the build meets it. The caller keeps points
    /// from being closed.
    ///
    /// # Errors
    /// Those of reading and of the commits; the error of an interrupt.
    pub(super) fn prepare_series(
        self: &Arc<Self>,
        collection: &Collection,
        specs: &[IndexSpec],
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        let default = collection.options.collation();
        let specs = specs.iter().map(|spec| spec.in_collection(default));
        let specs = specs.collect::<Result<Vec<IndexSpec>>>()?;
        let index = |spec| Index::new(IndexId(0), spec, IndexState::WriteOnly);
        let indexes: Vec<Index> = specs.into_iter().map(index).collect();
        if !indexes.iter().all(serves_rows_only) {
            self.reopen_buckets(collection, Span::ALL, interrupt, &mut |_| Ok(true))?;
            return Ok(());
        }
        // A key of one value cannot fail.
        let compound: Vec<&Index> =
            indexes.iter().filter(|index| index.keys.fields().len() > 1).collect();
        if compound.is_empty() {
            return Ok(());
        }
        let refuses = &mut |bucket: &PackedBucket| {
            let points = bucket.all_points()?;
            let mut docs = points.iter().map(|point| Doc::from_valid_bytes(point));
            Ok(docs.any(|doc| compound.iter().any(|index| has_no_keys(index, doc))))
        };
        self.reopen_buckets(collection, Span::ALL, interrupt, refuses)?;
        Ok(())
    }

    /// Runs a change of the catalog after which a collection is `next`. If it may then have no buckets, they are reopened
    /// before.
    ///
    /// # Errors
    /// Those of reopening, and of `change`.
    pub(super) fn change_series<T>(
        self: &Arc<Self>,
        next: &Collection,
        options: &CommitOptions,
        change: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if !next.is_time_series() || takes_buckets(next) {
            return change();
        }
        let interrupt = options.interrupt.clone().unwrap_or_else(Interrupt::new);
        self.with_all_as_records(next, &interrupt, change)
    }
}

/// Returns true if an index refuses a document.
fn has_no_keys(index: &Index, doc: Doc<'_>) -> bool {
    let arena = Arena::new();
    let generated = index.keys.generate(doc, &arena);
    generated.and_then(|keys| EntryKeys::default().encode(index, &keys)).is_err()
}
