//! `list_collections` and `list_collection_names`.

use crate::command::Command;
use crate::error::Result;
use crate::results::CollectionSpecification;
use crate::setters::{options, standard_options};
use crate::{Cursor, Database};
use bson::Document;

impl Database {
    /// Lists the database's collections and views.
    pub fn list_collections(&self) -> ListCollections {
        ListCollections { command: self.command("listCollections", 1) }
    }

    /// Lists the names of the database's collections and views.
    pub fn list_collection_names(&self) -> ListCollectionNames {
        ListCollectionNames { command: self.command("listCollections", 1) }
    }
}

/// Lists collections; see [`Database::list_collections`].
#[must_use = "an action does nothing before `run`"]
pub struct ListCollections {
    command: Command,
}

impl ListCollections {
    options! {
        /// The filter: `{name: ..., type: ..., "options.capped": ...}`.
        filter: Document => "filter",
    }

    standard_options!(comment, session);

    /// Lists the collections.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Cursor<CollectionSpecification>> {
        Cursor::open(self.command, None, None)
    }
}

/// Lists the names of collections; see [`Database::list_collection_names`].
#[must_use = "an action does nothing before `run`"]
pub struct ListCollectionNames {
    command: Command,
}

impl ListCollectionNames {
    options! {
        /// The filter: `{name: ..., type: ..., "options.capped": ...}`.
        filter: Document => "filter",
    }

    standard_options!(comment, session);

    /// Lists the names.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Vec<String>> {
        let found: Cursor<CollectionSpecification> = Cursor::open(self.command, None, None)?;
        found.map(|specification| specification.map(|found| found.name)).collect()
    }
}
