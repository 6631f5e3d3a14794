//! `$alwaysTrue`, `$alwaysFalse`, `$sampleRate`, `$comment`: conditions that read no field.

use super::node::Node;
use super::parse::{Level, Parser};
use super::registry::{Parse, QueryOperator};
use quire_document::{Value, number::Number};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$alwaysTrue",
        parse: Parse::Top(|_, value| always("$alwaysTrue", value, true)),
        doc: "Matches every document.",
        since: "3.6",
    },
    QueryOperator {
        name: "$alwaysFalse",
        parse: Parse::Top(|_, value| always("$alwaysFalse", value, false)),
        doc: "Matches no document.",
        since: "3.6",
    },
    QueryOperator {
        name: "$sampleRate",
        parse: Parse::Top(sample_rate),
        doc: "Matches each document with the given probability.",
        since: "4.4",
    },
    QueryOperator {
        name: "$comment",
        parse: Parse::Top(|_, _| Ok(None)),
        doc: "A comment; matches every document.",
        since: "1.0",
    },
];

fn always(operator: &str, value: Value<'_>, answer: bool) -> Result<Option<Node>> {
    if value.exact_i64() != Some(1) {
        let text = format!("{operator} must be an integer value of 1");
        return Err(Error::failed_to_parse(text));
    }
    Ok(Some(Node::Always(answer)))
}

fn sample_rate(parser: &Parser<'_>, value: Value<'_>) -> Result<Option<Node>> {
    if parser.level == Level::Element {
        let text = "$sampleRate can only be applied to the top-level document";
        return Err(Error::bad_value(text));
    }
    let rate = match value.as_number() {
        Some(Number::Int(number)) => number as f64,
        Some(Number::Double(number)) => number,
        Some(Number::Decimal(decimal)) => match decimal.parts() {
            Some(parts) if !parts.negative || parts.coefficient == 0 => {
                parts.coefficient as f64 * 10f64.powi(parts.exponent)
            }
            _ => f64::NAN,
        },
        None => {
            let text = "argument to $sampleRate must be a numeric type";
            return Err(Error::bad_value(text));
        }
    };
    if !(0.0..=1.0).contains(&rate) {
        let text = "numeric argument to $sampleRate must be in [0, 1]";
        return Err(Error::bad_value(text));
    }
    Ok(Some(match rate {
        0.0 => Node::Always(false),
        1.0 => Node::Always(true),
        rate => Node::SampleRate(rate),
    }))
}
