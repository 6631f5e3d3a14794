//! `$jsonSchema`: JSON Schema draft 4 with BSON's types, as filters and validators use it.
//!
//! Reading order: `rules` (the tree), `parse`, `check` (does a value comply), `compare` (equality
//! of enumerated and unique items), `details` (what failed, for a validator's `errInfo`).

mod check;
mod compare;
mod details;
mod encrypt;
mod parse;
mod rules;

use crate::context::{ParseContext, Shared};
use check::Check;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use rules::Rules;

/// A compiled schema and the document that it was parsed from.
#[derive(Debug)]
pub struct Schema {
    rules: Rules,
    source: DocBuf,
}

impl Schema {
    /// Parses a schema. Errors: TypeMismatch and FailedToParse for keywords used wrongly,
    /// BadValue for unknown types.
    pub fn parse(doc: Doc<'_>, _context: &ParseContext) -> Result<Schema> {
        Ok(Schema { rules: parse::rules(doc, true)?, source: doc.to_owned() })
    }

    /// The schema as it was written.
    pub fn source(&self) -> Doc<'_> {
        self.source.as_doc()
    }

    /// True if the document complies. Fails with 51156 if a pattern passes its limits.
    pub fn matches(&self, doc: Doc<'_>, shared: &Shared) -> Result<bool> {
        let check = Check::new(shared);
        let complies = self.rules.accept(Value::Document(doc), &check);
        check.finish(complies)
    }

    /// Writes what a document that does not comply fails in: `operatorName` and
    /// `schemaRulesNotSatisfied`, as a validator's `errInfo.details` shows it.
    /// Fails with 51156 if a pattern passes its limits.
    pub fn write_failure(
        &self,
        doc: Doc<'_>,
        shared: &Shared,
        writer: &mut DocWriter<'_>,
    ) -> Result<()> {
        let check = Check::new(shared);
        details::write_root(&self.rules, doc, &check, writer);
        check.finish(())
    }
}

#[cfg(test)]
mod tests;
