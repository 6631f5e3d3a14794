//! `distinct`.

use crate::Collection;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::reply::{Fields, needed};
use crate::setters::standard_options;
use bson::{Bson, Document};

impl<T: Send + Sync> Collection<T> {
    /// Returns the distinct values of a field in the matching documents.
    pub fn distinct(&self, field_name: impl AsRef<str>, filter: Document) -> Distinct {
        let mut command = self.command("distinct");
        command.set("key", field_name.as_ref()).set("query", filter);
        Distinct { command }
    }
}

/// Returns distinct values; see [`Collection::distinct`].
#[must_use = "an action does nothing before `run`"]
pub struct Distinct {
    command: Command,
}

impl Distinct {
    standard_options!(collation, comment, hint, max_time, read_concern, session);

    /// Returns the values.
    ///
    /// # Errors
    /// The errors of the command.
    pub fn run(self) -> Result<Vec<Bson>> {
        let reply = self.command.run()?;
        let values = needed(reply.array("values"), "values")?;
        Vec::try_from(values).map_err(Error::deserialization)
    }
}
