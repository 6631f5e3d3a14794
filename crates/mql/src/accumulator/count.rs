//! `$count`: the number of documents.

use super::registry::{Accumulator, Parsed};
use super::sum;
use crate::expression::Expression;
use crate::totals::Sum;
use quire_document::Value;
use quire_error::{Error, Result};

pub(super) const COUNT: Accumulator = Accumulator::own(
    "$count",
    "5.0",
    "The number of documents; the operand is an empty document.",
    |value, _| parse(value),
)
.with_table(sum::table);

fn parse(value: Value<'_>) -> Result<Parsed> {
    match value {
        Value::Document(doc) if doc.is_empty() => {}
        _ => return Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
    Ok(Parsed::unary(Expression::constant(1), |_| Box::new(Sum::default())))
}
