//! Comparisons that a `$expr` implies, which an index can use: `{$eq: ["$a", 5]}` implies that `a`
//! is 5. The expression stays in the filter, because it treats arrays and nulls in another way.

use super::expr::ExprTest;
use super::node::{Node, Test};
use super::operand::{Comparison, Operand};
use super::optimize::optimize;
use crate::context::Collator;
use crate::expression::{Call, Expression, ExpressionNode};
use quire_document::Value;
use std::sync::Arc;

impl Node {
    /// Returns the tree with the comparisons that each `$expr` implies.
    pub fn with_implied(self) -> Node {
        if !has_expression(&self) {
            return self;
        }
        optimize(widen(self))
    }

    /// Returns the tree without the comparisons that `with_implied` added, for evaluation.
    pub fn without_implied(&self) -> Node {
        let kept = |children: &[Node]| -> Vec<Node> {
            children.iter().filter(|child| !child.is_implied()).map(Node::without_implied).collect()
        };
        match self {
            implied if implied.is_implied() => Node::And(Vec::new()),
            Node::And(children) => Node::all(kept(children)),
            Node::Or(children) => Node::Or(kept(children)),
            Node::Nor(children) => Node::Nor(kept(children)),
            Node::Not(child) => Node::negate(child.without_implied()),
            other => other.clone(),
        }
    }

    /// Returns true if the node only has comparisons that a `$expr` implies.
    fn is_implied(&self) -> bool {
        match self {
            Node::Path(node) => matches!(node.test, Test::Implied(..)),
            Node::And(children) | Node::Or(children) => {
                !children.is_empty() && children.iter().all(Node::is_implied)
            }
            _ => false,
        }
    }
}

fn has_expression(node: &Node) -> bool {
    matches!(node, Node::Expr(_)) || node.children().iter().any(has_expression)
}

fn widen(node: Node) -> Node {
    let all = |children: Vec<Node>| children.into_iter().map(widen).collect();
    match node {
        Node::And(children) => Node::And(all(children)),
        Node::Or(children) => Node::Or(all(children)),
        Node::Nor(children) => Node::Nor(all(children)),
        Node::Not(child) => Node::negate(widen(*child)),
        Node::Expr(test) => {
            let mut children = comparisons(test.expression(), &test);
            children.insert(0, Node::Expr(test));
            Node::all(children)
        }
        other => other,
    }
}

/// Returns the comparisons that every match must satisfy and that an index can use.
fn comparisons(expression: &Expression, test: &ExprTest) -> Vec<Node> {
    let ExpressionNode::Call(call) = expression.node() else { return Vec::new() };
    let comparison = match call.name() {
        "$and" => return call.args.iter().flat_map(|arg| comparisons(arg, test)).collect(),
        "$or" => {
            let branches: Vec<_> = call.args.iter().map(|arg| comparisons(arg, test)).collect();
            if branches.is_empty() || branches.iter().any(Vec::is_empty) {
                return Vec::new();
            }
            return vec![Node::Or(branches.into_iter().map(Node::all).collect())];
        }
        "$eq" => Comparison::Eq,
        "$gt" => Comparison::Gt,
        "$gte" => Comparison::Gte,
        "$lt" => Comparison::Lt,
        "$lte" => Comparison::Lte,
        _ => return Vec::new(),
    };
    compare(comparison, call, test.collator()).into_iter().collect()
}

fn compare(
    comparison: Comparison,
    call: &Call,
    collator: Option<&Arc<dyn Collator>>,
) -> Option<Node> {
    let [left, right] = &*call.args else { return None };
    let (path, comparison, value) = match (left.node(), right.node()) {
        (ExpressionNode::Path(path), ExpressionNode::Constant(value)) => (path, comparison, value),
        (ExpressionNode::Constant(value), ExpressionNode::Path(path)) => {
            (path, comparison.flipped(), value)
        }
        _ => return None,
    };
    let value = value.as_value();
    if matches!(value, Value::Array(_) | Value::Undefined | Value::Regex(_)) {
        return None;
    }
    let operand = Operand::new(value, collator.cloned());
    Some(Node::path(&path.to_string(), Test::Implied(comparison, operand)))
}
