//! Filters: parsed once into a tree with resolved paths, then evaluated on the bytes of documents.
//!
//! Read in this order: `node` (the tree), `parse`, `registry` (all operators), `optimize`, `run`,
//! `scope` (one pass for all fields), then one file for each operator or family. `implied` and
//! `serialize` are for the planner and explain.

mod all;
mod bits;
mod compare;
mod constant;
mod elem_match;
mod exists;
mod expr;
mod failure;
mod geo;
mod implied;
mod in_list;
mod json_schema;
mod logical;
mod membership;
mod modulo;
mod node;
mod not_built;
mod of_type;
mod open;
mod operand;
mod optimize;
mod parse;
mod regex;
mod registry;
mod run;
mod scope;
mod serialize;
mod size;
mod text;

pub use bits::{BitKind, BitTest};
pub use expr::ExprTest;
pub use failure::{Report, Reporter};
pub use geo::{GeoRelation, GeoTest, NEAR_METADATA, NearQuery, geometries};
pub use in_list::{InList, KeyTypes};
pub use modulo::Modulo;
pub use node::{Bind, Node, PathNode, Test};
pub use open::{Search, ValueTest};
pub use operand::{Comparison, Operand};
pub use parse::{FILTER_DEPTH_MAX, Features, is_operator_document};
pub use registry::{QueryOperator, operators};
pub use scope::Scope;
pub use text::{TEXT_METADATA, TextQuery};

use crate::context::{EvalContext, ParseContext};
use parse::Parser;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use run::Position;
use std::collections::HashSet;

/// A compiled filter. `Send + Sync`: it can be evaluated any number of times.
#[derive(Clone, Debug)]
pub struct Filter {
    scope: Scope,
}

impl Filter {
    /// Parses and simplifies a filter in which all operators are allowed.
    pub fn parse(doc: Doc<'_>, context: &ParseContext) -> Result<Filter> {
        Filter::parse_with(doc, context, Features::ALL)
    }

    /// Parses and simplifies a filter in which only some operators are allowed.
    pub fn parse_with(doc: Doc<'_>, context: &ParseContext, features: Features) -> Result<Filter> {
        let node = Parser::new(context, features, false).document(doc)?;
        Ok(Filter::from_node(optimize::optimize(node)))
    }

    /// Parses a filter without simplifying its tree.
    pub fn parse_exact(doc: Doc<'_>, context: &ParseContext, features: Features) -> Result<Filter> {
        Ok(Filter::from_node(Parser::new(context, features, true).document(doc)?))
    }

    /// Returns the filter that matches every document.
    pub fn all() -> Filter {
        Filter::from_node(Node::And(Vec::new()))
    }

    /// Returns the filter of a tree, for example of the conditions that an index scan leaves to
    /// check.
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

    /// Returns the tree and consumes the filter.
    pub fn into_node(self) -> Node {
        self.scope.node
    }

    /// Returns true for the filter that matches every document.
    pub fn is_always_true(&self) -> bool {
        self.root().is_always_true()
    }

    /// Returns true for the filter that matches no document.
    pub fn is_always_false(&self) -> bool {
        self.root().is_always_false()
    }

    /// Returns true if the document matches. Only `$expr` can fail, apart from limits.
    #[inline]
    pub fn matches(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<bool> {
        self.scope.matches(doc, cx, &mut Position::default())
    }

    /// Returns `Some` if the document matches. Inside is the index of the array element that
    /// matched, for the positional `$`, if the filter determines one.
    pub fn find_position(&self, doc: Doc<'_>, cx: &EvalContext<'_>) -> Result<Option<Option<u32>>> {
        let mut position = Position::wanted();
        Ok(self.scope.matches(doc, cx, &mut position)?.then_some(position.index))
    }

    /// Returns every path that the filter reads, once each, in the order of the tree. Paths inside
    /// `$elemMatch` are relative to elements and not included. Returns `None` if the filter needs
    /// the whole document.
    pub fn paths(&self) -> Option<Vec<&str>> {
        self.root().paths()
    }

    /// Returns the filter as mongod's explain shows it (`parsedQuery`).
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

    /// Returns the condition as mongod's explain shows it.
    pub fn to_bson(&self) -> DocBuf {
        DocBuf::build(|writer| serialize::write(self, writer))
    }
}

/// Returns true for the name of an operator on a field (`$gt`), but not of one on documents
/// (`$or`).
pub(crate) fn is_field_operator(name: &str) -> bool {
    registry::find_field(name).is_some()
}

fn needs_whole(node: &Node, whole: &mut bool) {
    match node {
        Node::Expr(_) | Node::JsonSchema(_) | Node::Search(_) => *whole = true,
        other => other.children().iter().for_each(|child| needs_whole(child, whole)),
    }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
