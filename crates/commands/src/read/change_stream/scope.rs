//! The namespaces that a change stream watches.

use quire_catalog::{Catalog, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::stage::ChangeStream;

/// What a stream watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A collection, by its full name.
    Collection(String),
    /// All collections of a database.
    Database(String),
    /// All databases except those of the server.
    Cluster,
}

/// The namespace of a pipeline without a collection ends with this.
const WITHOUT_COLLECTION: &str = ".$cmd.aggregate";

impl Scope {
    /// Returns the scope of a stream on `namespace`.
    ///
    /// # Errors
    /// 72 InvalidOptions for all changes outside of `admin`, 73 InvalidNamespace for what belongs to
    /// the server.
    pub fn of(namespace: &str, spec: &ChangeStream) -> Result<Self> {
        let database = namespace.strip_suffix(WITHOUT_COLLECTION);
        if spec.all_changes {
            if database == Some("admin") {
                return Ok(Scope::Cluster);
            }
            let text = format!(
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found {namespace}"
            );
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        let db = database.unwrap_or_else(|| split(namespace).0);
        if is_internal(db) {
            let text = format!("$changeStream may not be opened on the internal {db} database");
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        if database.is_some() {
            return Ok(Scope::Database(db.to_owned()));
        }
        if is_own(split(namespace).1) {
            let text =
                format!("$changeStream may not be opened on the internal {namespace} collection");
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
        Ok(Scope::Collection(namespace.to_owned()))
    }

    /// Fails with 166 CommandNotSupportedOnView for a view, which has no changes of its own, and for a
    /// time-series collection, whose changes are not logged.
    pub fn check_view(&self, catalog: &Catalog) -> Result<()> {
        let Scope::Collection(namespace) = self else { return Ok(()) };
        let watched = Namespace::parse(namespace)?;
        let refused = catalog.refuse_view_like(&watched);
        refused.map_err(|error| error.context("change streams watch ordinary collections"))
    }

    /// Returns true if the stream has the changes of a collection or a database with this name.
    pub fn has(&self, namespace: &str) -> bool {
        let (db, collection) = split(namespace);
        match self {
            Scope::Collection(own) => namespace == own,
            Scope::Database(own) => db == own && !is_own(collection),
            Scope::Cluster => !is_internal(db) && !is_own(collection),
        }
    }
}

/// Returns the database and the collection of a name; an empty collection for that of a database.
pub(super) fn split(namespace: &str) -> (&str, &str) {
    namespace.split_once('.').unwrap_or((namespace, ""))
}

/// Returns true for a database of the server.
fn is_internal(db: &str) -> bool {
    matches!(db, "admin" | "config" | "local")
}

/// Returns true for a collection of the server.
fn is_own(collection: &str) -> bool {
    collection.starts_with("system.") || collection.starts_with('$')
}
