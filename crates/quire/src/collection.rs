//! A collection: a name and the type of its documents.

use crate::command::Command;
use crate::database::Database;
use crate::options::Namespace;
use std::marker::PhantomData;

/// A collection of a [`Database`]; its documents are read and written as `T`. Cheap to clone.
pub struct Collection<T> {
    pub(crate) database: Database,
    name: String,
    documents: PhantomData<fn() -> T>,
}

impl<T> Collection<T> {
    pub(crate) fn new(database: Database, name: &str) -> Collection<T> {
        Collection { database, name: name.to_owned(), documents: PhantomData }
    }

    /// Returns the collection's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of database and collection.
    pub fn namespace(&self) -> Namespace {
        Namespace { db: self.database.name().to_owned(), coll: self.name.clone() }
    }

    /// Returns the same collection with documents of another type.
    pub fn clone_with_type<U: Send + Sync>(&self) -> Collection<U> {
        Collection::new(self.database.clone(), &self.name)
    }

    pub(crate) fn command(&self, name: &str) -> Command {
        self.database.command(name, self.name.as_str())
    }
}

impl Database {
    /// Returns a collection whose documents are read and written as `T`.
    pub fn collection<T: Send + Sync>(&self, name: &str) -> Collection<T> {
        Collection::new(self.clone(), name)
    }
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Collection::new(self.database.clone(), &self.name)
    }
}

impl<T> std::fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collection({})", self.namespace())
    }
}
