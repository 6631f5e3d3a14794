//! `create`, and the implicit creation by a first write.

use std::sync::Arc;

use quire_catalog::patterns::PatternChange;
use quire_catalog::time_series::BUCKETS;
use quire_catalog::{
    Catalog, Collection, CollectionId, CollectionOptions, Index, IndexId, IndexSpec, IndexState,
    Namespace, Uuid,
};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Interrupt};

use super::patterns::{applied, check, check_readable};
use super::{put_collection, take_id};
use crate::{Store, Writer};

/// The database of the collections that a repair creates from documents without a catalog record.
const RECOVERED: &str = "recovered";

impl Store {
    /// Creates a collection. An existing one with the same options is left as it is; with other
    /// options the error is 48 NamespaceExists.
    pub fn create_collection(
        self: &Arc<Self>,
        namespace: &Namespace,
        collection_options: CollectionOptions,
        options: &CommitOptions,
    ) -> Result<Arc<Collection>> {
        self.create_collection_as(namespace, (collection_options, None), options)
    }

    /// Creates a collection with this UUID; `None` gives it a new one.
    ///
    /// # Errors
    /// 48 NamespaceExists if the collection has other options or another UUID, or if the UUID is that
    /// of another collection.
    pub fn create_collection_as(
        self: &Arc<Self>,
        namespace: &Namespace,
        (collection_options, uuid): (CollectionOptions, Option<Uuid>),
        options: &CommitOptions,
    ) -> Result<Arc<Collection>> {
        namespace.check_creatable()?;
        self.change_catalog(options, |writer, catalog, next_id| {
            let existing = same(catalog, namespace, &collection_options)?;
            if let Some(uuid) = &uuid {
                check_uuid(catalog, (namespace, existing), uuid)?;
            }
            if let Some(existing) = existing {
                return Ok((None, Arc::clone(existing)));
            }
            let uuid = uuid.unwrap_or_else(|| self.new_uuid());
            let new = (collection_options.clone(), uuid);
            let (next, created) = self.create_as(writer, catalog, next_id, namespace, new)?;
            let Some(spec) = collection_options.default_index() else {
                return Ok((Some(next), created));
            };
            let mut created = Collection::clone(&created);
            add_ready_index(&mut created, next_id, spec)?;
            put_collection(writer, &created)?;
            let created = Arc::new(created);
            Ok((Some(next.with(Arc::clone(&created))), created))
        })
    }

    /// Checks whether a collection with these options and patterns can be created.
    ///
    /// # Errors
    /// Those of [`create_collection`](Self::create_collection) and of
    /// [`change_patterns`](Self::change_patterns).
    pub fn check_create(
        &self,
        namespace: &Namespace,
        options: &CollectionOptions,
        patterns: &[PatternChange],
    ) -> Result<()> {
        namespace.check_creatable()?;
        let catalog = self.catalog();
        if same(&catalog, namespace, options)?.is_some() {
            return self.check_patterns(namespace, patterns);
        }
        catalog.check_db_case(namespace.db())?;
        // The numbers are of no collection and no index; the record is not stored.
        let ids = (CollectionId(u32::MAX), IndexId(u32::MAX));
        let uuid = self.new_uuid();
        let created = Collection::new(ids.0, uuid, namespace.clone(), options.clone(), ids.1);
        created.check_validator()?;
        let catalog = catalog.with(Arc::new(applied(&created, patterns)?));
        check(&catalog, namespace)
    }

    /// Returns the collection; creates it without options if it does not exist, as a write to it
    /// implies.
    pub fn ensure_collection(self: &Arc<Self>, namespace: &Namespace) -> Result<Arc<Collection>> {
        let created = self.ensure_collection_for(namespace, None, &|| true)?;
        created.ok_or_else(|| Error::internal("a collection that was not created"))
    }

    /// Does the work of [`ensure_collection`](Self::ensure_collection); `interrupt` ends its waits.
    /// A collection that does not exist is only created if `wanted` returns true; otherwise the
    /// result is `None`.
    pub fn ensure_collection_for(
        self: &Arc<Self>,
        namespace: &Namespace,
        interrupt: Option<&Arc<Interrupt>>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Arc<Collection>>> {
        namespace.check_writable()?;
        if let Some(existing) = self.catalog().lookup(namespace) {
            return Ok(Some(Arc::clone(existing)));
        }
        self.catalog().refuse_view(namespace)?;
        namespace.check_creatable()?;
        if !wanted() {
            return Ok(None);
        }
        // The write that follows has the durability of the client's write concern, and its log
        // record comes after this one.
        let options = CommitOptions { interrupt: interrupt.cloned(), ..CommitOptions::buffered() };
        let created = self.change_catalog(&options, |writer, catalog, next_id| {
            if let Some(existing) = catalog.lookup(namespace) {
                return Ok((None, Arc::clone(existing)));
            }
            catalog.refuse_view(namespace)?;
            let options = CollectionOptions::default();
            let (next, created) = self.create_in(writer, catalog, next_id, namespace, options)?;
            Ok((Some(next), created))
        });
        created.map(Some)
    }

    /// Creates a collection for documents whose catalog record is lost, with the number in their
    /// keys and the name `recovered.collection_N`. Its `_id` index is new and empty.
    pub(crate) fn recover_collection(
        self: &Arc<Self>,
        id: CollectionId,
    ) -> Result<Arc<Collection>> {
        let recovered =
            self.change_catalog(&CommitOptions::synced(), |writer, catalog, next_id| {
                let mut name = format!("collection_{id}");
                while catalog.collection(RECOVERED, &name).is_some() {
                    name.push('_');
                }
                let namespace = Namespace::new(RECOVERED, &name)?;
                let id_index = IndexId(take_id(next_id)?);
                let options = CollectionOptions::default();
                let collection =
                    Arc::new(Collection::new(id, self.new_uuid(), namespace, options, id_index));
                put_collection(writer, &collection)?;
                Ok((Some(catalog.with(Arc::clone(&collection))), collection))
            })?;
        // What the process knew of the number was from before the collection existed.
        self.forget_record_ids(id);
        Ok(recovered)
    }

    pub(crate) fn create_in(
        &self,
        writer: &mut Writer,
        catalog: &Catalog,
        next_id: &mut u32,
        namespace: &Namespace,
        options: CollectionOptions,
    ) -> Result<(Catalog, Arc<Collection>)> {
        self.create_as(writer, catalog, next_id, namespace, (options, self.new_uuid()))
    }

    fn create_as(
        &self,
        writer: &mut Writer,
        catalog: &Catalog,
        next_id: &mut u32,
        namespace: &Namespace,
        (options, uuid): (CollectionOptions, Uuid),
    ) -> Result<(Catalog, Arc<Collection>)> {
        catalog.check_db_case(namespace.db())?;
        refuse_buckets(namespace)?;
        let id = CollectionId(take_id(next_id)?);
        let id_index = IndexId(take_id(next_id)?);
        let collection = Arc::new(Collection::new(id, uuid, namespace.clone(), options, id_index));
        collection.check_validator()?;
        put_collection(writer, &collection)?;
        // The catalog knows the patterns that read the new collection.
        let next = catalog.with(Arc::clone(&collection));
        let collection = next.lookup(namespace).cloned().unwrap_or(collection);
        for reader in &collection.patterns.readers {
            check_readable(&collection, &reader.pattern)?;
        }
        Ok((next, collection))
    }
}

/// Returns the collection of this name that is there, with the same options.
///
/// # Errors
/// 48 NamespaceExists for a view, or for a collection with other options.
fn same<'a>(
    catalog: &'a Catalog,
    namespace: &Namespace,
    options: &CollectionOptions,
) -> Result<Option<&'a Arc<Collection>>> {
    let exists = |what: &str| {
        let text = format!("{what} already exists. NS: {namespace}");
        Err(Error::new(ErrorCode::NamespaceExists, text))
    };
    if catalog.view(namespace).is_some() {
        return exists("A view");
    }
    match catalog.lookup(namespace) {
        Some(existing) if !existing.options.same_as(options) => exists("Collection"),
        existing => Ok(existing),
    }
}

/// Refuses the UUID of another collection, and another UUID for a collection that is there.
fn check_uuid(
    catalog: &Catalog,
    (namespace, existing): (&Namespace, Option<&Arc<Collection>>),
    uuid: &Uuid,
) -> Result<()> {
    let exists = |text: String| Err(Error::new(ErrorCode::NamespaceExists, text));
    match (existing, catalog.by_uuid(uuid)) {
        (Some(existing), _) if existing.uuid != *uuid => {
            exists(format!("{namespace} already exists, with the UUID {}", existing.uuid))
        }
        (None, Some(other)) => exists(format!("{} has the UUID {uuid}", other.namespace)),
        _ => Ok(()),
    }
}

/// Refuses a collection whose name is reserved for the buckets of a time-series collection, so that
/// buckets of a dump do not become ordinary documents.
fn refuse_buckets(namespace: &Namespace) -> Result<()> {
    match namespace.collection().starts_with(BUCKETS) {
        true => Err(Error::not_built("writing buckets of a time-series collection")),
        false => Ok(()),
    }
}

/// Adds an index to a collection that has no documents yet.
pub(super) fn add_ready_index(
    to: &mut Collection,
    next_id: &mut u32,
    spec: IndexSpec,
) -> Result<()> {
    let id = IndexId(take_id(next_id)?);
    to.indexes.push(Arc::new(Index::new(id, spec, IndexState::Ready)));
    Ok(())
}
