//! Pipeline stages: parsing, and the execution of stages that work on one document at a time.
//!
//! Read in this order: this file (the list of stages), `registry` (their rows), `facts` (the facts
//! about a stage that do not depend on its operand), `body` (the facts about a parsed stage for
//! planner and explain), `pipeline` (parsing of a pipeline), `transform` (stages that make one
//! document of each), then one file for each stage. A new stage is a file here with its parser,
//! `StageBody` and row, an entry in `registry`, a variant of [`Stage`] and, unless other stages
//! replace it, an operator of the executor.

mod body;
mod bucket;
mod bucket_auto;
mod change_stream;
mod coll_stats;
mod count;
mod densify;
mod documents;
mod facet;
mod facts;
mod fill;
mod fusion;
mod fusion_input;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod hide_metadata;
mod limit;
mod lookup;
mod matching;
mod merge;
mod needs;
mod out;
mod pipeline;
mod project;
mod rank_fusion;
mod redact;
mod registry;
mod replace_root;
mod resume_token;
mod rights;
mod sample;
mod score;
mod score_fusion;
mod served;
mod set_window_fields;
mod sort;
mod sort_by_count;
mod sub_pipeline;
mod transform;
mod union_with;
mod unwind;

#[cfg(test)]
mod tests;

pub use crate::context::{Inside, Place, ViewStages};
pub use body::StageBody;
pub use bucket_auto::BucketAuto;
pub use change_stream::{
    BeforeChange, ChangeStream, FullDocument, StreamStart, check_behind_changes,
};
pub use coll_stats::{CollStats, StatsSection};
pub use densify::{Densify, DensifyBounds};
pub use documents::OneDocument;
pub use facet::Facet;
pub use facts::{Facts, InFusion, Pipelines, Reads, Source, Standing, not_in_api};
pub use fusion_input::{FusionInput, Ranks};
pub use granularity::Granularity;
pub use graph_lookup::GraphLookup;
pub use group::{Group, GroupKey};
pub use hide_metadata::HideMetadata;
pub use limit::{Limit, Skip};
pub use lookup::{Lookup, VariableEquality};
pub use matching::Match;
pub use merge::{Merge, WhenMatched, WhenNotMatched};
pub use needs::{Modified, Needs};
pub use out::Out;
pub use pipeline::{
    check_search_place, for_each_row, parse_pipeline, parse_stage, parse_sub_pipeline,
    pipeline_to_bson, row_of,
};
pub use redact::Redact;
pub use registry::{STAGES, StageRow, find_stage, first_only, search_not_enabled};
pub use replace_root::ReplaceRoot;
pub use resume_token::{ResumeToken, TokenKind};
pub use rights::{Names, On, READ, Right, StageAction, When};
pub use sample::Sample;
pub use score::{Scored, SetScore};
pub use served::{Served, check_index_stats, check_plan_cache_stats};
pub use set_window_fields::WindowFields;
pub use sort::Sort;
pub use sub_pipeline::From;
pub use transform::{Transform, Transforms};
pub use union_with::{OtherPipeline, UnionWith};
pub use unwind::{Position, Unwind, write_at};

use quire_document::DocWriter;
use std::sync::Arc;

/// A parsed stage. A clone shares the parsed parts.
#[derive(Clone, Debug)]
pub enum Stage {
    /// `$match`: the documents that match a filter.
    Match(Arc<Match>),
    /// `$project`, `$addFields`, `$set`, `$unset`, `$replaceRoot`, `$replaceWith`: makes one
    /// document of each.
    Transform(Transform),
    /// `$unwind`: one document for each element of an array.
    Unwind(Arc<Unwind>),
    /// `$redact`: parts of documents.
    Redact(Arc<Redact>),
    /// `$limit`: the first n documents.
    Limit(Limit),
    /// `$skip`: all documents except the first n.
    Skip(Skip),
    /// `$sample`: n random documents.
    Sample(Sample),
    /// The stage `$sort`.
    Sort(Sort),
    /// The stage `$group`.
    Group(Arc<Group>),
    /// The stage `$bucketAuto`.
    BucketAuto(Arc<BucketAuto>),
    /// The part of `$densify` that processes sorted documents.
    Densify(Arc<Densify>),
    /// The part of `$setWindowFields` that processes sorted documents.
    WindowFields(Arc<WindowFields>),
    /// The end of an input pipeline of `$rankFusion` or `$scoreFusion`.
    FusionInput(Arc<FusionInput>),
    /// `$score`, and the end of `$rankFusion` and `$scoreFusion`: sets the score of each document.
    SetScore(Arc<dyn SetScore>),
    /// The end of a view's stages, if its reader reads metadata.
    HideMetadata(HideMetadata),
    /// The first stage of those that replace `$documents`.
    OneDocument(OneDocument),
    /// A stage whose documents the server generates, such as `$collStats`.
    Served(Arc<Served>),
    /// `$unionWith`: the input, then the documents of another collection.
    UnionWith(Arc<UnionWith>),
    /// `$lookup`: a join with another collection.
    Lookup(Arc<Lookup>),
    /// `$facet`: several pipelines over the same documents.
    Facet(Arc<Facet>),
    /// `$graphLookup`: a recursive search in another collection.
    GraphLookup(Arc<GraphLookup>),
    /// `$out`: replaces a collection by the documents.
    Out(Arc<Out>),
    /// `$merge`: merges the documents into a collection.
    Merge(Arc<Merge>),
}

impl Stage {
    /// Returns true if the stage writes to a collection.
    pub fn writes(&self) -> bool {
        matches!(self, Stage::Out(_) | Stage::Merge(_))
    }

    /// Returns the stage's own implementation of [`StageBody`].
    fn body(&self) -> &dyn StageBody {
        match self {
            Stage::Match(stage) => &**stage,
            Stage::Transform(stage) => stage,
            Stage::Unwind(stage) => &**stage,
            Stage::Redact(stage) => &**stage,
            Stage::Limit(stage) => stage,
            Stage::Skip(stage) => stage,
            Stage::Sample(stage) => stage,
            Stage::Sort(stage) => stage,
            Stage::Group(stage) => &**stage,
            Stage::BucketAuto(stage) => &**stage,
            Stage::Densify(stage) => &**stage,
            Stage::WindowFields(stage) => &**stage,
            Stage::FusionInput(stage) => &**stage,
            Stage::SetScore(stage) => &**stage,
            Stage::HideMetadata(stage) => stage,
            Stage::OneDocument(stage) => stage,
            Stage::Served(stage) => &**stage,
            Stage::UnionWith(stage) => &**stage,
            Stage::Lookup(stage) => &**stage,
            Stage::Facet(stage) => &**stage,
            Stage::GraphLookup(stage) => &**stage,
            Stage::Out(stage) => &**stage,
            Stage::Merge(stage) => &**stage,
        }
    }
}

impl StageBody for Stage {
    fn name(&self) -> &'static str {
        self.body().name()
    }

    fn needs(&self) -> Needs {
        self.body().needs()
    }

    fn modified(&self) -> Modified {
        self.body().modified()
    }

    fn streams(&self) -> bool {
        self.body().streams()
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        self.body().print(writer);
    }
}
