//! `$and`, `$or`, `$nor`, `$not`: combinations of conditions.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::regex::Regex;
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$and",
        parse: Parse::Top(|parser, value| list("$and", parser, value).map(Node::And).map(Some)),
        doc: "Matches documents that match all filters in an array.",
        since: "2.0",
    },
    QueryOperator {
        name: "$or",
        parse: Parse::Top(|parser, value| list("$or", parser, value).map(Node::Or).map(Some)),
        doc: "Matches documents that match one filter in an array.",
        since: "1.6",
    },
    QueryOperator {
        name: "$nor",
        parse: Parse::Top(|parser, value| list("$nor", parser, value).map(Node::Nor).map(Some)),
        doc: "Matches documents that match none of the filters in an array.",
        since: "1.8",
    },
    QueryOperator {
        name: "$not",
        parse: Parse::Field(not),
        doc: "Matches documents whose field does not match the operators, and documents without the field.",
        since: "1.0",
    },
];

fn list(operator: &str, parser: &Parser<'_>, value: Value<'_>) -> Result<Vec<Node>> {
    let Value::Array(array) = value else {
        return Err(Error::bad_value(format!("{operator} must be an array")));
    };
    if array.is_empty() {
        let text = format!("{operator} argument must be a non-empty array");
        return Err(Error::bad_value(text));
    }
    let parser = parser.deeper()?;
    array
        .iter()
        .map(|value| match value {
            Value::Document(doc) => {
                parser.context.part()?;
                parser.document(doc)
            }
            _ => Err(Error::bad_value(format!("{operator} argument's entries must be objects"))),
        })
        .collect()
}

fn not(parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    match argument.value {
        Value::Regex(regex) => {
            let regex = Regex::new(regex.pattern, regex.options)?;
            Ok(Node::negate(Node::path(argument.path, Test::Regex(Box::new(regex)))))
        }
        Value::Document(doc) if doc.is_empty() => Err(Error::bad_value("$not cannot be empty")),
        Value::Document(doc) => {
            let mut children = parser.operators(argument.path, doc)?;
            Ok(Node::negate(match children.len() {
                1 => children.remove(0),
                _ => Node::And(children),
            }))
        }
        _ => Err(Error::bad_value("$not needs a regex or a document")),
    }
}
