//! A client: an open database and what it holds.

use crate::database::Database;
use crate::embedded::Embedded;
use crate::error::Result;
use crate::open::OpenOptions;
use std::path::Path;
use std::sync::Arc;

/// An open database. Cheap to clone; clones share it, and may be used from any thread. When the
/// last client, database, collection and cursor made from it are gone, everything is flushed and
/// closed; [`shutdown`](Client::shutdown) does so at once and tells what goes wrong.
#[derive(Clone)]
pub struct Client {
    pub(crate) embedded: Arc<Embedded>,
}

impl Client {
    /// Opens a database directory, creating it if it is missing or empty.
    ///
    /// # Errors
    /// As [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Client> {
        OpenOptions::new().open(path)
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// As [`OpenOptions::in_memory`].
    pub fn in_memory() -> Result<Client> {
        OpenOptions::new().in_memory()
    }

    pub(crate) fn over(embedded: Arc<Embedded>) -> Client {
        Client { embedded }
    }

    /// Returns the database of this name; it exists once something is written to it.
    pub fn database(&self, name: &str) -> Database {
        Database::new(&self.embedded, name)
    }

    /// What was noticed when the database was opened: a torn record that was trimmed after a
    /// power cut, for example. Nothing that was acknowledged is lost.
    pub fn warnings(&self) -> &[String] {
        self.embedded.warnings()
    }
}

impl OpenOptions {
    /// Opens a database directory, creating it if it is missing or empty. One process at a time
    /// can have it open, `quire serve` included.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::error::ErrorKind::Open): the directory is in use, holds
    /// something else, was written by a newer version or is damaged; a parameter is wrong.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Client> {
        Embedded::on_disk(path.as_ref(), self).map(Client::over)
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::error::ErrorKind::Open): a parameter is wrong.
    pub fn in_memory(self) -> Result<Client> {
        Embedded::in_memory(self).map(Client::over)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
