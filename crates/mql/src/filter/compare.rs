//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: comparisons with values of the operand's type.

use super::node::{Node, Test};
use super::operand::{Comparison, Operand};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$eq",
        parse: Parse::Field(|parser, argument| compare(Comparison::Eq, parser, argument)),
        doc: "Matches values equal to the operand.",
        since: "3.0",
    },
    QueryOperator {
        name: "$ne",
        parse: Parse::Field(not_equal),
        doc: "Matches documents without a value equal to the operand.",
        since: "1.0",
    },
    QueryOperator {
        name: "$gt",
        parse: Parse::Field(|parser, argument| compare(Comparison::Gt, parser, argument)),
        doc: "Matches values greater than the operand.",
        since: "1.0",
    },
    QueryOperator {
        name: "$gte",
        parse: Parse::Field(|parser, argument| compare(Comparison::Gte, parser, argument)),
        doc: "Matches values greater than or equal to the operand.",
        since: "1.0",
    },
    QueryOperator {
        name: "$lt",
        parse: Parse::Field(|parser, argument| compare(Comparison::Lt, parser, argument)),
        doc: "Matches values less than the operand.",
        since: "1.0",
    },
    QueryOperator {
        name: "$lte",
        parse: Parse::Field(|parser, argument| compare(Comparison::Lte, parser, argument)),
        doc: "Matches values less than or equal to the operand.",
        since: "1.0",
    },
];

/// Returns a comparison of the values at `path`.
pub(super) fn node(
    comparison: Comparison,
    path: &str,
    value: Value<'_>,
    parser: &Parser<'_>,
) -> Result<Node> {
    if matches!(value, Value::Undefined) {
        return Err(Error::bad_value("cannot compare to undefined"));
    }
    if comparison != Comparison::Eq && matches!(value, Value::Regex(_)) {
        let text = format!("Can't have RegEx as arg to predicate over field '{path}'.");
        return Err(Error::bad_value(text));
    }
    Ok(Node::path(path, Test::Compare(comparison, Operand::new(value, parser.collator()))))
}

fn compare(comparison: Comparison, parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    node(comparison, argument.path, argument.value, parser)
}

fn not_equal(parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    if matches!(argument.value, Value::Regex(_)) {
        return Err(Error::bad_value("Can't have regex as arg to $ne."));
    }
    Ok(Node::negate(node(Comparison::Eq, argument.path, argument.value, parser)?))
}
