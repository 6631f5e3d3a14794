//! Stages that make one document of one: also those that a pipeline update may use.

use super::needs::Modified;
use super::registry::find_stage;
use super::{AddFields, ReplaceRoot, Stage, Unset};
use crate::context::{EvalContext, ParseContext};
use crate::expression::Dependencies;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;

/// A stage that makes one document of one.
#[derive(Debug)]
pub enum Transform {
    /// `$addFields`, `$set`.
    AddFields(AddFields),
    /// `$replaceRoot`, `$replaceWith`.
    ReplaceRoot(ReplaceRoot),
    /// `$unset`.
    Unset(Unset),
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
            Transform::AddFields(stage) => stage.name(),
            Transform::Unset(_) => "$project",
            Transform::ReplaceRoot(_) => "$replaceRoot",
        }
    }

    /// The document that takes the place of `cx.root`. It borrows from that or from the arena.
    pub fn apply<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Doc<'a>> {
        match self {
            Transform::AddFields(stage) => stage.apply(cx),
            Transform::ReplaceRoot(stage) => stage.apply(cx),
            Transform::Unset(stage) => stage.apply(cx),
        }
    }

    /// Adds what it reads to `needed`; true if nothing else gets into its output.
    pub fn add_dependencies(&self, needed: &mut Dependencies) -> bool {
        match self {
            Transform::AddFields(stage) => {
                stage.add_dependencies(needed);
                false
            }
            Transform::ReplaceRoot(stage) => {
                stage.add_dependencies(needed);
                true
            }
            Transform::Unset(_) => false,
        }
    }

    /// Which paths it changes.
    pub fn modified(&self) -> Modified {
        match self {
            Transform::AddFields(stage) => Modified::Paths(stage.modified_paths()),
            Transform::ReplaceRoot(_) => Modified::All,
            Transform::Unset(stage) => Modified::Paths(stage.modified_paths()),
        }
    }

    pub(super) fn serialize(&self, writer: &mut DocWriter<'_>) {
        match self {
            Transform::AddFields(stage) => stage.serialize(writer),
            Transform::ReplaceRoot(stage) => stage.serialize(writer),
            Transform::Unset(stage) => stage.serialize(writer),
        }
    }
}
