//! Stages that make one document of one: also those that a pipeline update may use.

use super::needs::Modified;
use super::registry::find_stage;
use super::{ReplaceRoot, Stage};
use crate::context::{EvalContext, ParseContext};
use crate::expression::Dependencies;
use crate::projection::{Kind, Projection};
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use std::collections::BTreeSet;

/// A stage that makes one document of one.
#[derive(Debug)]
pub enum Transform {
    /// `$project`, `$addFields`, `$set` or `$unset`, with the name that was written.
    Projection(&'static str, Box<Projection>),
    /// `$replaceRoot`, `$replaceWith`.
    ReplaceRoot(Box<ReplaceRoot>),
}

impl Transform {
    /// Parses a stage if it is one of these.
    pub fn parse(name: &str, value: Value<'_>, cx: &ParseContext) -> Result<Option<Transform>> {
        const NAMES: [&str; 6] =
            ["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];
        let Some(row) = find_stage(name).filter(|row| NAMES.contains(&row.name)) else {
            return Ok(None);
        };
        let mut stages = (row.parse)(row.name, value, cx)?;
        match stages.pop() {
            Some(Stage::Transform(transform)) => Ok(Some(transform)),
            _ => Ok(None),
        }
    }

    /// The name as explain shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Transform::Projection("$unset", _) => "$project",
            Transform::Projection(name, _) => name,
            Transform::ReplaceRoot(_) => "$replaceRoot",
        }
    }

    /// The document that takes the place of `cx.root`. It borrows from that or from the arena.
    pub fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        match self {
            Transform::Projection(_, projection) if projection.is_identity() => Ok(cx.root),
            Transform::Projection(_, projection) => {
                let doc = cx.document(|writer| projection.apply(cx.root, writer, cx))?;
                projection.check(doc, cx).map(|()| doc)
            }
            Transform::ReplaceRoot(stage) => stage.apply(cx),
        }
    }

    /// Adds what it reads to `needed`; true if nothing else gets into its output.
    pub fn add_dependencies(&self, needed: &mut Dependencies) -> bool {
        match self {
            Transform::Projection(_, projection) => {
                let computed = projection.computed_fields();
                computed.iter().for_each(|(_, expression)| expression.add_dependencies(needed));
                if projection.kind() != Kind::Inclusion {
                    return false;
                }
                let needs = projection.needs();
                needed.whole_document |= needs.whole_document;
                needed.paths.extend(needs.paths);
                needed.metadata.extend(needs.metadata);
                true
            }
            Transform::ReplaceRoot(stage) => {
                stage.add_dependencies(needed);
                true
            }
        }
    }

    /// Which paths it changes.
    pub fn modified(&self) -> Modified {
        match self {
            Transform::Projection(_, projection) => match projection.kind() {
                Kind::Inclusion => Modified::AllExcept(kept(projection)),
                Kind::AddFields => {
                    let computed = projection.computed_fields();
                    Modified::Paths(computed.into_iter().map(|(path, _)| path).collect())
                }
                Kind::Exclusion => Modified::Paths(named(projection)),
            },
            Transform::ReplaceRoot(_) => Modified::All,
        }
    }

    pub(super) fn serialize(&self, writer: &mut DocWriter<'_>) {
        match self {
            Transform::Projection(_, projection) => {
                writer.append(self.name(), projection.to_bson());
            }
            Transform::ReplaceRoot(stage) => stage.serialize(writer),
        }
    }
}

/// The paths that an inclusion keeps as they are, `_id` among them unless it says otherwise.
fn kept(projection: &Projection) -> BTreeSet<String> {
    let computed: BTreeSet<String> =
        projection.computed_fields().into_iter().map(|(path, _)| path).collect();
    let fields = projection.to_bson().as_doc().fields().filter_map(|(name, value)| match value {
        Value::Bool(true) => Some(name.to_owned()),
        value if value.as_number().is_some_and(|number| number.exact_i64() != Some(0)) => {
            Some(name.to_owned())
        }
        _ => None,
    });
    let mut kept: BTreeSet<String> = fields.filter(|name| !computed.contains(name)).collect();
    if projection.keeps_field("_id") {
        kept.insert("_id".to_owned());
    }
    kept
}

/// The top-level fields that a projection names.
fn named(projection: &Projection) -> BTreeSet<String> {
    let names = projection.to_bson().as_doc().fields().map(|(name, _)| name.to_owned());
    names.map(|name| name.split('.').next().unwrap_or_default().to_owned()).collect()
}
