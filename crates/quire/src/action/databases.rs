//! Actions on all databases of a client: listing, shutting down.

use crate::Client;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::reply::{Fields, needed};
use crate::results::DatabaseSpecification;
use crate::setters::{options, standard_options};
use bson::Document;

impl Client {
    /// Lists the databases with their sizes.
    pub fn list_databases(&self) -> ListDatabases {
        ListDatabases { command: Command::new(&self.embedded, "admin", "listDatabases", 1) }
    }

    /// Returns the names of the databases.
    pub fn list_database_names(&self) -> ListDatabaseNames {
        let mut command = Command::new(&self.embedded, "admin", "listDatabases", 1);
        command.set("nameOnly", true);
        ListDatabaseNames { command }
    }

    /// Interrupts running commands, flushes and closes the database for all clones.
    pub fn shutdown(self) -> Shutdown {
        Shutdown { client: self }
    }
}

/// Lists databases; see [`Client::list_databases`].
#[must_use = "an action does nothing before `run`"]
pub struct ListDatabases {
    command: Command,
}

impl ListDatabases {
    options! {
        /// Lists only databases that match this filter.
        filter: Document => "filter",
    }

    standard_options!(comment, session);

    /// Lists the databases.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Vec<DatabaseSpecification>> {
        let reply = self.command.run()?;
        let found = needed(reply.array("databases"), "databases")?.into_iter();
        let found = found.map(|database| {
            let database = database.map_err(Error::deserialization)?;
            let database = needed(database.as_document(), "document in databases")?;
            bson::deserialize_from_slice(database.as_bytes()).map_err(Error::deserialization)
        });
        found.collect()
    }
}

/// Lists the names of databases; see [`Client::list_database_names`].
#[must_use = "an action does nothing before `run`"]
pub struct ListDatabaseNames {
    command: Command,
}

impl ListDatabaseNames {
    options! {
        /// Lists only databases that match this filter.
        filter: Document => "filter",
    }

    standard_options!(comment, session);

    /// Lists the names.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Vec<String>> {
        let reply = self.command.run()?;
        let found = needed(reply.array("databases"), "databases")?.into_iter();
        let found = found.map(|database| {
            let database = database.map_err(Error::deserialization)?;
            Ok(needed(database.as_document(), "document in databases")?.text("name"))
        });
        found.collect()
    }
}

/// Closes the database; see [`Client::shutdown`].
#[must_use = "an action does nothing before `run`"]
pub struct Shutdown {
    client: Client,
}

impl Shutdown {
    /// Closes the database: running commands end with code 11600, background jobs stop, all data
    /// are flushed, and another process can open the directory. Later calls of other clones fail
    /// with [`ErrorKind::Shutdown`](crate::error::ErrorKind::Shutdown).
    ///
    /// # Errors
    /// The data could not be flushed.
    pub fn run(self) -> Result<()> {
        self.client.embedded.close()
    }
}
