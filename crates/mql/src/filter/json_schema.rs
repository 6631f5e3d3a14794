//! `$jsonSchema`: the document is valid for a schema.

use super::node::Node;
use super::parse::Parser;
use super::registry::{Operator, Parse};
use crate::schema::Schema;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The registry row of this operator.
pub(super) const OPERATORS: &[Operator] = &[Operator {
    name: "$jsonSchema",
    parse: Parse::Top(parse),
    doc: "Matches documents that are valid for a JSON Schema (draft 4, with BSON types).",
    since: "3.6",
}];

fn parse(parser: &Parser<'_>, value: Value<'_>) -> Result<Option<Node>> {
    if !parser.features.json_schema {
        let text = "$jsonSchema is not allowed in this context";
        return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, text));
    }
    let Value::Document(doc) = value else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    Ok(Some(Node::JsonSchema(Arc::new(Schema::parse(doc, parser.context)?))))
}
