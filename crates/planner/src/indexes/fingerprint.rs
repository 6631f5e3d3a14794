//! A hash of a condition for the plan cache: as much as the shape of a plan tells apart, and more, but
//! without making its document. It differs between processes and is never shown.

use quire_document::Value;
use quire_mql::filter::{Node, Test};
use std::hash::{Hash, Hasher};

/// Hashes a condition without its literals, except for the types that some indexes cannot serve.
pub(crate) fn hash_condition(node: &Node, state: &mut impl Hasher) {
    std::mem::discriminant(node).hash(state);
    match node {
        Node::And(children) | Node::Or(children) | Node::Nor(children) => {
            children.len().hash(state);
            children.iter().for_each(|child| hash_condition(child, state));
        }
        Node::Not(child) => hash_condition(child, state),
        Node::Path(node) => {
            node.path.as_str().hash(state);
            hash_test(&node.test, state);
        }
        Node::JsonSchema(schema) => schema.source().as_bytes().hash(state),
        Node::Always(answer) => answer.hash(state),
        Node::Search(search) => search.operator().hash(state),
        Node::Expr(_) | Node::SampleRate(_) => {}
    }
}

fn hash_test(test: &Test, state: &mut impl Hasher) {
    std::mem::discriminant(test).hash(state);
    match test {
        Test::Compare(comparison, operand) | Test::Implied(comparison, operand) => {
            comparison.hash(state);
            class(operand.value()).hash(state);
        }
        Test::In(list) => list.values().map(class).fold(0, |all, one| all | one).hash(state),
        Test::Bits(bits) => bits.kind.operator().hash(state),
        Test::Regex(regex) => regex.options().is_empty().hash(state),
        Test::ElemMatchObject(scope) => hash_condition(&scope.node, state),
        Test::ElemMatchValue(tests) | Test::All(tests) => {
            tests.len().hash(state);
            tests.iter().for_each(|test| hash_test(test, state));
        }
        Test::Not(test) => hash_test(test, state),
        Test::Always(answer) => answer.hash(state),
        Test::Open(test) => test.operator().hash(state),
        Test::Exists | Test::Type(_) | Test::Mod(_) | Test::Size(_) => {}
    }
}

/// Returns bits for the classes of values that the key of the plan cache tells apart.
fn class(value: Value<'_>) -> u8 {
    match value {
        Value::Null | Value::Undefined => 1,
        Value::String(_) | Value::Document(_) | Value::Array(_) => 2,
        _ => 4,
    }
}
