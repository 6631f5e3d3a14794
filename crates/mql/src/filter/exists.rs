//! `$exists`: the field exists, with any value.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::expression::is_true;
use quire_error::Result;

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$exists",
    parse: Parse::Field(parse),
    doc: "Matches documents with the field (true) or without it (false).",
    since: "1.0",
}];

fn parse(_: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    let node = Node::path(argument.path, Test::Exists);
    Ok(if is_true(Some(argument.value)) { node } else { Node::negate(node) })
}
