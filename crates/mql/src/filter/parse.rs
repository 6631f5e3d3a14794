//! Parses a filter document to a tree.

use super::compare;
use super::node::{Node, Test};
use super::operand::Comparison;
use super::regex::check_options;
use super::registry::{Parse, find_field, find_top_level};
use crate::context::{Collator, ParseContext};
use crate::regex::Regex;
use quire_document::{Doc, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

/// The most levels of nesting in a filter (MongoDB's limit; BadValue beyond it).
pub const FILTER_DEPTH_MAX: u32 = 100;

/// The operators that are allowed in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// True if `$expr` is allowed.
    pub expr: bool,
    /// True if `$jsonSchema` is allowed.
    pub json_schema: bool,
    /// True if `$near` and `$nearSphere` are allowed.
    pub near: bool,
    /// True if `$text` and `$where` are allowed.
    pub whole_document: bool,
    /// True if a schema may have keywords of encryption.
    pub encryption: bool,
}

impl Features {
    /// All operators: for the filter of a find.
    pub const ALL: Features = Features {
        expr: true,
        json_schema: true,
        near: true,
        whole_document: true,
        encryption: true,
    };

    /// For the validator of a collection.
    pub const VALIDATOR: Features =
        Features { near: false, whole_document: false, ..Features::ALL };

    /// For conditions on parts of documents: arrayFilters, `$pull`, `$elemMatch` in projections.
    pub const PARTS: Features = Features {
        expr: false,
        json_schema: false,
        near: false,
        whole_document: false,
        encryption: false,
    };
}

/// The kind of value to which the conditions apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Conditions on whole documents.
    Document,
    /// Conditions on elements of an array, inside `$elemMatch`.
    Element,
}

/// The state of parsing. A nested level gets a changed copy.
#[derive(Clone, Copy)]
pub(super) struct Parser<'c> {
    pub(super) context: &'c ParseContext,
    pub(super) features: Features,
    pub(super) level: Level,
    /// True if the tree is not simplified.
    pub(super) exact: bool,
    depth: u32,
}

/// An operator in a document of operators.
#[derive(Clone, Copy)]
pub(super) struct Argument<'a> {
    /// The field's path.
    pub(super) path: &'a str,
    /// The value after the operator's name.
    pub(super) value: Value<'a>,
    /// The document that contains the operator.
    pub(super) siblings: Doc<'a>,
}

impl<'c> Parser<'c> {
    pub(super) fn new(context: &'c ParseContext, features: Features, exact: bool) -> Self {
        Parser { context, features, level: Level::Document, exact, depth: 0 }
    }

    pub(super) fn collator(&self) -> Option<Arc<dyn Collator>> {
        self.context.collator.clone()
    }

    /// Returns the parser one level deeper.
    pub(super) fn deeper(&self) -> Result<Self> {
        if self.depth >= FILTER_DEPTH_MAX {
            let text = format!("exceeded maximum query tree depth of {FILTER_DEPTH_MAX}");
            return Err(Error::bad_value(text));
        }
        Ok(Parser { depth: self.depth + 1, ..*self })
    }

    /// Returns the parser one level deeper, for another kind of value.
    pub(super) fn at(&self, level: Level) -> Result<Self> {
        Ok(Parser { level, ..self.deeper()? })
    }

    /// Parses a filter document: the conjunction of its fields' conditions.
    pub(super) fn document(&self, doc: Doc<'_>) -> Result<Node> {
        let mut children = Vec::new();
        for (name, value) in doc.fields() {
            if name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db") {
                children.extend(self.top_level(name, value)?);
            } else {
                self.field(name, value, &mut children)?;
            }
        }
        Ok(match children.len() {
            1 => children.remove(0),
            _ => Node::And(children),
        })
    }

    fn top_level(&self, name: &str, value: Value<'_>) -> Result<Option<Node>> {
        match find_top_level(name) {
            Some(parse) => parse(self, value),
            None => Err(Error::bad_value(format!(
                "unknown top level operator: {name}. If you have a field name that starts with a \
                 '$' symbol, consider using $getField or $setField."
            ))),
        }
    }

    fn field(&self, path: &str, value: Value<'_>, children: &mut Vec<Node>) -> Result<()> {
        self.context.part()?;
        match value {
            Value::Document(doc) if is_operator_document(doc) => {
                children.extend(self.operators(path, doc)?);
            }
            Value::Regex(regex) => {
                let regex = Regex::new(regex.pattern, regex.options)?;
                children.push(Node::path(path, Test::Regex(Box::new(regex))));
            }
            value => children.push(compare::node(Comparison::Eq, path, value, self)?),
        }
        Ok(())
    }

    /// Parses a document of operators on one field.
    pub(super) fn operators(&self, path: &str, doc: Doc<'_>) -> Result<Vec<Node>> {
        let mut children = Vec::new();
        for (name, value) in doc.fields() {
            self.context.part()?;
            match find_field(name) {
                Some(Parse::Field(parse)) => {
                    children.push(parse(self, Argument { path, value, siblings: doc })?);
                }
                Some(_) => check_options(doc)?,
                None if is_modifier_of_near(name, doc) => {}
                None => return Err(Error::bad_value(format!("unknown operator: {name}"))),
            }
        }
        Ok(children)
    }
}

/// Returns true for `$maxDistance` and `$minDistance` next to the operator that reads them.
fn is_modifier_of_near(name: &str, siblings: Doc<'_>) -> bool {
    matches!(name, "$maxDistance" | "$minDistance" | "$uniqueDocs")
        && ["$near", "$nearSphere", "$geoNear", "$within", "$geoWithin"]
            .iter()
            .any(|operator| siblings.contains(operator))
}

/// Returns true for `{$op: ...}`, except for a DBRef (`$ref` with `$id`).
pub fn is_operator_document(doc: Doc<'_>) -> bool {
    starts_with_dollar(doc) && !(doc.contains("$ref") && doc.contains("$id"))
}

/// Returns true for `{$op: ...}`, unless it has any field of a DBRef.
pub(super) fn is_operator_not_reference(doc: Doc<'_>) -> bool {
    starts_with_dollar(doc) && !["$ref", "$id", "$db"].iter().any(|name| doc.contains(name))
}

fn starts_with_dollar(doc: Doc<'_>) -> bool {
    doc.first().is_some_and(|first| first.key_bytes().starts_with(b"$"))
}
