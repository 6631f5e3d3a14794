//! Evaluates a filter on the bytes of a document, or on values in an index key.

use super::node::{Node, PathNode, Test};
use super::operand::Operand;
use super::regex;
use super::scope::{Fields, Scope};
use crate::context::EvalContext;
use quire_document::path::{Leaf, visit_from};
use quire_document::{Array, Doc, Element, Type, Value};
use quire_error::Result;
use std::ops::ControlFlow;

/// The most conditions in an `$and`, `$or` or `$nor` whose tests are not counted as work.
const UNCOUNTED_MAX: usize = 64;

/// Records the index of the array element that matched, if the caller needs it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    wanted: bool,
    pub(super) index: Option<u32>,
}

impl Position {
    pub(super) const fn wanted() -> Position {
        Position { wanted: true, index: None }
    }

    fn note(&mut self, index: Option<u32>) {
        if self.wanted && index.is_some() {
            self.index = index;
        }
    }
}

impl Scope {
    /// Returns true if the document satisfies the condition.
    pub(super) fn matches(
        &self,
        doc: Doc<'_>,
        cx: &EvalContext<'_>,
        position: &mut Position,
    ) -> Result<bool> {
        if let Node::Path(node) = &self.node {
            return path_matches(node, doc.find(node.path.first()), cx, position);
        }
        eval(&self.node, &mut self.open(doc), cx, position)
    }
}

fn eval(
    node: &Node,
    fields: &mut Fields<'_, '_>,
    cx: &EvalContext<'_>,
    position: &mut Position,
) -> Result<bool> {
    // Only a conjunction's matches determine a position. The other conditions test several elements
    // or none.
    let mut unnoted = Position::default();
    Ok(match node {
        Node::Path(node) => {
            let start = fields.get(node.slot);
            return path_matches(node, start, cx, position);
        }
        Node::And(children) => {
            for child in children {
                if !eval(child, fields, cx, position)? {
                    position.index = None;
                    return Ok(false);
                }
            }
            true
        }
        Node::Or(children) => any(children, fields, cx)?,
        Node::Nor(children) => !any(children, fields, cx)?,
        Node::Not(child) => !eval(child, fields, cx, &mut unnoted)?,
        Node::Expr(test) => test.test(fields.doc, cx)?,
        Node::JsonSchema(schema) => schema.matches(fields.doc, cx.shared)?,
        Node::SampleRate(rate) => cx.shared.random_fraction()? < *rate,
        Node::Search(search) => search.matches(fields.doc)?,
        Node::Always(answer) => *answer,
    })
}

fn any(children: &[Node], fields: &mut Fields<'_, '_>, cx: &EvalContext<'_>) -> Result<bool> {
    let many = children.len() > UNCOUNTED_MAX;
    for child in children {
        if many {
            cx.shared.work(4)?;
        }
        if eval(child, fields, cx, &mut Position::default())? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[inline]
fn path_matches(
    node: &PathNode,
    start: Option<Element<'_>>,
    cx: &EvalContext<'_>,
    position: &mut Position,
) -> Result<bool> {
    // Most paths are one field whose value is not an array: a single value without a position.
    if node.path.rest().is_empty() && start.is_none_or(|field| field.kind() != Type::Array) {
        return node.test.matches(start.map(|field| field.value()), cx, position);
    }
    any_value_matches(node, start, cx, position)
}

/// Returns true if one of the values at the path passes.
fn any_value_matches(
    node: &PathNode,
    start: Option<Element<'_>>,
    cx: &EvalContext<'_>,
    position: &mut Position,
) -> Result<bool> {
    let test = &node.test;
    let found = visit_from(start, node.path.rest(), test.leaf(), &mut |found| {
        // An array may have many elements.
        if found.position.is_some()
            && let Err(error) = cx.shared.work(1)
        {
            return ControlFlow::Break(Err(error));
        }
        match test.matches(found.value, cx, position) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => {
                position.note(found.position);
                ControlFlow::Break(Ok(true))
            }
            Err(error) => ControlFlow::Break(Err(error)),
        }
    });
    found.break_value().unwrap_or(Ok(false))
}

impl Test {
    /// Returns true if one value (`None` is missing) passes. An array is a single value here,
    /// because the path was followed before.
    #[inline]
    pub(super) fn matches(
        &self,
        value: Option<Value<'_>>,
        cx: &EvalContext<'_>,
        position: &mut Position,
    ) -> Result<bool> {
        if let Test::Compare(comparison, operand) = self {
            return Ok(Operand::test(operand, *comparison, value));
        }
        let Some(present) = value else { return self.matches_missing(cx) };
        Ok(match self {
            Test::Compare(comparison, operand) => operand.test(*comparison, value),
            Test::In(list) => list.test(value, cx.shared)?,
            Test::Regex(pattern) => regex::test(pattern, present, cx.shared)?,
            Test::Exists => true,
            Test::Type(set) => set.contains(present.kind()),
            Test::Mod(modulo) => modulo.test(present),
            Test::Size(size) => present.as_array().is_some_and(|array| has_size(array, *size)),
            Test::Bits(bits) => bits.test(present),
            Test::ElemMatchObject(scope) => match present {
                Value::Array(array) => element_matches(array, cx, position, |element, cx| {
                    let doc = match element {
                        Value::Document(doc) => doc,
                        Value::Array(inner) => inner.as_doc(),
                        _ => return Ok(false),
                    };
                    scope.matches(doc, cx, &mut Position::default())
                })?,
                _ => false,
            },
            Test::ElemMatchValue(tests) => match present {
                Value::Array(array) => element_matches(array, cx, position, |element, cx| {
                    all(tests, Some(element), cx)
                })?,
                _ => false,
            },
            Test::Not(test) => !test.matches(value, cx, &mut Position::default())?,
            Test::All(tests) => all(tests, value, cx)?,
            Test::Open(test) => test.test(present, cx.shared)?,
            Test::Always(answer) => *answer,
            Test::Implied(..) => true,
        })
    }

    fn matches_missing(&self, cx: &EvalContext<'_>) -> Result<bool> {
        Ok(match self {
            Test::Compare(comparison, operand) => operand.test(*comparison, None),
            Test::In(list) => list.has_null(),
            Test::Not(test) => !test.matches(None, cx, &mut Position::default())?,
            Test::All(tests) => all(tests, None, cx)?,
            Test::Always(answer) => *answer,
            Test::Implied(..) => true,
            _ => false,
        })
    }

    /// Tests a value as if a path ended there: for an array also tests its elements, if the test
    /// applies to elements.
    pub(super) fn matches_field(
        &self,
        value: Option<Value<'_>>,
        cx: &EvalContext<'_>,
    ) -> Result<bool> {
        let mut position = Position::default();
        if let (Some(Value::Array(array)), Leaf::Elements) = (value, self.leaf()) {
            for element in array.iter() {
                if self.matches(Some(element), cx, &mut position)? {
                    return Ok(true);
                }
            }
        }
        self.matches(value, cx, &mut position)
    }
}

fn all(tests: &[Test], value: Option<Value<'_>>, cx: &EvalContext<'_>) -> Result<bool> {
    let many = tests.len() > UNCOUNTED_MAX;
    for test in tests {
        if many {
            cx.shared.work(4)?;
        }
        if !test.matches(value, cx, &mut Position::default())? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn element_matches<'a>(
    array: Array<'a>,
    cx: &EvalContext<'_>,
    position: &mut Position,
    mut test: impl FnMut(Value<'a>, &EvalContext<'_>) -> Result<bool>,
) -> Result<bool> {
    for (index, element) in array.iter().enumerate() {
        cx.shared.work(1)?;
        if test(element, cx)? {
            position.note(Some(index as u32));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the array has this size. Counts at most one element more.
fn has_size(array: Array<'_>, size: i64) -> bool {
    let limit = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
    array.as_doc().iter().take(limit).count() as i64 == size
}

impl Node {
    /// Evaluates the tree on the values in an index key, one value for each path. (The index must
    /// not be multikey on these paths.) `lookup` returns the value at a path. All paths in the tree
    /// must be known to it.
    pub fn matches_key<'k>(
        &self,
        lookup: &dyn Fn(&str) -> Option<Value<'k>>,
        cx: &EvalContext<'_>,
    ) -> Result<bool> {
        Ok(match self {
            Node::Path(node) => node.test.matches_field(lookup(node.path.as_str()), cx)?,
            Node::And(children) => {
                for child in children {
                    if !child.matches_key(lookup, cx)? {
                        return Ok(false);
                    }
                }
                true
            }
            Node::Or(children) => any_key(children, lookup, cx)?,
            Node::Nor(children) => !any_key(children, lookup, cx)?,
            Node::Not(child) => !child.matches_key(lookup, cx)?,
            Node::SampleRate(rate) => cx.shared.random_fraction()? < *rate,
            Node::Always(answer) => *answer,
            Node::Expr(_) | Node::JsonSchema(_) | Node::Search(_) => {
                return Err(quire_error::Error::internal("this condition needs the document"));
            }
        })
    }
}

fn any_key<'k>(
    children: &[Node],
    lookup: &dyn Fn(&str) -> Option<Value<'k>>,
    cx: &EvalContext<'_>,
) -> Result<bool> {
    for child in children {
        if child.matches_key(lookup, cx)? {
            return Ok(true);
        }
    }
    Ok(false)
}
