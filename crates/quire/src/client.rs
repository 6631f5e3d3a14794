//! A client: an open database.

use crate::database::Database;
use crate::embedded::Embedded;
use crate::error::Result;
use crate::open::OpenOptions;
use std::path::Path;
use std::sync::Arc;

/// An open database. It is cheap to clone; clones share it, and can be used from any thread. After
/// the last client, database, collection and cursor made from it are dropped, all data are flushed
/// and the database is closed; [`shutdown`](Client::shutdown) does so at once and returns errors.
#[derive(Clone)]
pub struct Client {
    pub(crate) embedded: Arc<Embedded>,
}

impl Client {
    /// Opens a database directory, creating it if it is missing or empty.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Client> {
        OpenOptions::new().open(path)
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// Those of [`OpenOptions::in_memory`].
    pub fn in_memory() -> Result<Client> {
        OpenOptions::new().in_memory()
    }

    pub(crate) fn over(embedded: Arc<Embedded>) -> Client {
        Client { embedded }
    }

    /// Returns the database with this name; the first write creates it.
    pub fn database(&self, name: &str) -> Database {
        Database::new(&self.embedded, name)
    }

    /// Returns the warnings of the open: for example, that a torn record was trimmed after a power
    /// cut. Nothing that was acknowledged is lost.
    pub fn warnings(&self) -> &[String] {
        self.embedded.warnings()
    }
}

impl OpenOptions {
    /// Opens a database directory; creates it if it is missing or empty. Only one process at a time
    /// can have it open, and `quire serve` counts too.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::error::ErrorKind::Open): the directory is in use, contains
    /// something else, was written by a newer version or is damaged; a parameter is invalid.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Client> {
        Embedded::on_disk(path.as_ref(), self).map(Client::over)
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::error::ErrorKind::Open): a parameter is invalid.
    pub fn in_memory(self) -> Result<Client> {
        Embedded::in_memory(self).map(Client::over)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
