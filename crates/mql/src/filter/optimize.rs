//! Simplifies a tree without changing the documents that it matches, and gives equal filters the
//! same form.

use super::in_list::InList;
use super::node::{Node, PathNode, Test};
use super::operand::{Comparison, Operand};
use quire_document::path::Path;
use quire_document::{Type, ValueBuf};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Returns the simplest tree that matches the same documents, with its children in a fixed order.
pub(crate) fn optimize(node: Node) -> Node {
    sort(simplify(node))
}

fn simplify(node: Node) -> Node {
    match node {
        Node::And(children) => conjunction(children),
        Node::Or(children) => disjunction(children),
        Node::Nor(children) => {
            let mut children = joined(children, false);
            if children.iter().any(Node::is_always_true) {
                return Node::Always(false);
            }
            match children.len() {
                0 => Node::And(Vec::new()),
                1 => Node::negate(children.remove(0)),
                _ => Node::Nor(children),
            }
        }
        Node::Not(child) => match simplify(*child) {
            Node::Always(answer) => Node::Always(!answer),
            Node::And(children) if children.is_empty() => Node::Always(false),
            child => Node::negate(child),
        },
        Node::Path(PathNode { path, test, .. }) => match simplify_test(test) {
            Test::Always(answer) => Node::Always(answer),
            test => Node::Path(PathNode::new(path, test)),
        },
        other => other,
    }
}

/// Simplifies the children, and removes those that always are `neutral`.
fn joined(children: Vec<Node>, neutral: bool) -> Vec<Node> {
    children
        .into_iter()
        .map(simplify)
        .filter(|child| !(if neutral { child.is_always_true() } else { child.is_always_false() }))
        .collect()
}

fn conjunction(children: Vec<Node>) -> Node {
    let mut flat = Vec::new();
    for child in joined(children, true) {
        match child {
            Node::And(inner) => flat.extend(inner),
            Node::Always(false) => return Node::Always(false),
            other => flat.push(other),
        }
    }
    match flat.len() {
        1 => flat.remove(0),
        _ => Node::And(flat),
    }
}

fn disjunction(children: Vec<Node>) -> Node {
    let mut flat = Vec::new();
    for child in joined(children, false) {
        match child {
            Node::Or(inner) => flat.extend(inner),
            child if child.is_always_true() => return Node::And(Vec::new()),
            other => flat.push(other),
        }
    }
    let mut flat = join_equalities(flat);
    match flat.len() {
        0 => Node::Always(false),
        1 => flat.remove(0),
        _ => Node::Or(flat),
    }
}

/// Changes `{$or: [{a: 1}, {a: 2}, {b: 3}]}` to `{$or: [{a: {$in: [1, 2]}}, {b: 3}]}`.
fn join_equalities(children: Vec<Node>) -> Vec<Node> {
    let mut rest: Vec<Node> = Vec::new();
    let mut groups: Vec<(Path, Vec<Node>)> = Vec::new();
    let mut places: HashMap<Box<str>, usize> = HashMap::new();
    for child in children {
        let path = match &child {
            Node::Path(PathNode { path, test: Test::Compare(Comparison::Eq, operand), .. })
                if operand.kind() != Type::Regex =>
            {
                path.clone()
            }
            Node::Path(PathNode { path, test: Test::Regex(_) | Test::In(_), .. }) => path.clone(),
            _ => {
                rest.push(child);
                continue;
            }
        };
        match places.entry(path.as_str().into()) {
            Entry::Occupied(place) => groups[*place.get()].1.push(child),
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push((path, vec![child]));
            }
        }
    }
    for (path, mut members) in groups {
        if members.len() == 1 {
            rest.push(members.remove(0));
        } else {
            let test = simplify_list(join(members));
            rest.push(Node::Path(PathNode::new(path, test)));
        }
    }
    rest
}

fn join(members: Vec<Node>) -> InList {
    let (mut values, mut regexes, mut collator) = (Vec::new(), Vec::new(), None);
    for member in members {
        let Node::Path(PathNode { test, .. }) = member else { continue };
        match test {
            Test::Compare(_, operand) => {
                collator = collator.or(operand.collator().cloned());
                values.push(ValueBuf::new(operand.value()));
            }
            Test::Regex(regex) => regexes.push(*regex),
            Test::In(list) => {
                collator = collator.or(list.collator().cloned());
                values.extend(list.values().map(ValueBuf::new));
                regexes.extend(list.regexes().iter().cloned());
            }
            _ => {}
        }
    }
    InList::new(values, regexes, collator)
}

fn simplify_test(test: Test) -> Test {
    match test {
        Test::In(list) if list.is_empty() => Test::Always(false),
        Test::In(list) => simplify_list(list),
        Test::ElemMatchValue(tests) => {
            let mut tests: Vec<Test> =
                tests.into_iter().flat_map(flatten).map(simplify_test).collect();
            tests.sort_by_key(test_rank);
            if tests.iter().any(|test| matches!(test, Test::Always(false))) {
                return Test::Always(false);
            }
            Test::ElemMatchValue(tests)
        }
        Test::ElemMatchObject(scope) if scope.node.is_always_false() => Test::Always(false),
        Test::Not(test) => match simplify_test(*test) {
            Test::Always(answer) => Test::Always(!answer),
            test => Test::Not(Box::new(test)),
        },
        Test::All(tests) => Test::All(tests.into_iter().map(simplify_test).collect()),
        other => other,
    }
}

/// Returns the tests of which this one is the conjunction.
fn flatten(test: Test) -> Vec<Test> {
    match test {
        Test::All(tests) => tests.into_iter().flat_map(flatten).collect(),
        other => vec![other],
    }
}

fn simplify_list(list: InList) -> Test {
    if let (0, [regex]) = (list.values().len(), list.regexes()) {
        return Test::Regex(Box::new(regex.clone()));
    }
    if list.values().len() == 1
        && list.regexes().is_empty()
        && let Some(value) = list.values().next()
    {
        let operand = Operand::new(value, list.collator().cloned());
        return Test::Compare(Comparison::Eq, operand);
    }
    Test::In(list)
}

/// Sorts the children as mongod does: by kind, then by path.
fn sort(node: Node) -> Node {
    let sorted = |children: Vec<Node>| {
        let mut children: Vec<Node> = children.into_iter().map(sort).collect();
        children.sort_by(compare);
        children
    };
    match node {
        Node::And(children) => Node::And(sorted(children)),
        Node::Or(children) => Node::Or(sorted(children)),
        Node::Nor(children) => Node::Nor(sorted(children)),
        Node::Not(child) => Node::negate(sort(*child)),
        other => other,
    }
}

fn compare(left: &Node, right: &Node) -> Ordering {
    rank(left)
        .cmp(&rank(right))
        .then_with(|| path_of(left).cmp(path_of(right)))
        .then_with(|| compare_children(inner(left), inner(right)))
}

fn path_of(node: &Node) -> &str {
    match node {
        Node::Path(node) => node.path.as_str(),
        _ => "",
    }
}

/// Returns the children, including those inside `$elemMatch`.
fn inner(node: &Node) -> &[Node] {
    match node {
        Node::Path(PathNode { test: Test::ElemMatchObject(scope), .. }) => {
            std::slice::from_ref(&scope.node)
        }
        other => other.children(),
    }
}

fn compare_children(left: &[Node], right: &[Node]) -> Ordering {
    let unequal = left.iter().zip(right).map(|(l, r)| compare(l, r)).find(|order| order.is_ne());
    unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
}

/// Returns the rank of a node's kind in mongod's order.
fn rank(node: &Node) -> u8 {
    match node {
        Node::And(_) => 0,
        Node::Or(_) => 1,
        Node::Path(node) => test_rank(&node.test),
        Node::Not(_) => 18,
        Node::Nor(_) => 19,
        Node::Expr(_) => 21,
        Node::Always(false) => 22,
        Node::Always(true) => 23,
        Node::JsonSchema(_) | Node::SampleRate(_) => 24,
        // As in mongod, explain shows a search after the tests of fields.
        Node::Search(_) => 26,
    }
}

fn test_rank(test: &Test) -> u8 {
    match test {
        Test::ElemMatchObject(_) => 2,
        Test::ElemMatchValue(_) => 3,
        Test::Size(_) => 4,
        Test::Compare(comparison, _) => 5 + *comparison as u8,
        Test::Regex(_) => 10,
        Test::Mod(_) => 11,
        Test::Exists => 12,
        Test::In(_) => 13,
        Test::Bits(bits) => 14 + bits.kind as u8,
        Test::Not(_) | Test::All(_) => 18,
        Test::Type(_) => 20,
        Test::Always(_) => 25,
        Test::Open(_) => 27,
        Test::Implied(comparison, _) => match comparison {
            Comparison::Eq => 30,
            Comparison::Gt => 31,
            Comparison::Gte => 32,
            Comparison::Lt => 33,
            Comparison::Lte => 34,
        },
    }
}
