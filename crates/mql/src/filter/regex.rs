//! `$regex` with `$options`: strings that match a Perl-compatible regular expression.

use super::node::{Node, Test};
use super::parse::{Argument, Parser};
use super::registry::{Parse, QueryOperator};
use crate::context::Shared;
use crate::regex::Regex;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$regex",
        parse: Parse::Field(|_: &Parser<'_>, argument| parse(argument)),
        doc: "Matches strings by a regular expression, and the same expression stored as a value.",
        since: "1.0",
    },
    QueryOperator {
        name: "$options",
        parse: Parse::Options,
        doc: "The option letters of `$regex`: i, m, s, x and u.",
        since: "1.0",
    },
];

/// Returns true if the value is a string (or symbol) that matches, or is the same regular
/// expression. Fails with 51156 if the match exceeds its limits.
pub(super) fn test(regex: &Regex, value: Value<'_>, shared: &Shared) -> Result<bool> {
    Ok(match value {
        Value::String(text) | Value::Symbol(text) => {
            regex.is_match(text, shared).map_err(|error| error.in_operator("$regex"))?
        }
        Value::Regex(stored) => {
            stored.pattern == regex.pattern() && stored.options == regex.options()
        }
        _ => false,
    })
}

/// Checks an `$options` without `$regex`.
pub(super) fn check_options(siblings: Doc<'_>) -> Result<()> {
    if siblings.contains("$regex") {
        return Ok(());
    }
    Err(Error::bad_value("$options needs a $regex"))
}

fn parse(argument: Argument<'_>) -> Result<Node> {
    let (mut pattern, mut options) = ("", None);
    let mut from_value = "";
    for element in argument.siblings.iter() {
        match (element.key(), element.value()) {
            ("$regex", Value::String(text)) => pattern = text,
            ("$regex", Value::Regex(regex)) => {
                if options.is_some() && !regex.options.is_empty() {
                    let text = "options set in both $regex and $options";
                    return Err(Error::location(51074, text));
                }
                (pattern, from_value) = (regex.pattern, regex.options);
            }
            ("$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            ("$options", Value::String(text)) => {
                if !from_value.is_empty() {
                    let text = "options set in both $regex and $options";
                    return Err(Error::location(51075, text));
                }
                options = Some(text);
            }
            ("$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    let regex = Regex::new(pattern, options.unwrap_or(from_value))?;
    Ok(Node::path(argument.path, Test::Regex(Box::new(regex))))
}
