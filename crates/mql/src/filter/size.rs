//! `$size`: the number of elements of an array.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::text::show;
use quire_error::{Error, Result};

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$size",
    parse: Parse::Field(parse),
    doc: "Matches arrays with exactly this number of elements.",
    since: "1.0",
}];

fn parse(_: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    let value = argument.value;
    let failed = |reason: &str| {
        let text = format!("Failed to parse $size. {reason}: $size: {}", show(value));
        Err(Error::bad_value(text))
    };
    if !value.is_number() {
        return failed("Expected a number in");
    }
    match value.exact_i64() {
        None => failed("Expected an integer"),
        Some(size) if size < 0 => failed("Expected a non-negative number in"),
        Some(size) if i32::try_from(size).is_err() => failed("Cannot represent in an int"),
        Some(size) => Ok(Node::path(argument.path, Test::Size(size))),
    }
}
