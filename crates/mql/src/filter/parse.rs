//! From a filter document to a tree.

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

/// How deep filters may nest (MongoDB's limit; BadValue beyond it).
pub const FILTER_DEPTH_MAX: u32 = 100;

/// What a filter may use where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `$expr` is allowed.
    pub expr: bool,
    /// `$jsonSchema` is allowed.
    pub json_schema: bool,
    /// `$near` and `$nearSphere`.
    pub near: bool,
    /// `$text` and `$where`.
    pub whole_document: bool,
}

impl Features {
    /// Everything: the filter of a find.
    pub const ALL: Features =
        Features { expr: true, json_schema: true, near: true, whole_document: true };

    /// Conditions on parts of documents: arrayFilters, `$pull`, `$elemMatch` in projections.
    pub const PARTS: Features =
        Features { expr: false, json_schema: false, near: false, whole_document: false };

    /// Validators of collections.
    pub const VALIDATOR: Features =
        Features { expr: true, json_schema: true, near: false, whole_document: false };
}

/// Where in a filter the parser stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// On whole documents.
    Document,
    /// On the elements of an array, inside `$elemMatch`.
    Element,
}

/// What parsing carries along. A nested level is a copy.
#[derive(Clone, Copy)]
pub(super) struct Parser<'c> {
    pub(super) context: &'c ParseContext,
    pub(super) features: Features,
    pub(super) level: Level,
    /// Keep the tree as it was written.
    pub(super) exact: bool,
    depth: u32,
}

/// One operator of a field's document.
#[derive(Clone, Copy)]
pub(super) struct Argument<'a> {
    /// The field's path.
    pub(super) path: &'a str,
    /// What stands behind the operator.
    pub(super) value: Value<'a>,
    /// The document that holds the operator.
    pub(super) siblings: Doc<'a>,
}

impl<'c> Parser<'c> {
    pub(super) fn new(context: &'c ParseContext, features: Features, exact: bool) -> Self {
        Parser { context, features, level: Level::Document, exact, depth: 0 }
    }

    pub(super) fn collator(&self) -> Option<Arc<dyn Collator>> {
        self.context.collator.clone()
    }

    /// The same one level deeper.
    pub(super) fn deeper(&self) -> Result<Self> {
        if self.depth >= FILTER_DEPTH_MAX {
            let text = format!("exceeded maximum query tree depth of {FILTER_DEPTH_MAX}");
            return Err(Error::bad_value(text));
        }
        Ok(Parser { depth: self.depth + 1, ..*self })
    }

    /// The same one level deeper, at another place.
    pub(super) fn at(&self, level: Level) -> Result<Self> {
        Ok(Parser { level, ..self.deeper()? })
    }

    /// A filter document: all of its fields' conditions.
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
        self.context.work()?;
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

    /// A document of operators on one field.
    pub(super) fn operators(&self, path: &str, doc: Doc<'_>) -> Result<Vec<Node>> {
        let mut children = Vec::new();
        for (name, value) in doc.fields() {
            self.context.work()?;
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

/// `$maxDistance` and `$minDistance` are read by the operator that they stand beside.
fn is_modifier_of_near(name: &str, siblings: Doc<'_>) -> bool {
    matches!(name, "$maxDistance" | "$minDistance" | "$uniqueDocs")
        && ["$near", "$nearSphere", "$geoNear", "$within", "$geoWithin"]
            .iter()
            .any(|operator| siblings.contains(operator))
}

/// True for `{$op: ...}`, unless it is a reference (`$ref` with `$id`).
pub fn is_operator_document(doc: Doc<'_>) -> bool {
    starts_with_dollar(doc) && !(doc.contains("$ref") && doc.contains("$id"))
}

/// True for `{$op: ...}`, unless it holds any part of a reference.
pub(super) fn is_operator_not_reference(doc: Doc<'_>) -> bool {
    starts_with_dollar(doc) && !["$ref", "$id", "$db"].iter().any(|name| doc.contains(name))
}

fn starts_with_dollar(doc: Doc<'_>) -> bool {
    doc.first().is_some_and(|first| first.key_bytes().starts_with(b"$"))
}
