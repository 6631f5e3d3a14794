//! `$mod`: the value modulo a divisor equals a remainder.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use quire_document::{Value, number::Number};
use quire_error::{Error, Result};

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$mod",
    parse: Parse::Field(parse),
    doc: "Matches numbers with the given remainder; value, divisor and remainder are truncated to integers.",
    since: "1.0",
}];

/// Divisor and remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulo {
    /// The divisor, which is never zero.
    pub divisor: i64,
    /// The remainder; its sign is that of the dividends that match.
    pub remainder: i64,
}

impl Modulo {
    /// Returns true if the value is a number with this remainder.
    pub fn test(self, value: Value<'_>) -> bool {
        truncated(value).is_some_and(|number| number.wrapping_rem(self.divisor) == self.remainder)
    }
}

fn parse(_: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    let Value::Array(array) = argument.value else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    let (divisor, remainder) = match array.to_vec()[..] {
        [divisor, remainder] => (divisor, remainder),
        [] | [_] => return Err(Error::bad_value("malformed mod, not enough elements")),
        _ => return Err(Error::bad_value("malformed mod, too many elements")),
    };
    let divisor = whole(divisor, "divisor")?;
    let remainder = whole(remainder, "remainder")?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Node::path(argument.path, Test::Mod(Modulo { divisor, remainder })))
}

fn whole(value: Value<'_>, what: &str) -> Result<i64> {
    if !value.is_number() {
        return Err(Error::bad_value(format!("malformed mod, {what} not a number")));
    }
    truncated(value).ok_or_else(|| {
        let reason = if is_not_finite(value) {
            "Unable to coerce NaN/Inf to integral type"
        } else {
            "Out of bounds coercing to integral value"
        };
        let text = format!("malformed mod, {what} value is invalid :: caused by :: {reason}");
        Error::bad_value(text)
    })
}

fn truncated(value: Value<'_>) -> Option<i64> {
    value.as_number()?.to_i64_truncated()
}

/// Returns true if the number is NaN or infinite.
fn is_not_finite(value: Value<'_>) -> bool {
    match value.as_number() {
        Some(Number::Double(number)) => !number.is_finite(),
        Some(Number::Decimal(decimal)) => decimal.parts().is_none(),
        _ => false,
    }
}
