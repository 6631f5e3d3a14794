//! The resources that privileges apply to, and the targets of operations. (MongoDB manual,
//! "Resource Document".)

use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

/// The resource of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The server as a whole.
    Cluster,
    /// Everything, system collections included.
    Any,
    /// Collections by name. An empty database stands for every database, an empty collection for
    /// every collection except system collections.
    Collection {
        /// The database, or empty for all.
        db: String,
        /// The collection, or empty for all.
        collection: String,
    },
    /// The bucket collections of time-series collections; empty names have the same meaning.
    Buckets {
        /// The database, or empty for all.
        db: String,
        /// The time-series collection, or empty for all.
        collection: String,
    },
}

/// The target of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The server as a whole.
    Cluster,
    /// A database with all its collections.
    Database(&'a str),
    /// A collection, given by its database and its name.
    Collection(&'a str, &'a str),
}

impl Resource {
    /// Returns the resource of one collection; an empty name stands for several collections.
    pub fn collection(db: &str, collection: &str) -> Resource {
        Resource::Collection { db: db.to_owned(), collection: collection.to_owned() }
    }

    /// Reads a resource document.
    ///
    /// # Errors
    /// 9 FailedToParse for anything that is not exactly one of the documented forms.
    pub fn parse(doc: Doc<'_>) -> Result<Resource> {
        let mut names = doc.fields();
        let found = (names.next(), names.next(), names.next());
        let (first, second) = match found {
            (Some(("cluster", value)), None, _) if truth(value) => return Ok(Resource::Cluster),
            (Some(("anyResource", value)), None, _) if truth(value) => return Ok(Resource::Any),
            (Some(("system_buckets", Value::String(name))), None, _) => {
                return Ok(Resource::Buckets { db: String::new(), collection: name.to_owned() });
            }
            (Some(first), Some(second), None) => (first, second),
            _ => return Err(malformed()),
        };
        match (first, second) {
            (("db", Value::String(db)), ("collection", Value::String(collection)))
            | (("collection", Value::String(collection)), ("db", Value::String(db))) => {
                Ok(Resource::collection(db, collection))
            }
            (("db", Value::String(db)), ("system_buckets", Value::String(name)))
            | (("system_buckets", Value::String(name)), ("db", Value::String(db))) => {
                Ok(Resource::Buckets { db: db.to_owned(), collection: name.to_owned() })
            }
            _ => Err(malformed()),
        }
    }

    /// Writes the resource document.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        match self {
            Resource::Cluster => {
                out.append("cluster", true);
            }
            Resource::Any => {
                out.append("anyResource", true);
            }
            Resource::Collection { db, collection } => {
                out.append("db", db).append("collection", collection);
            }
            Resource::Buckets { db, collection } => {
                if !db.is_empty() {
                    out.append("db", db);
                }
                out.append("system_buckets", collection);
            }
        }
    }

    /// Returns true if a privilege on this resource applies to the target.
    pub fn covers(&self, target: Target<'_>) -> bool {
        match (self, target) {
            (Resource::Any, _) | (Resource::Cluster, Target::Cluster) => true,
            (Resource::Collection { db, collection }, Target::Database(name)) => {
                collection.is_empty() && covers_database(db, name)
            }
            (Resource::Collection { db, collection }, Target::Collection(name, _))
                if collection.is_empty() =>
            {
                !is_system(target) && covers_database(db, name)
            }
            (Resource::Collection { db, collection }, Target::Collection(name, own)) => {
                collection == own && (db.is_empty() || db == name)
            }
            (Resource::Buckets { db, collection }, Target::Collection(name, own)) => {
                let Some(series) = own.strip_prefix("system.buckets.") else { return false };
                (collection.is_empty() || collection == series)
                    && if db.is_empty() { is_ordinary(name) } else { db == name }
            }
            _ => false,
        }
    }

    /// Returns the database whose administrator may grant a privilege on this resource: `admin` for
    /// a resource that is not limited to one database.
    pub fn home(&self) -> &str {
        match self {
            Resource::Collection { db, .. } | Resource::Buckets { db, .. } if !db.is_empty() => db,
            _ => "admin",
        }
    }
}

/// Returns true if the resource's database, or the empty name, covers the database `name`. An empty
/// name stands for every database except `local` and `config`, whose collections belong to the
/// server.
fn covers_database(resource: &str, name: &str) -> bool {
    if resource.is_empty() { is_ordinary(name) } else { resource == name }
}

fn is_ordinary(db: &str) -> bool {
    !matches!(db, "local" | "config")
}

/// Returns true for collections to which a privilege on a whole database does not apply.
fn is_system(target: Target<'_>) -> bool {
    match target {
        Target::Collection("local", collection) => {
            collection.starts_with("system.") || collection.starts_with("replset.")
        }
        Target::Collection(_, collection) => collection.starts_with("system."),
        Target::Cluster | Target::Database(_) => false,
    }
}

fn truth(value: Value<'_>) -> bool {
    value.as_bool() == Some(true)
}

fn malformed() -> Error {
    Error::failed_to_parse(
        "a resource is {cluster: true}, {anyResource: true}, or {db: <string>, collection: <string>}",
    )
}

#[cfg(test)]
mod tests {
    use super::{Resource, Target};

    fn covers(db: &str, collection: &str, target: Target<'_>) -> bool {
        Resource::collection(db, collection).covers(target)
    }

    #[test]
    fn a_database_covers_its_ordinary_collections() {
        assert!(covers("shop", "", Target::Database("shop")));
        assert!(covers("shop", "", Target::Collection("shop", "orders")));
        assert!(!covers("shop", "", Target::Collection("shop", "system.users")));
        assert!(!covers("shop", "", Target::Collection("other", "orders")));
        assert!(!covers("shop", "", Target::Cluster));
    }

    #[test]
    fn an_empty_database_name_excludes_those_of_the_server() {
        assert!(covers("", "", Target::Collection("shop", "orders")));
        assert!(covers("", "", Target::Collection("admin", "x")));
        assert!(!covers("", "", Target::Collection("config", "settings")));
        assert!(!covers("", "", Target::Database("local")));
        assert!(!covers("local", "", Target::Collection("local", "replset.election")));
    }

    #[test]
    fn a_collection_is_named_in_one_database_or_in_all() {
        assert!(covers("", "system.profile", Target::Collection("shop", "system.profile")));
        assert!(covers("", "system.profile", Target::Collection("local", "system.profile")));
        assert!(covers("shop", "orders", Target::Collection("shop", "orders")));
        assert!(!covers("shop", "orders", Target::Collection("shop", "ordersOld")));
        assert!(!covers("shop", "orders", Target::Database("shop")));
        assert!(Resource::Any.covers(Target::Collection("admin", "system.users")));
        assert!(!Resource::Cluster.covers(Target::Database("shop")));
    }
}
