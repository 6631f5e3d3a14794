//! `$type`: the value's type is one of a set.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::text::show;
use crate::type_set::{TypeSet, type_by_number};
use quire_document::Value;
use quire_error::{Error, Result};

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$type",
    parse: Parse::Field(parse),
    doc: "Matches values of a type, given by alias, by number or by an array of these.",
    since: "1.0",
}];

fn parse(_: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    let mut set = TypeSet::default();
    match argument.value {
        Value::Array(array) => array.iter().try_for_each(|value| add(&mut set, value))?,
        value => add(&mut set, value)?,
    }
    if set.is_empty() {
        let text = format!("{} must match at least one type", argument.path);
        return Err(Error::failed_to_parse(text));
    }
    Ok(Node::path(argument.path, Test::Type(set)))
}

/// Adds the type that `value` names to a set.
fn add(set: &mut TypeSet, value: Value<'_>) -> Result<()> {
    if let Value::String(alias) = value {
        return if set.insert_alias(alias) {
            Ok(())
        } else {
            Err(Error::bad_value(format!("Unknown type name alias: {alias}")))
        };
    }
    let Some(number) = value.as_number() else {
        let text = "type must be represented as a number or a string";
        return Err(Error::type_mismatch(text));
    };
    match number.exact_i64() {
        Some(0) => {
            let text = "Invalid numerical type code: 0. Instead use {$exists:false}.";
            Err(Error::bad_value(text))
        }
        code => match code.and_then(type_by_number) {
            Some(kind) => {
                set.insert(kind);
                Ok(())
            }
            None => {
                let text = format!("Invalid numerical type code: {}", show(value));
                Err(Error::bad_value(text))
            }
        },
    }
}
