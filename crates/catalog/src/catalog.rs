//! The catalog: an immutable map of databases to collections.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use quire_document::{Binary, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};

use crate::{Collection, Namespace};

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
        let (db, collection) = full.split_once('.')?;
        self.collection(db, collection)
    }

    /// The collection, or 26 NamespaceNotFound.
    pub fn require(&self, namespace: &Namespace) -> Result<&Arc<Collection>> {
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
        let mut next = self.next();
        let db: Arc<str> = collection.namespace.db().into();
        let mut database = match next.databases.get(&db) {
            Some(database) => Database::clone(database),
            None => Database::new(Arc::clone(&db)),
        };
        database.collections.insert(collection.namespace.collection().into(), collection);
        next.databases.insert(db, Arc::new(database));
        next
    }

    /// The next catalog, without what stood under the namespace.
    #[must_use]
    pub fn without(&self, namespace: &Namespace) -> Self {
        let mut next = self.next();
        if let Some(database) = next.databases.get(namespace.db()) {
            let mut database = Database::clone(database);
            database.collections.remove(namespace.collection());
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
        Database { name, collections: HashMap::default() }
    }

    /// The name.
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
