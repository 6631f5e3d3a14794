//! The one table of query operators.

use super::node::Node;
use super::parse::{Argument, Parser};
use super::{
    all, bits, compare, constant, elem_match, elsewhere, exists, expr, json_schema, logical,
    membership, modulo, regex, size, type_set,
};
use quire_document::Value;
use quire_error::Result;

/// A query operator: its name, its parsing, and what the manual's table says of it.
pub struct Operator {
    /// The name with its dollar sign.
    pub name: &'static str,
    pub(super) parse: Parse,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// The first MongoDB version that has it.
    pub since: &'static str,
}

/// Where an operator may stand, and how it is parsed there.
pub(super) enum Parse {
    /// Where a field's name may stand. `None`: it says nothing.
    Top(fn(&Parser<'_>, Value<'_>) -> Result<Option<Node>>),
    /// In a field's document of operators.
    Field(fn(&Parser<'_>, Argument<'_>) -> Result<Node>),
    /// In a field's document of operators, read by `$regex`.
    Options,
}

/// The families of operators, in the order of the manual.
const FAMILIES: &[&[Operator]] = &[
    compare::OPERATORS,
    membership::OPERATORS,
    logical::OPERATORS,
    exists::OPERATORS,
    type_set::OPERATORS,
    expr::OPERATORS,
    json_schema::OPERATORS,
    modulo::OPERATORS,
    regex::OPERATORS,
    all::OPERATORS,
    elem_match::OPERATORS,
    size::OPERATORS,
    bits::OPERATORS,
    constant::OPERATORS,
    elsewhere::OPERATORS,
];

/// All query operators.
pub fn operators() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Parses the operand of an operator that stands at the top of a filter.
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
