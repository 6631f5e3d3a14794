//! A database: a name and its client.

use crate::command::Command;
use crate::embedded::Embedded;
use bson::Bson;
use std::sync::Arc;

/// A database of a [`Client`](crate::Client). Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pub(crate) embedded: Arc<Embedded>,
    name: String,
}

impl Database {
    pub(crate) fn new(embedded: &Arc<Embedded>, name: &str) -> Database {
        Database { embedded: Arc::clone(embedded), name: name.to_owned() }
    }

    /// Returns the database's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn command(&self, name: &str, target: impl Into<Bson>) -> Command {
        Command::new(&self.embedded, &self.name, name, target)
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
}
