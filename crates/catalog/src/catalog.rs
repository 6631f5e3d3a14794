//! The catalog: an immutable map of databases to collections.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use quire_document::{Binary, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::view::{SYSTEM_VIEWS, ViewDefinition, invalid_definition};
use crate::{Collection, Namespace, names};

/// Everything that exists at one version. Cheap to share, never changed in place.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    databases: HashMap<Arc<str>, Arc<Database>, RandomState>,
    generation: u64,
}

/// The collections of one database. It exists while it has collections.
#[derive(Debug, Clone)]
pub struct Database {
    name: Arc<str>,
    collections: HashMap<Arc<str>, Arc<Collection>, RandomState>,
    /// By name; none has the name of a collection.
    views: HashMap<Arc<str>, Arc<ViewDefinition>, RandomState>,
    /// A document of `system.views` cannot be read.
    has_invalid_view: bool,
}

impl Catalog {
    /// A catalog of these collections.
    pub fn new(collections: impl IntoIterator<Item = Collection>) -> Self {
        let mut databases: HashMap<Arc<str>, Database> = HashMap::new();
        for collection in collections {
            let db: Arc<str> = collection.namespace.db().into();
            let database = databases.entry(Arc::clone(&db)).or_insert_with(|| Database::new(db));
            database
                .collections
                .insert(collection.namespace.collection().into(), Arc::new(collection));
        }
        let databases = databases.into_iter().map(|(name, db)| (name, Arc::new(db))).collect();
        Catalog { databases, generation: 0 }
    }

    /// Rises with every published change of this process: what a plan cache compares.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The database with exactly this name.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name)
    }

    /// All databases, in no order.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// The collection, if it exists.
    pub fn collection(&self, db: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.databases.get(db)?.collections.get(collection)
    }

    /// The collection, if it exists.
    pub fn lookup(&self, namespace: &Namespace) -> Option<&Arc<Collection>> {
        self.collection(namespace.db(), namespace.collection())
    }

    /// The collection of a `database.collection`, if it exists.
    pub fn find(&self, full: &str) -> Option<&Arc<Collection>> {
        let (db, collection) = names::split(full)?;
        self.collection(db, collection)
    }

    /// The collection, or 26 NamespaceNotFound; 166 CommandNotSupportedOnView for a view.
    pub fn require(&self, namespace: &Namespace) -> Result<&Arc<Collection>> {
        self.refuse_view(namespace)?;
        self.lookup(namespace).ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {namespace}"))
        })
    }

    /// The collection with this id, by walking all of them.
    pub fn by_id(&self, id: crate::CollectionId) -> Option<&Arc<Collection>> {
        self.collections().find(|collection| collection.id == id)
    }

    /// The collection with this UUID, by walking all of them.
    pub fn by_uuid(&self, uuid: &crate::Uuid) -> Option<&Arc<Collection>> {
        self.collections().find(|collection| collection.uuid == *uuid)
    }

    /// Fails with 361 CollectionUUIDMismatch unless the collection exists and has this UUID.
    pub fn check_uuid(&self, namespace: &Namespace, uuid: &crate::Uuid) -> Result<()> {
        let there = self.lookup(namespace);
        if there.is_some_and(|collection| collection.uuid == *uuid) {
            return Ok(());
        }
        let actual = self.by_uuid(uuid).filter(|found| found.namespace.db() == namespace.db());
        let details = DocBuf::build(|writer| {
            let binary = Binary { subtype: 4, bytes: &uuid.0 };
            writer.append("db", namespace.db());
            writer.append("collectionUUID", Value::Binary(binary));
            writer.append("expectedCollection", namespace.collection());
            writer.append(
                "actualCollection",
                actual.map_or(Value::Null, |found| Value::String(found.namespace.collection())),
            );
        });
        let text = "Collection UUID does not match that specified";
        Err(Error::new(ErrorCode::CollectionUUIDMismatch, text).with_details(details.into_bytes()))
    }

    /// All collections, in no order.
    pub fn collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.databases.values().flat_map(|database| database.collections.values())
    }

    /// Fails with 13297 DatabaseDifferCase if a database exists whose name differs only in case.
    pub fn check_db_case(&self, db: &str) -> Result<()> {
        if self.databases.contains_key(db) {
            return Ok(());
        }
        match self.databases.keys().find(|name| name.eq_ignore_ascii_case(db)) {
            None => Ok(()),
            Some(other) => Err(Error::new(
                ErrorCode::DatabaseDifferCase,
                format!(
                    "db already exists with different case already have: [{other}] trying to create [{db}]"
                ),
            )),
        }
    }

    /// The next catalog, in which the collection stands under its namespace, replacing what
    /// stood there.
    #[must_use]
    pub fn with(&self, collection: Arc<Collection>) -> Self {
        let db = collection.namespace.db().to_owned();
        self.with_changed(&db, |database| {
            database.collections.insert(collection.namespace.collection().into(), collection);
        })
    }

    /// The next catalog, in which the view stands under its name, replacing the one before.
    #[must_use]
    pub fn with_view(&self, view: Arc<ViewDefinition>) -> Self {
        let db = view.namespace.db().to_owned();
        self.with_views(&db, vec![view])
    }

    /// The next catalog, in which these views of one database stand under their names. Copies the
    /// database once, however many there are.
    #[must_use]
    pub fn with_views(&self, db: &str, views: Vec<Arc<ViewDefinition>>) -> Self {
        self.with_changed(db, |database| {
            let by_name = |view: Arc<ViewDefinition>| (view.namespace.collection().into(), view);
            database.views.extend(views.into_iter().map(by_name));
        })
    }

    /// The next catalog, without the view.
    #[must_use]
    pub fn without_view(&self, namespace: &Namespace) -> Self {
        self.with_changed(namespace.db(), |database| {
            database.views.remove(namespace.collection());
        })
    }

    /// The next catalog, in which the views of a database cannot be used.
    #[must_use]
    pub fn with_invalid_view(&self, db: &str) -> Self {
        self.with_changed(db, |database| database.has_invalid_view = true)
    }

    fn with_changed(&self, db: &str, change: impl FnOnce(&mut Database)) -> Self {
        let mut next = self.next();
        let mut database = match next.databases.get(db) {
            Some(database) => Database::clone(database),
            None => Database::new(db.into()),
        };
        change(&mut database);
        next.databases.insert(db.into(), Arc::new(database));
        next
    }

    /// The next catalog, without what stood under the namespace. All views of a database go with
    /// its `system.views`.
    #[must_use]
    pub fn without(&self, namespace: &Namespace) -> Self {
        let mut next = self.next();
        if let Some(database) = next.databases.get(namespace.db()) {
            let mut database = Database::clone(database);
            database.collections.remove(namespace.collection());
            if namespace.collection() == SYSTEM_VIEWS {
                database.views.clear();
                database.has_invalid_view = false;
            }
            if database.collections.is_empty() {
                next.databases.remove(namespace.db());
            } else {
                next.databases.insert(namespace.db().into(), Arc::new(database));
            }
        }
        next
    }

    /// The next catalog, without the database.
    #[must_use]
    pub fn without_database(&self, db: &str) -> Self {
        let mut next = self.next();
        next.databases.remove(db);
        next
    }

    fn next(&self) -> Self {
        Catalog { databases: self.databases.clone(), generation: self.generation + 1 }
    }
}

impl Database {
    fn new(name: Arc<str>) -> Self {
        Database {
            name,
            collections: HashMap::default(),
            views: HashMap::default(),
            has_invalid_view: false,
        }
    }

    /// Returns the name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The collection with this name.
    pub fn collection(&self, name: &str) -> Option<&Arc<Collection>> {
        self.collections.get(name)
    }

    /// All collections, in no order.
    pub fn collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    /// The view with this name.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewDefinition>> {
        self.views.get(name)
    }

    /// All views, in no order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewDefinition>> {
        self.views.values()
    }

    /// Returns true if there is a view, or a definition that cannot be read.
    pub fn has_views(&self) -> bool {
        self.has_invalid_view || !self.views.is_empty()
    }

    /// Fails with 182 InvalidViewDefinition if a definition cannot be read.
    pub fn check_views(&self) -> Result<()> {
        match self.has_invalid_view {
            true => Err(invalid_definition()),
            false => Ok(()),
        }
    }

    /// How many collections there are.
    pub fn len(&self) -> usize {
        self.collections.len()
    }

    /// True if there are none, which a published catalog never shows.
    pub fn is_empty(&self) -> bool {
        self.collections.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CollectionId, CollectionOptions, IndexId};

    fn collection(namespace: &str, id: u32) -> Arc<Collection> {
        Arc::new(Collection::new(
            CollectionId(id),
            Uuid::default(),
            Namespace::parse(namespace).unwrap(),
            CollectionOptions::default(),
            IndexId(id),
        ))
    }
    use crate::Uuid;

    #[test]
    fn databases_live_while_they_have_collections() {
        let catalog = Catalog::default().with(collection("a.x", 1)).with(collection("a.y", 2));
        assert_eq!(catalog.generation(), 2);
        assert_eq!(catalog.collection("a", "y").unwrap().id, CollectionId(2));
        assert!(catalog.check_db_case("A").unwrap_err().code() == ErrorCode::DatabaseDifferCase);
        assert!(catalog.check_db_case("a").is_ok());
        let ns = |text| Namespace::parse(text).unwrap();
        let without_x = catalog.without(&ns("a.x"));
        assert_eq!(without_x.database("a").unwrap().len(), 1);
        assert!(without_x.without(&ns("a.y")).database("a").is_none());
        assert!(catalog.without_database("a").database("a").is_none());
        assert_eq!(catalog.database("a").unwrap().len(), 2);
        assert!(catalog.require(&ns("b.x")).is_err());
    }
}
