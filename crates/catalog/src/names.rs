//! Names of databases and collections. The checks are mongod's (73 InvalidNamespace).

use std::fmt;
use std::sync::Arc;

use quire_document::limits::NAMESPACE_BYTES_MAX;
use quire_error::{Error, ErrorCode, Result};

use crate::DB_NAME_BYTES_MAX;

/// The collection that shows the change log as MongoDB's oplog. It has no documents of its own.
pub const OPLOG: &str = "local.oplog.rs";

/// A database and a collection in it, as `db.collection`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    full: Arc<str>,
    db_len: u8,
}

impl Namespace {
    /// Checks the rules for every command: the database's name, a collection name that is not empty
    /// and does not begin with a dot, no NUL bytes, and the length of both together.
    pub fn new(db: &str, collection: &str) -> Result<Self> {
        if collection.is_empty() {
            return Err(invalid(format!("Invalid namespace specified '{db}.'")));
        }
        let has_nul = collection.bytes().any(|byte| byte == 0);
        if has_nul || !db_name_is_valid(db) {
            let whole = || format!("Invalid namespace specified '{db}.{collection}'");
            return Err(invalid_db_name(db, has_nul, whole));
        }
        if collection.starts_with('.') {
            return Err(invalid(format!("Collection names cannot start with '.': {collection}")));
        }
        let len = db.len() + 1 + collection.len();
        if len > NAMESPACE_BYTES_MAX {
            return Err(invalid(format!(
                "Fully qualified namespace is too long. Namespace: {db}.{collection} Max: {NAMESPACE_BYTES_MAX}"
            )));
        }
        // Built on the stack, because the conversion to a shared string copies it anyway.
        let mut bytes = [0; NAMESPACE_BYTES_MAX];
        let (db_place, rest) = bytes.split_at_mut(db.len());
        db_place.copy_from_slice(db.as_bytes());
        rest[0] = b'.';
        rest[1..][..collection.len()].copy_from_slice(collection.as_bytes());
        let full = std::str::from_utf8(&bytes[..len]).expect("two strings and a dot");
        // A valid database name is at most 63 bytes long.
        Ok(Namespace { full: full.into(), db_len: db.len() as u8 })
    }

    /// Splits `db.collection` at the first dot and checks both.
    pub fn parse(full: &str) -> Result<Self> {
        match split(full) {
            Some((db, collection)) => Self::new(db, collection),
            None => Err(invalid(format!("Invalid namespace specified '{full}'"))),
        }
    }

    /// Returns the name of the database.
    pub fn db(&self) -> &str {
        &self.full[..usize::from(self.db_len)]
    }

    /// Returns the name of the collection without its database.
    pub fn collection(&self) -> &str {
        &self.full[usize::from(self.db_len) + 1..]
    }

    /// Returns the full name, `db.collection`.
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// Returns true for `system.*`.
    pub fn is_system(&self) -> bool {
        self.collection().starts_with("system.")
    }

    /// Checks the additional rule for a namespace that a command only reads: no `$`.
    pub fn check_readable(&self) -> Result<()> {
        if self.as_str().contains('$') && !self.collection().starts_with("$cmd") {
            return Err(invalid(format!("Invalid collection name specified '{self}'")));
        }
        Ok(())
    }

    /// Refuses writes of documents to the collection that shows the change log.
    ///
    /// # Errors
    /// 73 InvalidNamespace.
    pub fn check_writable(&self) -> Result<()> {
        match self.as_str() == OPLOG {
            true => Err(invalid(format!("cannot write to {OPLOG}"))),
            false => Ok(()),
        }
    }

    /// Checks the additional rules for a namespace that is created or written: no `$`, and no
    /// unknown name that begins with `system.`.
    pub fn check_creatable(&self) -> Result<()> {
        if self.db().contains('$') {
            return Err(invalid(format!("Invalid namespace: {self}")));
        }
        let collection = self.collection();
        if collection.contains('$') {
            return Err(invalid(format!("Invalid collection name: {collection}")));
        }
        if self.is_system() {
            return match self.is_known_system() {
                true => Ok(()),
                false => Err(invalid(format!("Invalid system namespace: {self}"))),
            };
        }
        // Few names have a dot, and one character is found faster than a text.
        if collection.contains('.') && collection.contains(".system.") {
            let text = format!("cannot create a collection with '.system.' in its name: {self}");
            return Err(Error::bad_value(text));
        }
        Ok(())
    }

    fn is_known_system(&self) -> bool {
        let rest = self.collection().strip_prefix("system.").unwrap_or_default();
        match rest {
            "js" | "profile" | "users" | "views" => true,
            _ if rest.starts_with("buckets.") => true,
            "version" | "roles" | "jobs" | "new_users" | "backup_users" | "keys" | "healthlog" => {
                self.db() == "admin"
            }
            "sessions" | "indexBuilds" => self.db() == "config",
            "replset" => self.db() == "local",
            _ => false,
        }
    }
}

/// Splits `db.collection` without a check; `None` if there is no dot.
pub fn split(full: &str) -> Option<(&str, &str)> {
    // Names are short: setting up the standard library's string search costs more than it saves.
    let dot = full.bytes().position(|byte| byte == b'.')?;
    Some((&full[..dot], &full[dot + 1..]))
}

/// Checks a database name as the commands on a whole database do.
pub fn validate_db_name(db: &str) -> Result<()> {
    if db_name_is_valid(db) {
        return Ok(());
    }
    Err(invalid_db_name(db, false, || format!("Invalid database name: '{db}'")))
}

/// Returns the error for an invalid database name, or for a collection name with a NUL byte.
#[cold]
fn invalid_db_name(db: &str, has_nul: bool, otherwise: impl FnOnce() -> String) -> Error {
    if has_nul || db.contains('\0') {
        return invalid("namespaces cannot have embedded null characters");
    }
    if db.contains('.') {
        return invalid(format!("'.' is an invalid character in the database name: {db}"));
    }
    invalid(otherwise())
}

/// Returns true for a valid database name, except that `$` is checked later, by
/// [`Namespace::check_readable`] and [`Namespace::check_creatable`].
fn db_name_is_valid(db: &str) -> bool {
    !db.is_empty()
        && db.len() <= DB_NAME_BYTES_MAX
        && !db.bytes().any(|byte| matches!(byte, b'/' | b'\\' | b' ' | b'"' | b'.' | 0))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidNamespace, message)
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_first_dot() {
        let ns = Namespace::parse("db.a.b").unwrap();
        assert_eq!((ns.db(), ns.collection(), ns.as_str()), ("db", "a.b", "db.a.b"));
    }

    #[test]
    fn refuses_what_mongod_refuses() {
        for (db, collection) in [
            ("a.b", "t"),
            ("a b", "t"),
            ("a/b", "t"),
            ("a\\b", "t"),
            ("", "t"),
            ("a\"", "t"),
            ("db", ""),
            ("db", ".a"),
            ("db", "a\0b"),
            ("a\0", "t"),
        ] {
            assert_eq!(
                Namespace::new(db, collection).unwrap_err().code().number(),
                73,
                "{db}.{collection}"
            );
        }
        assert!(Namespace::new(&"d".repeat(63), "t").is_ok());
        assert!(Namespace::new(&"d".repeat(64), "t").is_err());
        assert!(Namespace::new("d", &"t".repeat(253)).is_ok());
        assert!(Namespace::new("d", &"t".repeat(254)).is_err());
        assert!(Namespace::new("-<*|?:>é", "t").unwrap().check_creatable().is_ok());
    }

    #[test]
    fn system_and_dollar_names() {
        let ns = |text: &str| Namespace::parse(text).unwrap();
        assert!(ns("d.system.foo").check_creatable().is_err());
        assert!(ns("d.system.js").check_creatable().is_ok());
        assert!(ns("d.system.version").check_creatable().is_err());
        assert!(ns("admin.system.version").check_creatable().is_ok());
        assert!(ns("d.a$b").check_creatable().is_err());
        assert!(ns("d.a$b").check_readable().is_err());
        assert!(ns("d$.a").check_creatable().is_err());
        assert!(ns("d.systemic").check_creatable().is_ok());
        assert_eq!(ns("d.a.system.b").check_creatable().unwrap_err().code().number(), 2);
        assert!(ns("d.a.systemic.b").check_creatable().is_ok());
    }
}
