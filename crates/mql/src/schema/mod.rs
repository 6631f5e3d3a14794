//! `$jsonSchema`: JSON Schema draft 4 with BSON types, for filters and validators.
//!
//! Read in this order: `rules` (the tree), `parse`, `check` (is a value valid), `compare` (equality
//! of enumerated and unique items), `details` (the violated rules, for a validator's `errInfo`).

mod check;
mod compare;
mod details;
mod encrypt;
mod parse;
mod rules;

use crate::context::{ParseContext, Shared};
use check::Check;
pub(crate) use encrypt::has_encryption;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use rules::Rules;

/// A compiled schema, and the document that it was parsed from.
#[derive(Debug)]
pub struct Schema {
    rules: Rules,
    source: DocBuf,
}

impl Schema {
    /// Parses a schema. Fails with TypeMismatch or FailedToParse for keywords with invalid values,
    /// and with BadValue for unknown types.
    pub fn parse(doc: Doc<'_>, _context: &ParseContext) -> Result<Schema> {
        Ok(Schema { rules: parse::rules(doc, true)?, source: doc.to_owned() })
    }

    /// Returns the schema as the user wrote it.
    pub fn source(&self) -> Doc<'_> {
        self.source.as_doc()
    }

    /// Returns true if the document is valid. Fails with 51156 if a pattern exceeds its limits.
    pub fn matches(&self, doc: Doc<'_>, shared: &Shared) -> Result<bool> {
        let check = Check::new(shared);
        let complies = self.rules.accept(Value::Document(doc), &check);
        check.finish(complies)
    }

    /// Writes the rules that an invalid document violates: `operatorName` and
    /// `schemaRulesNotSatisfied`, as in a validator's `errInfo.details`. Fails with 51156 if a
    /// pattern exceeds its limits.
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
