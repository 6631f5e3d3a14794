//! `$count`: how many documents.

use super::registry::{Accumulator, ParseStyle, Parsed};
use super::sum::Sum;
use crate::expression::Expression;
use quire_document::Value;
use quire_error::{Error, Result};

pub(super) const COUNT: Accumulator = Accumulator {
    name: "$count",
    since: "5.0",
    doc: "How many documents there are; takes an empty document.",
    parse: ParseStyle::Own(|value, _| parse(value)),
};

fn parse(value: Value<'_>) -> Result<Parsed> {
    match value {
        Value::Document(doc) if doc.is_empty() => {}
        _ => return Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
    Ok(Parsed::unary(Expression::constant(1), |_| Box::new(Sum::default())))
}
