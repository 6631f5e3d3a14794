//! Views: each change is one commit that writes a document of `system.views` and publishes the
//! catalog with the change.

use std::sync::Arc;

use quire_catalog::{
    Catalog, Collection, CollectionOptions, Namespace, SYSTEM_VIEWS, ViewDefinition,
};
use quire_document::{DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Direction};

use crate::{CollectionCursor, ReadView, Record, Store, Writer};

/// The number of definitions that are read at once.
const PAGE_DOCS: usize = 256;
const PAGE_BYTES: usize = 4 << 20;

/// The changes of a view; `None` leaves a part as it is.
#[derive(Debug, Clone, Default)]
pub struct ModifyView {
    /// The collection or view that the pipeline reads.
    pub on: Option<String>,
    /// The stages of the view's pipeline.
    pub pipeline: Option<Vec<DocBuf>>,
}

impl ModifyView {
    /// Returns the definition after the change.
    #[must_use]
    pub fn applied(&self, before: &ViewDefinition) -> ViewDefinition {
        let mut after = before.clone();
        if let Some(on) = &self.on {
            after.on = on.as_str().into();
        }
        if let Some(pipeline) = &self.pipeline {
            after.pipeline.clone_from(pipeline);
        }
        after
    }
}

impl Store {
    /// Defines a view. The first view of a database creates `system.views`.
    ///
    /// # Errors
    /// 48 NamespaceExists; those of [`Catalog::check_view`].
    pub fn create_view(
        self: &Arc<Self>,
        view: &Arc<ViewDefinition>,
        options: &CommitOptions,
    ) -> Result<()> {
        let namespace = &view.namespace;
        namespace.check_creatable()?;
        self.change_catalog(options, |writer, catalog, next_id| {
            if catalog.lookup(namespace).is_some() || catalog.view(namespace).is_some() {
                return Err(Error::new(ErrorCode::NamespaceExists, "Namespace already exists"));
            }
            catalog.check_view(view)?;
            let (next, system_views) =
                self.system_views(writer, catalog, next_id, namespace.db())?;
            writer.insert(&system_views, view.document().as_doc())?;
            Ok((Some(next.with_view(Arc::clone(view))), ()))
        })
    }

    /// Changes a view.
    ///
    /// # Errors
    /// 26 NamespaceNotFound; those of [`Catalog::check_view`].
    pub fn modify_view(
        self: &Arc<Self>,
        namespace: &Namespace,
        change: &ModifyView,
        options: &CommitOptions,
    ) -> Result<()> {
        self.change_catalog(options, |writer, catalog, _| {
            let Some(before) = catalog.view(namespace) else {
                return Err(Error::new(ErrorCode::NamespaceNotFound, "ns does not exist"));
            };
            let after = change.applied(before);
            catalog.check_view(&after)?;
            let (system_views, record) = stored(writer, namespace)?;
            let document = after.document();
            writer.replace(&system_views, record.id, record.doc.as_doc(), document.as_doc())?;
            Ok((Some(catalog.with_view(Arc::new(after))), ()))
        })
    }

    /// Drops a view. Returns false if there is no view with this name.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn drop_view(
        self: &Arc<Self>,
        namespace: &Namespace,
        options: &CommitOptions,
    ) -> Result<bool> {
        self.change_catalog(options, |writer, catalog, _| {
            if catalog.view(namespace).is_none() {
                return Ok((None, false));
            }
            let (system_views, record) = stored(writer, namespace)?;
            writer.delete(&system_views, record.id, record.doc.as_doc())?;
            Ok((Some(catalog.without_view(namespace)), true))
        })
    }

    /// Returns the collection of the definitions, created if it does not exist, and the catalog
    /// with it.
    fn system_views(
        &self,
        writer: &mut Writer,
        catalog: &Catalog,
        next_id: &mut u32,
        db: &str,
    ) -> Result<(Catalog, Arc<Collection>)> {
        let namespace = Namespace::new(db, SYSTEM_VIEWS)?;
        if let Some(existing) = catalog.lookup(&namespace) {
            return Ok((catalog.clone(), Arc::clone(existing)));
        }
        let options = CollectionOptions::default();
        let (next, created) = self.create_in(writer, catalog, next_id, &namespace, options)?;
        writer.set_catalog(Arc::new(next.clone()))?;
        Ok((next, created))
    }

    /// Adds the view definitions of all databases to the catalog that was read at the open.
    pub(crate) fn load_views(self: &Arc<Self>) -> Result<()> {
        let view = self.read_view()?;
        let mut catalog = Catalog::clone(view.catalog());
        let collections: Vec<_> = view.catalog().collections().cloned().collect();
        for collection in collections {
            if collection.namespace.collection() != SYSTEM_VIEWS {
                continue;
            }
            let db = collection.namespace.db();
            match definitions(&view, &collection)? {
                (views, true) => catalog = catalog.with_views(db, views),
                (views, false) => catalog = catalog.with_views(db, views).with_invalid_view(db),
            }
        }
        self.publish_loaded(catalog);
        Ok(())
    }
}

/// Reads the definitions in a `system.views`. Returns the readable ones, and true if all are
/// readable.
fn definitions(
    view: &ReadView,
    system_views: &Arc<Collection>,
) -> Result<(Vec<Arc<ViewDefinition>>, bool)> {
    let (mut found, mut all_valid) = (Vec::new(), true);
    let mut cursor = CollectionCursor::new(system_views, Direction::Forward);
    let (mut records, mut more) = (Vec::new(), true);
    while more {
        records.clear();
        more = cursor.next_page(&view.view(), system_views, PAGE_DOCS, PAGE_BYTES, &mut records)?;
        for record in &records {
            match ViewDefinition::from_document(record.doc.as_doc()) {
                Ok(view) if view.namespace.db() == system_views.namespace.db() => {
                    found.push(Arc::new(view));
                }
                _ => all_valid = false,
            }
        }
    }
    Ok((found, all_valid))
}

/// Returns the document of a view's definition.
fn stored(writer: &Writer, namespace: &Namespace) -> Result<(Arc<Collection>, Record)> {
    let system_views = Namespace::new(namespace.db(), SYSTEM_VIEWS)?;
    let collection = writer.catalog().lookup(&system_views).cloned();
    let missing = || Error::internal(format!("the definition of {namespace} is not stored"));
    let collection = collection.ok_or_else(missing)?;
    let id = Value::String(namespace.as_str());
    let record = writer.view().get_by_id(&collection, id)?.ok_or_else(missing)?;
    Ok((collection, record))
}
