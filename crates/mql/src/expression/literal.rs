//! `$literal` and its old spelling `$const`: a value as it stands.

use super::operator::Operator;
use super::tree::Expression;
use crate::context::ParseContext;
use quire_document::Value;
use quire_error::Result;

/// This family's rows of the registry.
pub(super) const OPERATORS: &[Operator] = &[
    Operator::form("$literal", parse).doc("The value without interpretation."),
    Operator::form("$const", parse).doc("Older spelling of $literal."),
];

fn parse(_: &'static Operator, value: Value<'_>, _: &ParseContext) -> Result<Expression> {
    super::parse::check_string_size(value)?;
    Ok(Expression::constant(value))
}
