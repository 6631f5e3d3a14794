//! The registry of query operators.

use super::node::Node;
use super::parse::{Argument, Parser};
use super::{
    all, bits, compare, constant, elem_match, exists, expr, geo, json_schema, logical, membership,
    modulo, not_built, of_type, regex, size, text,
};
use quire_document::Value;
use quire_error::Result;

/// A query operator: its name, its parser and its documentation.
pub struct QueryOperator {
    /// The name with its dollar sign.
    pub name: &'static str,
    pub(super) parse: Parse,
    /// A sentence about what it does.
    pub doc: &'static str,
    /// The first MongoDB version that has it.
    pub since: &'static str,
}

/// The position of an operator in a filter, and its parser.
pub(super) enum Parse {
    /// Instead of a field name. The parser returns `None` if there is no condition.
    Top(fn(&Parser<'_>, Value<'_>) -> Result<Option<Node>>),
    /// In a document of operators on a field.
    Field(fn(&Parser<'_>, Argument<'_>) -> Result<Node>),
    /// In a document of operators on a field; `$regex` reads it.
    Options,
}

/// The families of operators, in the manual's order.
const FAMILIES: &[&[QueryOperator]] = &[
    compare::OPERATORS,
    membership::OPERATORS,
    logical::OPERATORS,
    exists::OPERATORS,
    of_type::OPERATORS,
    expr::OPERATORS,
    json_schema::OPERATORS,
    modulo::OPERATORS,
    regex::OPERATORS,
    text::OPERATORS,
    all::OPERATORS,
    elem_match::OPERATORS,
    size::OPERATORS,
    bits::OPERATORS,
    constant::OPERATORS,
    geo::OPERATORS,
    not_built::OPERATORS,
];

/// Returns all query operators.
pub fn operators() -> impl Iterator<Item = &'static QueryOperator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Parses the operand of an operator that is used instead of a field name.
type ParseTop = fn(&Parser<'_>, Value<'_>) -> Result<Option<Node>>;

pub(super) fn find_top_level(name: &str) -> Option<ParseTop> {
    operators().find_map(|operator| match operator.parse {
        Parse::Top(parse) if operator.name == name => Some(parse),
        _ => None,
    })
}

pub(super) fn find_field(name: &str) -> Option<&'static Parse> {
    operators()
        .find(|operator| operator.name == name && !matches!(operator.parse, Parse::Top(_)))
        .map(|operator| &operator.parse)
}
