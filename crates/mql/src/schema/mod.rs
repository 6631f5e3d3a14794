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

use crate::context::ParseContext;
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

    /// True if the document complies.
    pub fn matches(&self, doc: Doc<'_>) -> bool {
        self.rules.accept(Value::Document(doc))
    }

    /// Writes what a document that does not comply fails in: `operatorName` and
    /// `schemaRulesNotSatisfied`, as a validator's `errInfo.details` shows it.
    pub fn write_failure(&self, doc: Doc<'_>, writer: &mut DocWriter<'_>) {
        details::write_root(&self.rules, doc, writer);
    }
}

#[cfg(test)]
mod tests;
