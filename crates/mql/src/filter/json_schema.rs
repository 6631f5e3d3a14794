//! `$jsonSchema`: the document is valid for a schema.

use super::node::Node;
use super::parse::Parser;
use super::registry::{Parse, QueryOperator};
use crate::schema::{Schema, has_encryption};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$jsonSchema",
    parse: Parse::Top(parse),
    doc: "Matches documents that are valid for a JSON Schema (draft 4, with BSON types).",
    since: "3.6",
}];

/// Counts all fields and elements of a schema as parts, before the schema is compiled.
fn count_parts(parser: &Parser<'_>, doc: Doc<'_>) -> Result<()> {
    for (_, value) in doc.fields() {
        parser.context.part()?;
        match value {
            Value::Document(inner) => count_parts(parser, inner)?,
            Value::Array(inner) => count_parts(parser, inner.as_doc())?,
            _ => {}
        }
    }
    Ok(())
}

fn parse(parser: &Parser<'_>, value: Value<'_>) -> Result<Option<Node>> {
    if !parser.features.json_schema {
        let text = "$jsonSchema is not allowed in this context";
        return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
    }
    let Value::Document(doc) = value else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    count_parts(parser, doc)?;
    if !parser.features.encryption && has_encryption(doc) {
        let text = "Encryption-related validator keywords are not allowed in this context";
        return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
    }
    Ok(Some(Node::JsonSchema(Arc::new(Schema::parse(doc, parser.context)?))))
}
