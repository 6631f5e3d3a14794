//! All stages: those that are built, with their parsers, and the names of those that are not yet.

use super::{
    Stage, bucket, count, group, limit, matching, project, redact, replace_root, sample, sort,
    sort_by_count, unwind,
};
use crate::context::ParseContext;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

/// Parses the value behind a stage's name; a shorthand becomes several stages.
pub(super) type ParseFn = fn(&'static str, Value<'_>, &ParseContext) -> Result<Vec<Stage>>;

/// A stage.
pub struct StageRow {
    /// Its name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md.
    pub doc: &'static str,
    pub(super) parse: ParseFn,
}

/// All stages that are built.
pub const STAGES: &[StageRow] = &[
    project::ADD_FIELDS,
    bucket::BUCKET,
    count::COUNT,
    group::GROUP,
    limit::LIMIT,
    matching::MATCH,
    project::PROJECT,
    redact::REDACT,
    replace_root::REPLACE_ROOT,
    replace_root::REPLACE_WITH,
    sample::SAMPLE,
    project::SET,
    limit::SKIP,
    sort::SORT,
    sort_by_count::SORT_BY_COUNT,
    project::UNSET,
    unwind::UNWIND,
];

/// Stages that MongoDB knows and that are not built here yet.
pub const NOT_BUILT: &[&str] = &[
    "$bucketAuto",
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$currentOp",
    "$densify",
    "$documents",
    "$facet",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$indexStats",
    "$listCatalog",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSessions",
    "$lookup",
    "$merge",
    "$out",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$rankFusion",
    "$score",
    "$scoreFusion",
    "$setWindowFields",
    "$shardedDataDistribution",
    "$unionWith",
];

/// Stages of the search service that is not there.
const OF_SEARCH: &[&str] =
    &["$listSearchIndexes", "$search", "$searchBeta", "$searchMeta", "$vectorSearch"];

/// True for a stage of the search service.
pub fn needs_search(name: &str) -> bool {
    OF_SEARCH.contains(&name)
}

/// 31082 SearchNotEnabled for a command or a stage that needs the search service.
pub fn search_not_enabled(what: &str) -> Error {
    let text = format!(
        "{what} needs a search service beside the server, as Atlas has one; this server has none"
    );
    Error::new(ErrorCode::SearchNotEnabled, text)
}

/// The stage of that name, if it is built.
pub fn find_stage(name: &str) -> Option<&'static StageRow> {
    STAGES.iter().find(|stage| stage.name == name)
}

/// True if MongoDB knows a stage of that name.
pub fn is_known(name: &str) -> bool {
    find_stage(name).is_some() || NOT_BUILT.contains(&name) || needs_search(name)
}
