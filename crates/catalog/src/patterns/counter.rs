//! `counter`: one number that many clients increment, and that changes only by what it is.

use quire_document::DocWriter;
use quire_error::Result;

use super::fields::Fields;

/// The definition of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// The path of the number.
    pub path: String,
    /// True if increments of one document that come at the same time commit together.
    pub merge: bool,
}

impl Counter {
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let path = fields.required("path")?.path()?;
        let merge = fields.optional("merge").map_or(Ok(false), |field| field.flag())?;
        Ok(Counter { path, merge })
    }

    pub(super) fn write(&self, writer: &mut DocWriter<'_>) {
        writer.append("type", "counter").append("path", self.path.as_str());
        writer.append("merge", self.merge);
    }
}
