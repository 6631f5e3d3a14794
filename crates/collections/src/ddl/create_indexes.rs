//! `createIndexes`: new indexes are announced as write-only, filled, checked and published.

use std::sync::Arc;
use std::time::Duration;

use quire_catalog::time_series::check_index;
use quire_catalog::{
    Catalog, Collection, CollectionOptions, Index, IndexId, IndexSpec, IndexState, Namespace,
    SpecMatch,
};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::{next_epoch, put_collection, take_id};
use crate::index_builds::OpenSide;
use crate::{Store, from_interruption};

/// The arguments of `createIndexes`.
#[derive(Debug, Clone)]
pub struct CreateIndexes {
    /// The collection; created if it does not exist.
    pub namespace: Namespace,
    /// The specifications of the indexes, at least one.
    pub specs: Vec<IndexSpec>,
}

/// What `createIndexes` replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIndexes {
    /// `numIndexesBefore`; 1 if the command created the collection.
    pub before: usize,
    /// `numIndexesAfter`: the current number of indexes.
    pub after: usize,
    /// `createdCollectionAutomatically`: true if the collection did not exist.
    pub created_collection: bool,
    /// The number of requested indexes that existed already.
    pub existed: usize,
}

impl BuiltIndexes {
    /// Returns the `note` of the reply, if it has one.
    pub fn note(&self, wanted: usize) -> Option<&'static str> {
        match self.existed {
            0 => None,
            existed if existed >= wanted => Some("all indexes already exist"),
            _ => Some("index already exists"),
        }
    }
}

/// The result of announcing indexes.
enum Announced<'s> {
    /// All of them exist, or were created together with their collection.
    Done(BuiltIndexes),
    /// These must be filled.
    Build { collection: Arc<Collection>, side: OpenSide<'s>, reply: BuiltIndexes },
    /// Another command is building one of them.
    Busy,
}

/// Fails for a system collection whose indexes are the server's own.
fn check_indexable(namespace: &Namespace) -> Result<()> {
    if matches!(namespace.collection(), "system.views" | "system.profile") {
        let text = format!("Cannot create indexes on the collection '{namespace}'");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if namespace.as_str() == "config.transactions" {
        let text = "not allowed to create index on config.transactions collection";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    Ok(())
}

impl Store {
    /// Creates all of the indexes or, on an error, none. Errors: 67, 85, 86, 68; 11000 for
    /// duplicate keys of existing documents; 171; 276 IndexBuildAborted if the collection or an
    /// index is dropped meanwhile.
    pub fn create_indexes(
        self: &Arc<Self>,
        request: &CreateIndexes,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<BuiltIndexes> {
        request.namespace.check_creatable()?;
        check_indexable(&request.namespace)?;
        if request.namespace.is_system() && request.specs.iter().any(|spec| spec.hidden) {
            return Err(Error::bad_value("can't hide index on system collection"));
        }
        let existing = self.catalog().lookup(&request.namespace).cloned();
        match existing.filter(|existing| existing.is_time_series()) {
            Some(series) => self.series_writes(&series).run(|| {
                self.prepare_series(&series, &request.specs, interrupt)?;
                self.announce_and_build(request, interrupt, options)
            }),
            None => self.announce_and_build(request, interrupt, options),
        }
    }

    fn announce_and_build(
        self: &Arc<Self>,
        request: &CreateIndexes,
        interrupt: &Arc<Interrupt>,
        options: &CommitOptions,
    ) -> Result<BuiltIndexes> {
        loop {
            match self.announce(request, interrupt, options)? {
                Announced::Done(reply) => return Ok(reply),
                Announced::Build { collection, side, reply } => {
                    self.run_build(&collection, side, interrupt, options)?;
                    return Ok(reply);
                }
                Announced::Busy => {
                    interrupt
                        .wait(Some(Duration::from_millis(2)), || false)
                        .map_err(from_interruption)?;
                }
            }
        }
    }

    /// Returns true if `create_indexes` would make an index now, and not only reply that all exist or
    /// are being built.
    ///
    /// # Errors
    /// Those of [`create_indexes`](Self::create_indexes) that the catalog alone decides.
    pub fn makes_indexes(&self, request: &CreateIndexes, interrupt: &Interrupt) -> Result<bool> {
        request.namespace.check_creatable()?;
        let Some(collection) = self.catalog().writable(&request.namespace)? else {
            return Ok(true);
        };
        let default = collection.options.collation();
        let specs = request.specs.iter().map(|spec| spec.in_collection(default));
        let specs = specs.collect::<Result<Vec<IndexSpec>>>()?;
        Ok(!new_specs(&collection, &specs, interrupt)?.is_empty())
    }

    fn announce(
        self: &Arc<Self>,
        request: &CreateIndexes,
        interrupt: &Interrupt,
        options: &CommitOptions,
    ) -> Result<Announced<'_>> {
        self.change_catalog(options, |writer, catalog, next_id| {
            let existing = catalog.writable(&request.namespace)?;
            let created = existing.is_none();
            let (base, collection): (Catalog, Arc<Collection>) = match existing {
                Some(collection) => (Catalog::clone(catalog), collection),
                None => self.create_in(
                    writer,
                    catalog,
                    next_id,
                    &request.namespace,
                    CollectionOptions::default(),
                )?,
            };
            let before = collection.index_count();
            let default = collection.options.collation();
            let specs = request.specs.iter().map(|spec| spec.in_collection(default));
            let specs = specs.collect::<Result<Vec<IndexSpec>>>()?;
            let new = new_specs(&collection, &specs, interrupt)?;
            let reply = BuiltIndexes {
                before,
                after: before + new.len(),
                created_collection: created,
                existed: request.specs.len() - new.len(),
            };
            let busy = request.specs.iter().any(|spec| {
                collection
                    .index_by_name(&spec.name)
                    .is_some_and(|index| index.state == IndexState::WriteOnly)
            });
            if busy {
                return Ok((None, Announced::Busy));
            }
            if new.is_empty() && !created {
                return Ok((None, Announced::Done(reply)));
            }
            // A collection that this commit creates has no documents.
            let state = if created { IndexState::Ready } else { IndexState::WriteOnly };
            let mut changed = next_epoch(&collection);
            let mut ids = Vec::with_capacity(new.len());
            for spec in new {
                let id = IndexId(take_id(next_id)?);
                ids.push(id);
                changed.indexes.push(Arc::new(Index::new(id, spec.clone(), state)));
            }
            put_collection(writer, &changed)?;
            let changed = Arc::new(changed);
            let next = base.with(Arc::clone(&changed));
            let answer = if created {
                Announced::Done(reply)
            } else {
                Announced::Build { collection: changed, side: self.builds.open(&ids), reply }
            };
            Ok((Some(next), answer))
        })
    }
}

/// Returns the specifications that do not exist yet. Errors: mongod's conflicts for a specification
/// that contradicts an index or another specification, and 67 for more indexes than a collection
/// may have. The comparison takes quadratic time, which the limit bounds.
pub(crate) fn new_specs<'s>(
    collection: &Collection,
    specs: &'s [IndexSpec],
    interrupt: &Interrupt,
) -> Result<Vec<&'s IndexSpec>> {
    if let Some(series) = collection.options.time_series() {
        specs.iter().try_for_each(|spec| check_index(series, spec))?;
    }
    let mut new: Vec<&IndexSpec> = Vec::new();
    for spec in specs {
        interrupt.check().map_err(from_interruption)?;
        if spec.compare(&collection.indexes)? == SpecMatch::New {
            new.push(spec);
        }
    }
    let (before, mut together) = (collection.index_count(), Vec::<Arc<Index>>::new());
    for spec in &new {
        interrupt.check().map_err(from_interruption)?;
        if spec.compare(&together)? == SpecMatch::Exists {
            return Err(Error::new(
                ErrorCode::IndexAlreadyExists,
                format!("Identical index already exists: {}", spec.name),
            ));
        }
        spec.check_room(&collection.namespace, before + together.len())?;
        together.push(Arc::new(Index::new(IndexId(0), (*spec).clone(), IndexState::WriteOnly)));
    }
    Ok(new)
}
