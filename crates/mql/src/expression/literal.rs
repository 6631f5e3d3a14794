//! `$literal` and its older name `$const`: a value that is not interpreted.

use super::operator::Operator;
use super::tree::Expression;
use crate::context::ParseContext;
use quire_document::Value;
use quire_error::Result;

/// The registry rows of this family.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::form("$literal", parse).doc("The value without interpretation."),
    Operator::form("$const", parse).doc("The older name of $literal."),
];

fn parse(_: &'static Operator, value: Value<'_>, _: &ParseContext) -> Result<Expression> {
    super::parse::check_string_size(value)?;
    Ok(Expression::constant(value))
}
