//! Pipeline stages: parsed once; those that work on one document at a time also run here.
//!
//! Reading order: this file (what a stage is), `registry` (all of them), `pipeline` (parsing a
//! whole pipeline), `transform` (stages that make one document of one), then one file a stage.
//! Blocking stages (`$group`, `$sort`, `$sample`) are parsed here and run by the executor.

mod bucket;
mod count;
mod documents;
mod group;
mod limit;
mod matching;
mod needs;
mod pipeline;
mod project;
mod redact;
mod registry;
mod replace_root;
mod sample;
mod sort;
mod sort_by_count;
mod transform;
mod unwind;

#[cfg(test)]
mod tests;

pub use documents::documents_as_stages;
pub use group::{Group, GroupKey};
pub use matching::Match;
pub use needs::{Modified, Needs};
pub use pipeline::{parse_pipeline, parse_stage, pipeline_to_bson};
pub use redact::Redact;
pub use registry::{NOT_BUILT, STAGES, StageRow, find_stage, is_known, search_not_enabled};
pub use replace_root::ReplaceRoot;
pub use transform::{Transform, Transforms};
pub use unwind::{Position, Unwind};

use crate::sort::SortPattern;
use quire_document::DocWriter;

/// A parsed stage.
#[derive(Debug)]
pub enum Stage {
    /// `$match`: documents that pass a filter.
    Match(Match),
    /// `$project`, `$addFields`, `$set`, `$unset`, `$replaceRoot`, `$replaceWith`: one document
    /// becomes another.
    Transform(Transform),
    /// `$unwind`: a document for each element of an array.
    Unwind(Unwind),
    /// `$redact`: parts of documents.
    Redact(Redact),
    /// `$limit`: the first n documents.
    Limit(u64),
    /// `$skip`: all but the first n documents.
    Skip(u64),
    /// `$sample`: n documents at random.
    Sample(u64),
    /// `$sort`.
    Sort(SortPattern),
    /// `$group`.
    Group(Group),
}

impl Stage {
    /// The name with the dollar sign, as explain shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Stage::Match(_) => "$match",
            Stage::Transform(transform) => transform.name(),
            Stage::Unwind(_) => "$unwind",
            Stage::Redact(_) => "$redact",
            Stage::Limit(_) => "$limit",
            Stage::Skip(_) => "$skip",
            Stage::Sample(_) => "$sample",
            Stage::Sort(_) => "$sort",
            Stage::Group(_) => "$group",
        }
    }

    /// Writes the stage, `{$name: ...}`, as explain shows it.
    pub fn serialize(&self, writer: &mut DocWriter<'_>) {
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        match self {
            Stage::Match(stage) => stage.serialize(writer),
            Stage::Transform(stage) => stage.serialize(writer),
            Stage::Unwind(stage) => stage.serialize(writer),
            Stage::Redact(stage) => stage.serialize(writer),
            Stage::Limit(number) | Stage::Skip(number) => {
                writer.append(self.name(), count(*number));
            }
            Stage::Sample(number) => {
                writer.document("$sample").append("size", count(*number));
            }
            Stage::Sort(pattern) => {
                let mut inner = writer.document("$sort");
                inner.document("sortKey").append_all(pattern.to_bson().as_doc());
            }
            Stage::Group(stage) => stage.serialize(writer),
        }
    }
}
