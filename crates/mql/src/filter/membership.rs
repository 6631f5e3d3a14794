//! `$in`, `$nin`: the value equals one of a list, or matches one of its regular expressions.

use super::in_list::InList;
use super::node::{Node, Test};
use super::registry::{Parse, QueryOperator};

/// The registry rows of this family.
pub(super) const OPERATORS: &[QueryOperator] = &[
    QueryOperator {
        name: "$in",
        parse: Parse::Field(|parser, argument| {
            let list = InList::parse("$in", argument.value, parser)?;
            Ok(Node::path(argument.path, Test::In(list)))
        }),
        doc: "Matches values that an array contains, or that match a regular expression in it.",
        since: "1.0",
    },
    QueryOperator {
        name: "$nin",
        parse: Parse::Field(|parser, argument| {
            let list = InList::parse("$nin", argument.value, parser)?;
            Ok(Node::negate(Node::path(argument.path, Test::In(list))))
        }),
        doc: "Matches documents that `$in` does not match.",
        since: "1.0",
    },
];
