//! The catalog: an immutable map of databases to collections.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use quire_document::{Binary, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::patterns::Reader;
use crate::view::{SYSTEM_VIEWS, ViewDefinition, invalid_definition};
use crate::{Collection, Namespace, names};

/// All databases, collections and views at one version. Cheap to clone; a change makes a new
/// catalog.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    databases: HashMap<Arc<str>, Arc<Database>, RandomState>,
    generation: u64,
}

/// The collections and views of one database. A database exists while it has a collection.
#[derive(Debug, Clone)]
pub struct Database {
    name: Arc<str>,
    collections: HashMap<Arc<str>, Arc<Collection>, RandomState>,
    /// The views by name. A view and a collection of one database never have the same name.
    views: HashMap<Arc<str>, Arc<ViewDefinition>, RandomState>,
    /// True if a document of `system.views` cannot be decoded.
    has_invalid_view: bool,
}

impl Catalog {
    /// Returns a catalog with these collections.
    pub fn new(collections: impl IntoIterator<Item = Collection>) -> Self {
        let mut databases: HashMap<Arc<str>, Database> = HashMap::new();
        for collection in collections {
            let db: Arc<str> = collection.namespace.db().into();
            let database = databases.entry(Arc::clone(&db)).or_insert_with(|| Database::new(db));
            database
                .collections
                .insert(collection.namespace.collection().into(), Arc::new(collection));
        }
        let bound = |mut database: Database| {
            database.bind_patterns();
            Arc::new(database)
        };
        let databases = databases.into_iter().map(|(name, db)| (name, bound(db))).collect();
        Catalog { databases, generation: 0 }
    }

    /// Returns a number that increases with every catalog change of this process. The plan cache
    /// compares it.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the database with exactly this name.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name)
    }

    /// Returns all databases, in no particular order.
    pub fn databases(&self) -> impl Iterator<Item = &Arc<Database>> {
        self.databases.values()
    }

    /// Returns the collection, if it exists.
    pub fn collection(&self, db: &str, collection: &str) -> Option<&Arc<Collection>> {
        self.databases.get(db)?.collections.get(collection)
    }

    /// Returns the collection, if it exists.
    pub fn lookup(&self, namespace: &Namespace) -> Option<&Arc<Collection>> {
        self.collection(namespace.db(), namespace.collection())
    }

    /// Returns the collection with this full name, `database.collection`, if it exists.
    pub fn find(&self, full: &str) -> Option<&Arc<Collection>> {
        let (db, collection) = names::split(full)?;
        self.collection(db, collection)
    }

    /// Returns the collection. Fails with 26 NamespaceNotFound if there is none, and with 166
    /// CommandNotSupportedOnView for a view.
    pub fn require(&self, namespace: &Namespace) -> Result<&Arc<Collection>> {
        self.refuse_view(namespace)?;
        self.lookup(namespace).ok_or_else(|| {
            Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {namespace}"))
        })
    }

    /// Returns the collection with this id, after a search through all collections.
    pub fn by_id(&self, id: crate::CollectionId) -> Option<&Arc<Collection>> {
        self.collections().find(|collection| collection.id == id)
    }

    /// Returns the collection with this UUID, after a search through all collections.
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

    /// Returns all collections, in no particular order.
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

    /// Returns a catalog with this collection. It replaces a collection of the same name.
    #[must_use]
    pub fn with(&self, collection: Arc<Collection>) -> Self {
        let db = collection.namespace.db().to_owned();
        self.with_changed(&db, |database| {
            database.collections.insert(collection.namespace.collection().into(), collection);
        })
    }

    /// Returns a catalog with this view. It replaces a view of the same name.
    #[must_use]
    pub fn with_view(&self, view: Arc<ViewDefinition>) -> Self {
        let db = view.namespace.db().to_owned();
        self.with_views(&db, vec![view])
    }

    /// Returns a catalog with these views of one database. Copies the database only once.
    #[must_use]
    pub fn with_views(&self, db: &str, views: Vec<Arc<ViewDefinition>>) -> Self {
        self.with_changed(db, |database| {
            let by_name = |view: Arc<ViewDefinition>| (view.namespace.collection().into(), view);
            database.views.extend(views.into_iter().map(by_name));
        })
    }

    /// Returns a catalog without the view.
    #[must_use]
    pub fn without_view(&self, namespace: &Namespace) -> Self {
        self.with_changed(namespace.db(), |database| {
            database.views.remove(namespace.collection());
        })
    }

    /// Returns a catalog in which every use of the database's views fails.
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
        database.bind_patterns();
        next.databases.insert(db.into(), Arc::new(database));
        next
    }

    /// Returns a catalog without the collection. If the collection is `system.views`, all views of
    /// its database are removed too.
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
            database.bind_patterns();
            if database.collections.is_empty() {
                next.databases.remove(namespace.db());
            } else {
                next.databases.insert(namespace.db().into(), Arc::new(database));
            }
        }
        next
    }

    /// Returns a catalog without the database.
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

    /// Gives each collection the list of the patterns that read it. A collection whose list changes
    /// is replaced, so that it compiles its rules anew.
    fn bind_patterns(&mut self) {
        if self.collections.values().all(|collection| collection.patterns.is_empty()) {
            return;
        }
        let mut readers: HashMap<String, Vec<Reader>> = HashMap::new();
        let mut owners: Vec<_> = self.collections.values().collect();
        owners.sort_by_key(|collection| collection.id);
        for collection in owners {
            for pattern in &collection.patterns.declared {
                let (owner, namespace) = (collection.uuid, collection.namespace.clone());
                let reader = Reader { owner, namespace, pattern: Arc::clone(pattern) };
                if let Some(from) = pattern.from() {
                    readers.entry(from.to_owned()).or_default().push(reader);
                }
            }
        }
        for (name, collection) in &mut self.collections {
            let readers = readers.remove(&**name).unwrap_or_default();
            if collection.patterns.readers != readers {
                let mut next = Collection::clone(collection);
                next.patterns.readers = readers;
                *collection = Arc::new(next);
            }
        }
    }

    /// Returns the name of the database.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the collection with this name.
    pub fn collection(&self, name: &str) -> Option<&Arc<Collection>> {
        self.collections.get(name)
    }

    /// Returns all collections, in no particular order.
    pub fn collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    /// Returns the view with this name.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewDefinition>> {
        self.views.get(name)
    }

    /// Returns all views, in no particular order.
    pub fn views(&self) -> impl Iterator<Item = &Arc<ViewDefinition>> {
        self.views.values()
    }

    /// Returns true if there is a view, or a view definition that cannot be decoded.
    pub fn has_views(&self) -> bool {
        self.has_invalid_view || !self.views.is_empty()
    }

    /// Fails with 182 InvalidViewDefinition if a view definition cannot be decoded.
    pub fn check_views(&self) -> Result<()> {
        match self.has_invalid_view {
            true => Err(invalid_definition()),
            false => Ok(()),
        }
    }

    /// Returns the number of collections.
    pub fn len(&self) -> usize {
        self.collections.len()
    }

    /// Returns true if there are no collections. A published catalog has no such database.
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
