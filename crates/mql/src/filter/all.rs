//! `$all`: the array contains every operand.

use super::compare;
use super::elem_match;
use super::node::{Node, Test};
use super::operand::Comparison;
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator, find_field};
use crate::regex::Regex;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$all",
    parse: Parse::Field(parse),
    doc: "Matches arrays that contain all given values, or an element for each given `$elemMatch`.",
    since: "1.0",
}];

fn parse(parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    let Value::Array(array) = argument.value else {
        return Err(Error::bad_value("$all needs an array"));
    };
    if array.is_empty() {
        return Ok(Node::Always(false));
    }
    let path = argument.path;
    let with_elem_match = array.get(0).is_some_and(|first| operand_of_elem_match(first).is_some());
    let mut children = Vec::new();
    for value in array.iter() {
        parser.context.part()?;
        if with_elem_match {
            let Some(condition) = operand_of_elem_match(value) else {
                return Err(Error::bad_value("$all/$elemMatch has to be consistent"));
            };
            children.push(elem_match::node(parser, path, condition)?);
            continue;
        }
        children.push(match value {
            Value::Regex(regex) => {
                let regex = Regex::new(regex.pattern, regex.options)?;
                Node::path(path, Test::Regex(Box::new(regex)))
            }
            Value::Document(doc) if is_operation(doc) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            value => compare::node(Comparison::Eq, path, value, parser)?,
        });
    }
    Ok(Node::And(children))
}

/// Returns true for a document that begins with an operator. A document that begins with another
/// name with a dollar sign is a value, as in MongoDB.
fn is_operation(doc: Doc<'_>) -> bool {
    let name = doc.first().map_or("", |first| first.key());
    name.starts_with('$') && find_field(name).is_some()
}

fn operand_of_elem_match(value: Value<'_>) -> Option<Value<'_>> {
    let first = value.as_document()?.first()?;
    (first.key() == "$elemMatch").then(|| first.value())
}
