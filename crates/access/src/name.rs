//! Names of users and roles: a name and the database that it belongs to.

use quire_document::{Array, Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use std::fmt;

/// The name of a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName {
    /// The name of the role in its database.
    pub role: String,
    /// The database that the role belongs to.
    pub db: String,
}

/// The name of a user.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserName {
    /// The name of the user in its database.
    pub user: String,
    /// The database that the user belongs to and whose credentials a login checks.
    pub db: String,
}

impl RoleName {
    /// Returns the role of this name in this database.
    pub fn new(role: &str, db: &str) -> Self {
        RoleName { role: role.to_owned(), db: db.to_owned() }
    }

    /// Returns the `_id` of the role's document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.role)
    }

    /// Reads a role: `{role, db}`, or a string that names a role of the database `db`.
    ///
    /// # Errors
    /// 2 BadValue for a missing field, 12 UnsupportedFormat for an empty database.
    pub fn parse(value: Value<'_>, db: &str) -> Result<Self> {
        match value {
            Value::String(role) => RoleName::checked(role, db),
            Value::Document(doc) => {
                let role = text_of(doc, "role", "user")?;
                RoleName::checked(role, text_of(doc, "db", "role")?)
            }
            _ => Err(Error::bad_value("Role name must be either a document or string")),
        }
    }

    /// Reads an array of roles.
    ///
    /// # Errors
    /// As [`RoleName::parse`].
    pub fn parse_list(array: Array<'_>, db: &str) -> Result<Vec<Self>> {
        array.iter().map(|value| RoleName::parse(value, db)).collect()
    }

    /// Appends the fields `role` and `db`.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        out.append("role", &self.role).append("db", &self.db);
    }

    fn checked(role: &str, db: &str) -> Result<Self> {
        check_text(role, "Role name")?;
        check_text(db, "Role db")?;
        Ok(RoleName::new(role, db))
    }
}

impl UserName {
    /// Returns the user of this name in this database.
    pub fn new(user: &str, db: &str) -> Self {
        UserName { user: user.to_owned(), db: db.to_owned() }
    }

    /// Returns the `_id` of the user's document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.user)
    }

    /// Reads a user: `{user, db}`, or a string that names a user of the database `db`.
    ///
    /// # Errors
    /// 2 BadValue for a missing field or a value of another type.
    pub fn parse(value: Value<'_>, db: &str) -> Result<Self> {
        match value {
            Value::String(user) => Ok(UserName::new(user, db)),
            Value::Document(doc) => {
                let user = text_of(doc, "user", "user")?;
                Ok(UserName::new(user, text_of(doc, "db", "user")?))
            }
            _ => Err(Error::bad_value("User name must be either a document or string")),
        }
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.role, self.db)
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.user, self.db)
    }
}

fn text_of<'a>(doc: Doc<'a>, field: &str, owner: &str) -> Result<&'a str> {
    doc.get(field).and_then(|value| value.as_str()).ok_or_else(|| {
        Error::bad_value(format!("{owner} name must contain a string field named: {field}"))
    })
}

fn check_text(text: &str, what: &str) -> Result<()> {
    if text.is_empty() {
        let text = format!("{what} must be non-empty strings");
        return Err(Error::new(ErrorCode::UnsupportedFormat, text));
    }
    match text.contains('\0') {
        true => Err(Error::bad_value(format!("{what} must not contain NUL characters"))),
        false => Ok(()),
    }
}
