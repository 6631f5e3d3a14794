//! The tree of the paths of an update: the operator of each path, and conflicts between paths.

use super::array_filter::ArrayFilters;
use super::modifier::Modifier;
use super::path::{self, Part};
use quire_error::{Error, ErrorCode, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A node of the tree.
#[derive(Debug)]
pub(super) enum Node {
    /// The operator of the path.
    Leaf(Box<dyn Modifier>),
    /// Fields of a document or positions of an array.
    Fields(Fields),
    /// Elements of an array, selected by `$[]` or `$[name]`.
    Elements(Elements),
}

/// Children by name, in the order in which they are applied.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) children: BTreeMap<Part, Node>,
    /// The child for `$`.
    pub(super) positional: Option<Box<Node>>,
}

/// Children by the name of their array filter; `""` is `$[]`.
#[derive(Debug, Default)]
pub(super) struct Elements {
    pub(super) children: Vec<(Box<str>, Node)>,
}

impl Node {
    fn child(&mut self, part: &str) -> Option<&mut Node> {
        match self {
            Node::Leaf(_) => None,
            Node::Fields(Fields { children, positional }) => {
                if part == "$" {
                    return positional.as_deref_mut();
                }
                children.get_mut(&Part::new(part))
            }
            Node::Elements(elements) => {
                let name = path::identifier(part)?;
                let found = elements.children.iter_mut().find(|(known, _)| **known == *name);
                found.map(|(_, node)| node)
            }
        }
    }

    fn insert(&mut self, part: &str, node: Node) {
        match self {
            Node::Leaf(_) => {}
            Node::Fields(Fields { children, positional }) => {
                if part == "$" {
                    *positional = Some(Box::new(node));
                    return;
                }
                children.insert(Part::new(part), node);
            }
            Node::Elements(elements) => {
                let name = path::identifier(part).unwrap_or_default();
                let at = elements.children.partition_point(|(known, _)| **known < *name);
                elements.children.insert(at, (name.into(), node));
            }
        }
    }
}

/// The tree under construction.
#[derive(Debug)]
pub(super) struct TreeBuilder<'f> {
    root: Node,
    filters: &'f ArrayFilters,
    used: BTreeSet<String>,
}

impl<'f> TreeBuilder<'f> {
    pub(super) fn new(filters: &'f ArrayFilters) -> Self {
        TreeBuilder { root: Node::Fields(Fields::default()), filters, used: BTreeSet::new() }
    }

    /// Adds an operator at a path that `path::parse` has checked.
    pub(super) fn add(&mut self, parts: &[&str], modifier: Box<dyn Modifier>) -> Result<()> {
        let Some((last, inner)) = parts.split_last() else { return Ok(()) };
        for part in parts {
            self.check_identifier(part, parts)?;
        }
        let mut current = &mut self.root;
        for (depth, part) in inner.iter().enumerate() {
            let elements = path::identifier(parts[depth + 1]).is_some();
            if current.child(part).is_none() {
                let empty = match elements {
                    true => Node::Elements(Elements::default()),
                    false => Node::Fields(Fields::default()),
                };
                current.insert(part, empty);
            }
            let Some(child) = current.child(part) else { return Err(conflict(parts, depth + 1)) };
            let fits = match child {
                Node::Leaf(_) => false,
                Node::Fields(_) => !elements,
                Node::Elements(_) => elements,
            };
            if !fits {
                return Err(conflict(parts, depth + 1));
            }
            current = child;
        }
        if current.child(last).is_some() {
            return Err(conflict(parts, parts.len()));
        }
        current.insert(last, Node::Leaf(modifier));
        Ok(())
    }

    fn check_identifier(&mut self, part: &str, parts: &[&str]) -> Result<()> {
        let Some(name) = path::identifier(part).filter(|name| !name.is_empty()) else {
            return Ok(());
        };
        if !self.filters.contains(name) {
            let path = parts.join(".");
            return Err(Error::bad_value(format!(
                "No array filter found for identifier '{name}' in path '{path}'"
            )));
        }
        self.used.insert(name.to_owned());
        Ok(())
    }

    /// Returns the tree, and the names of the array filters that it uses.
    pub(super) fn finish(self) -> (Fields, BTreeSet<String>) {
        match self.root {
            Node::Fields(fields) => (fields, self.used),
            Node::Leaf(_) | Node::Elements(_) => (Fields::default(), self.used),
        }
    }
}

fn conflict(parts: &[&str], at: usize) -> Error {
    let message = format!(
        "Updating the path '{}' would create a conflict at '{}'",
        parts.join("."),
        parts[..at].join(".")
    );
    Error::new(ErrorCode::ConflictingUpdateOperators, message)
}
