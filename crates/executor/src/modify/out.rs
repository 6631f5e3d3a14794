//! `$out`: the documents are inserted into a temporary collection, which then replaces the target
//! in one commit.

use std::sync::Arc;

use quire_catalog::{Catalog, Collection, CollectionOptions, Namespace};
use quire_collections::Store;
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::Out;
use quire_mql::time_series::TimeSeriesOptions;
use quire_storage::{CommitOptions, Interrupt};

use crate::modify::insert::{InsertOptions, insert_many};
use crate::unit::UnitOfWork;

/// A running replacement of a collection.
pub(crate) struct Replacing {
    store: Arc<Store>,
    target: Namespace,
    /// The target now; the temporary collection gets its options and indexes.
    model: Option<Arc<Collection>>,
    temporary: Arc<Collection>,
}

impl Replacing {
    /// Creates the temporary collection.
    pub fn begin(out: &Out, unit: &dyn UnitOfWork, commit: &CommitOptions) -> Result<Self> {
        let target = target(out)?;
        let store = Arc::clone(unit.store());
        let catalog = store.catalog();
        let model = match &out.time_series {
            Some(series) => existing_series(&catalog, &target, series)?,
            None => catalog.writable(&target)?,
        };
        let own = out.time_series.clone().map(CollectionOptions::of_series).unwrap_or_default();
        if model.as_ref().is_some_and(|model| model.options.capped().is_some()) {
            let text = format!("namespace '{target}' is capped so it can't be used for $out");
            return Err(Error::location(17152, text));
        }
        let name = format!("tmp.agg_out.{}", store.new_uuid());
        let temporary = Namespace::new(&out.db, &name)?;
        let buffered =
            CommitOptions { interrupt: commit.interrupt.clone(), ..CommitOptions::buffered() };
        let temporary = store.create_copy((model.as_deref(), &own), &temporary, &buffered)?;
        Ok(Replacing { store, target, model, temporary })
    }

    /// Inserts documents into the temporary collection.
    pub fn insert(
        &self,
        unit: &mut dyn UnitOfWork,
        docs: &[Doc<'_>],
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        let outcome =
            insert_many(unit, &self.temporary.namespace, docs, InsertOptions::ORDERED, interrupt)?;
        match outcome.errors.into_iter().next() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }

    /// Puts the filled collection in place; drops it if filling failed.
    pub fn finish(self, filled: Result<()>, commit: &CommitOptions) -> Result<()> {
        let placed = filled.and_then(|()| {
            self.store.put_in_place(&self.temporary, &self.target, self.model.as_deref(), commit)
        });
        if placed.as_ref().is_err_and(|error| !quire_collections::is_in_doubt(error)) {
            self.store.drop_collection(&self.temporary.namespace, &CommitOptions::buffered())?;
        }
        placed
    }
}

/// Returns the time-series collection that an `$out` with options of one replaces; `None` if there is
/// none.
///
/// # Errors
/// 7268700 if the name is that of a view or of another kind of collection, 7406103 if the options
/// differ.
fn existing_series(
    catalog: &Catalog,
    target: &Namespace,
    series: &TimeSeriesOptions,
) -> Result<Option<Arc<Collection>>> {
    target.check_writable()?;
    let found = catalog.lookup(target);
    let existing = found.and_then(|found| found.options.time_series());
    if (found.is_some() && existing.is_none()) || catalog.view(target).is_some() {
        let text = format!(
            "Cannot create a time-series collection from a non time-series collection: {target}"
        );
        return Err(Error::location(7_268_700, text));
    }
    if existing.is_some_and(|existing| **existing != *series) {
        let text = format!("Time-series options of $out differ from those of {target}");
        return Err(Error::location(7_406_103, text));
    }
    Ok(found.cloned())
}

/// Returns the collection to write to. An invalid name is an IllegalOperation.
fn target(out: &Out) -> Result<Namespace> {
    let refused = |error: Error| Error::new(ErrorCode::IllegalOperation, error.message());
    let target = Namespace::new(&out.db, &out.collection).map_err(refused)?;
    target.check_creatable().map_err(refused)?;
    Ok(target)
}
