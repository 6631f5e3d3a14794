//! Filters: parsed once into a tree with resolved paths, run over the bytes of documents.
//!
//! Reading order: `node` (the tree), `parse`, `registry` (all operators), `optimize`, `run`,
//! `scope` (one walk for all fields), then one file an operator
//! or close family. `implied` and `serialize` are for the planner and for explain.

mod all;
mod bits;
mod compare;
mod constant;
mod elem_match;
mod elsewhere;
mod exists;
mod expr;
mod failure;
mod implied;
mod in_list;
mod json_schema;
mod logical;
mod membership;
mod modulo;
mod node;
mod operand;
mod optimize;
mod parse;
mod regex;
mod registry;
mod run;
mod scope;
mod serialize;
pub(crate) mod show;
mod size;
mod type_set;

pub use bits::{BitKind, BitTest};
pub use expr::ExprTest;
pub use failure::Reporter;
pub use in_list::InList;
pub use modulo::Modulo;
pub use node::{Node, PathNode, Test};
pub use operand::{Comparison, Operand};
pub use parse::{FILTER_DEPTH_MAX, Features, is_operator_document};
pub use registry::{Operator, operators};
pub(crate) use run::unit_interval;
pub use scope::Scope;
pub use type_set::{TypeSet, type_by_alias};

use crate::context::{EvalContext, ParseContext};
use parse::Parser;
use quire_document::{Doc, DocBuf, Value};
use quire_error::Result;
use run::Position;
use std::collections::HashSet;

/// A compiled filter: `Send + Sync`, run any number of times.
#[derive(Clone, Debug)]
pub struct Filter {
    scope: Scope,
}

impl Filter {
    /// Parses and simplifies a filter that may use everything.
    pub fn parse(doc: Doc<'_>, context: &ParseContext) -> Result<Filter> {
        Filter::parse_with(doc, context, Features::ALL)
    }

    /// Parses and simplifies a filter where not everything is allowed.
    pub fn parse_with(doc: Doc<'_>, context: &ParseContext, features: Features) -> Result<Filter> {
        let node = Parser::new(context, features, false).document(doc)?;
        Ok(Filter::from_node(optimize::optimize(node)))
    }

    /// Parses a filter and keeps its tree as it was written.
    pub fn parse_exact(doc: Doc<'_>, context: &ParseContext, features: Features) -> Result<Filter> {
        Ok(Filter::from_node(Parser::new(context, features, true).document(doc)?))
    }

    /// The filter that every document passes.
    pub fn all() -> Filter {
        Filter::from_node(Node::And(Vec::new()))
    }

    /// A filter of a tree, such as what an index's bounds leave to be checked.
    pub fn from_node(node: Node) -> Filter {
        Filter { scope: Scope::new(node) }
    }

    /// Returns the filter that is the conjunction of `conditions`.
    pub fn all_of(conditions: Vec<Node>) -> Filter {
        Filter::from_node(optimize::optimize(Node::And(conditions)))
    }

    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.scope.node
    }

    /// Gives the tree away.
    pub fn into_node(self) -> Node {
        self.scope.node
    }

    /// True for the filter that every document passes.
    pub fn is_always_true(&self) -> bool {
        self.root().is_always_true()
    }

    /// True for the filter that no document passes.
    pub fn is_always_false(&self) -> bool {
        self.root().is_always_false()
    }

    /// True if the document passes. `$expr` alone can fail.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        self.scope.matches(doc, cx, &mut Position::default())
    }

    /// `Some` if the document passes; inside, the index of the array element that matched, if
    /// the filter tells one: what the positional `$` stands for.
    pub fn find_position(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<Option<Option<u32>>> {
        let mut position = Position::wanted();
        Ok(self.scope.matches(doc, cx, &mut position)?.then_some(position.index))
    }

    /// Every path that it reads, once each, in the order of the tree. Paths inside `$elemMatch`
    /// are those of elements and not named. `None`: it needs the whole document.
    pub fn paths(&self) -> Option<Vec<&str>> {
        self.root().paths()
    }

    /// The filter as mongod's explain shows it (`parsedQuery`).
    pub fn to_bson(&self) -> DocBuf {
        DocBuf::build(|writer| serialize::write(self.root(), writer))
    }
}

impl Node {
    /// Returns the paths that the condition reads, as [`Filter::paths`].
    pub fn paths(&self) -> Option<Vec<&str>> {
        let (mut paths, mut known) = (Vec::new(), HashSet::new());
        let mut whole = false;
        needs_whole(self, &mut whole);
        self.visit_paths(&mut |node| {
            if known.insert(node.path.as_str()) {
                paths.push(node.path.as_str());
            }
        });
        (!whole).then_some(paths)
    }

    /// The condition as mongod's explain shows it.
    pub fn to_bson(&self) -> DocBuf {
        DocBuf::build(|writer| serialize::write(self, writer))
    }
}

impl Test {
    /// True if a field with this value passes (`None` = missing): as if a path ended there.
    pub fn matches_value(&self, value: Option<Value<'_>>, cx: &EvalContext<'_>) -> Result<bool> {
        self.matches_field(value, cx)
    }
}

/// True for the name of an operator on a field (`$gt`), not of one on documents (`$or`).
pub(crate) fn is_field_operator(name: &str) -> bool {
    registry::find_field(name).is_some()
}

fn needs_whole(node: &Node, whole: &mut bool) {
    match node {
        Node::Expr(_) | Node::JsonSchema(_) => *whole = true,
        other => other.children().iter().for_each(|child| needs_whole(child, whole)),
    }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
