//! `$out`: the documents are inserted into a temporary collection, which then replaces the target
//! in one commit.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::Store;
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::Out;
use quire_storage::{CommitOptions, Interrupt};

use crate::modify::insert::insert_many;
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
        let model = store.catalog().writable(&target)?;
        if model.as_ref().is_some_and(|model| model.options.capped().is_some()) {
            let text = format!("namespace '{target}' is capped so it can't be used for $out");
            return Err(Error::location(17152, text));
        }
        let name = format!("tmp.agg_out.{}", store.new_uuid());
        let temporary = Namespace::new(&out.db, &name)?;
        let buffered =
            CommitOptions { interrupt: commit.interrupt.clone(), ..CommitOptions::buffered() };
        let temporary = store.create_copy(model.as_deref(), &temporary, &buffered)?;
        Ok(Replacing { store, target, model, temporary })
    }

    /// Inserts documents into the temporary collection.
    pub fn insert(
        &self,
        unit: &mut dyn UnitOfWork,
        docs: &[Doc<'_>],
        interrupt: &Arc<Interrupt>,
    ) -> Result<()> {
        let outcome = insert_many(unit, &self.temporary.namespace, docs, true, interrupt)?;
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

/// Returns the collection to write to. An invalid name is an IllegalOperation.
fn target(out: &Out) -> Result<Namespace> {
    let refused = |error: Error| Error::new(ErrorCode::IllegalOperation, error.message());
    let target = Namespace::new(&out.db, &out.collection).map_err(refused)?;
    target.check_creatable().map_err(refused)?;
    Ok(target)
}
