//! `$elemMatch`: one element of the array satisfies all conditions.

use super::node::{Node, PathNode, Test};
use super::optimize;
use super::parse::{Argument, Level, Parser, is_operator_not_reference};
use super::registry::{Parse, QueryOperator, find_top_level};
use super::scope::Scope;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};

/// The registry row of this operator.
pub(super) const OPERATORS: &[QueryOperator] = &[QueryOperator {
    name: "$elemMatch",
    parse: Parse::Field(parse),
    doc: "Matches arrays with an element that matches a filter or a set of operators.",
    since: "1.0",
}];

fn parse(parser: &Parser<'_>, argument: Argument<'_>) -> Result<Node> {
    node(parser, argument.path, argument.value)
}

/// Parses `{path: {$elemMatch: condition}}`.
pub(super) fn node(parser: &Parser<'_>, path: &str, condition: Value<'_>) -> Result<Node> {
    let Value::Document(condition) = condition else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    let test = if is_value_form(condition) {
        let tests = parser.deeper()?.operators("", condition)?;
        let tests = tests.into_iter().map(value_test).collect::<Result<Vec<Test>>>()?;
        Test::ElemMatchValue(tests)
    } else {
        let inner = parser.at(Level::Element)?.document(condition)?;
        let inner = if parser.exact { inner } else { optimize::optimize(inner) };
        Test::ElemMatchObject(Box::new(Scope::new(inner)))
    };
    Ok(Node::path(path, test))
}

/// Returns true if the condition consists of operators on the element itself. It does not if the
/// first operator is one for whole documents.
fn is_value_form(condition: Doc<'_>) -> bool {
    let Some(first) = condition.first() else { return false };
    is_operator_not_reference(condition) && find_top_level(first.key()).is_none()
}

/// Converts a node whose path is the element itself to a test of the element.
pub(super) fn value_test(node: Node) -> Result<Test> {
    Ok(match node {
        Node::Path(PathNode { test, .. }) => test,
        Node::Not(child) => Test::Not(Box::new(value_test(*child)?)),
        Node::And(children) => {
            Test::All(children.into_iter().map(value_test).collect::<Result<_>>()?)
        }
        Node::Always(answer) => Test::Always(answer),
        _ => return Err(Error::internal("not a test on one value")),
    })
}
