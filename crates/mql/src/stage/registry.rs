//! The registry of stages: a row for each of MongoDB's stages, with its parser and its facts.
//! Stages that are not built, and those of the search service, have rows for their errors.

use super::facts::{Facts, InFusion, Reads, Source, Standing};
use super::rights::{On, READ, Right, StageAction, When, on_cluster, on_source};
use super::{
    Stage, bucket, bucket_auto, change_stream, count, densify, documents, facet, fill, geo_near,
    graph_lookup, group, limit, lookup, matching, merge, out, project, rank_fusion, redact,
    replace_root, sample, score, score_fusion, served, set_window_fields, sort, sort_by_count,
    union_with, unwind,
};
use crate::context::ParseContext;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

/// Parses the value after a stage's name. Some stages are replaced by several others.
pub(super) type ParseFn = fn(&'static str, Value<'_>, &ParseContext) -> Result<Vec<Stage>>;

/// A stage of MongoDB.
pub struct StageRow {
    /// The name with the dollar sign.
    pub name: &'static str,
    /// The MongoDB version that introduced it.
    pub since: &'static str,
    /// One sentence for COMPATIBILITY.md; empty for a stage that is refused.
    pub doc: &'static str,
    /// The facts that do not depend on the operand.
    pub facts: Facts,
    pub(super) parse: ParseFn,
}

/// All stages by name; those of the search service come last.
pub const STAGES: &[StageRow] = &[
    project::ADD_FIELDS,
    bucket::BUCKET,
    bucket_auto::BUCKET_AUTO,
    change_stream::CHANGE_STREAM,
    change_stream::SPLIT_LARGE_EVENT,
    served(
        "$collStats",
        "3.4",
        "Counts and sizes of the collection.",
        Facts { in_api: true, rights: &[on_source(StageAction::CollStats)], ..Facts::SERVER },
        served::COLL_STATS,
    ),
    count::COUNT,
    served(
        "$currentOp",
        "3.6",
        "The running operations.",
        Facts {
            source: Source::Admin,
            local_only: true,
            rights: &[for_others(StageAction::Inprog, &["allUsers"])],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    densify::DENSIFY,
    documents::DOCUMENTS,
    facet::FACET,
    fill::FILL,
    geo_near::GEO_NEAR,
    graph_lookup::GRAPH_LOOKUP,
    group::GROUP,
    served(
        "$indexStats",
        "3.2",
        "How often each index was used.",
        Facts { rights: &[on_source(StageAction::IndexStats)], ..Facts::SERVER },
        served::INDEX_STATS,
    ),
    limit::LIMIT,
    served(
        "$listCatalog",
        "6.0",
        "The catalog's entry of a collection, or of all collections.",
        Facts {
            source: Source::Any,
            rights: &[
                on_cluster(StageAction::ListDatabases),
                on_source(StageAction::ListCollections),
            ],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    served(
        "$listClusterCatalog",
        "8.1",
        "The collections and views of a database, or of all databases.",
        Facts {
            source: Source::Database(ErrorCode::location(9621301)),
            local_only: true,
            rights: &[on_cluster(StageAction::ListClusterCatalog)],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    served(
        "$listLocalSessions",
        "3.6",
        "The sessions in use that this server knows.",
        Facts {
            source: Source::Database(ErrorCode::InvalidNamespace),
            local_only: true,
            rights: OTHER_SESSIONS,
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    served(
        "$listSampledQueries",
        "7.0",
        "The sampled queries of a collection, or of all.",
        Facts {
            source: Source::Admin,
            // The manual names only the role clusterMonitor. This is an action of that role.
            rights: &[on_cluster(StageAction::Inprog)],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    served(
        "$listSessions",
        "3.6",
        "The sessions in use.",
        Facts { source: Source::Sessions, rights: OTHER_SESSIONS, ..LISTED },
        served::NEVER_INSIDE,
    ),
    lookup::LOOKUP,
    matching::MATCH,
    merge::MERGE,
    out::OUT,
    served(
        "$planCacheStats",
        "4.2",
        "The cached plans of a collection.",
        Facts {
            local_only: true,
            rights: &[on_source(StageAction::PlanCacheRead)],
            ..Facts::SERVER
        },
        served::PLAN_CACHE_STATS,
    ),
    project::PROJECT,
    served(
        "$querySettings",
        "8.0",
        "The query settings of the server.",
        Facts {
            source: Source::Database(ErrorCode::InvalidNamespace),
            rights: &[on_cluster(StageAction::QuerySettings)],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    served(
        "$queryStats",
        "6.0",
        "The statistics of the shapes of reads, which the recorder has counted.",
        Facts {
            source: Source::Admin,
            rights: &[on_cluster(StageAction::QueryStatsRead)],
            ..LISTED
        },
        served::NEVER_INSIDE,
    ),
    rank_fusion::RANK_FUSION,
    redact::REDACT,
    replace_root::REPLACE_ROOT,
    replace_root::REPLACE_WITH,
    sample::SAMPLE,
    served(
        "$schemaStats",
        "",
        "What the documents of a collection or view look like: paths, types, values, references.",
        LISTED,
        served::NEVER_INSIDE,
    ),
    score::SCORE,
    score_fusion::SCORE_FUSION,
    project::SET,
    set_window_fields::SET_WINDOW_FIELDS,
    not_built(
        "$shardedDataDistribution",
        Facts {
            source: Source::Admin,
            rights: &[on_cluster(StageAction::ShardedDataDistribution)],
            ..LISTED
        },
    ),
    limit::SKIP,
    sort::SORT,
    sort_by_count::SORT_BY_COUNT,
    served(
        "$statusHistory",
        "",
        "Samples of serverStatus that the server has kept, from the date 'since' to 'until'.",
        Facts { source: Source::Admin, rights: &[on_cluster(StageAction::ServerStatus)], ..LISTED },
        served::NEVER_INSIDE,
    ),
    union_with::UNION_WITH,
    project::UNSET,
    unwind::UNWIND,
    of_search(
        "$listSearchIndexes",
        InFusion::Refused,
        &[on_source(StageAction::ListSearchIndexes)],
    ),
    of_search("$search", InFusion::Searches(&[]), READ),
    of_search("$searchBeta", InFusion::Searches(&[]), READ),
    of_search("$searchMeta", InFusion::Refused, READ),
    of_search("$vectorSearch", InFusion::Searches(&[]), READ),
];

/// The facts of a stage whose documents the server generates and which is allowed neither in views
/// nor inside stages.
const LISTED: Facts = Facts { in_lookup: false, in_union: false, in_view: false, ..Facts::SERVER };

/// Returns a privilege that is needed only if the operand requests data of other users.
const fn for_others(action: StageAction, fields: &'static [&'static str]) -> Right {
    Right { action, on: On::Cluster, when: When::Asks(fields) }
}

const OTHER_SESSIONS: &[Right] = &[for_others(StageAction::ListSessions, &["allUsers", "users"])];

/// Returns the row of a stage that is not built.
const fn not_built(name: &'static str, facts: Facts) -> StageRow {
    StageRow { name, since: "", doc: "", facts, parse: |name, _, _| Err(Error::not_built(name)) }
}

/// Returns the row of a stage of the search service, which this server does not have.
const fn of_search(name: &'static str, in_fusion: InFusion, rights: &'static [Right]) -> StageRow {
    let facts = Facts {
        reads: Reads::Search,
        standing: Standing::First,
        source: Source::Any,
        in_api: false,
        in_facet: false,
        in_fusion,
        rights,
        ..Facts::PLAIN
    };
    StageRow { name, since: "", doc: "", facts, parse: |name, _, _| Err(search_not_enabled(name)) }
}

/// Returns the row of a stage whose documents the server generates. A command removes it from the
/// start of its pipeline, so `parse` only runs for stages inside other stages and in views.
const fn served(
    name: &'static str,
    since: &'static str,
    doc: &'static str,
    facts: Facts,
    parse: ParseFn,
) -> StageRow {
    StageRow { name, since, doc, facts, parse }
}

/// Returns the error 40602, for a stage that is not the first one.
pub fn first_only(name: &str) -> Error {
    let text = format!("{name} is only valid as the first stage in a pipeline");
    Error::location(40602, text)
}

/// Returns a 31082 SearchNotEnabled, for a command or a stage that needs the search service.
pub fn search_not_enabled(what: &str) -> Error {
    let text = format!(
        "{what} needs a search service, such as that of Atlas, which this server does not have"
    );
    Error::new(ErrorCode::SearchNotEnabled, text)
}

impl StageRow {
    /// Returns true for a stage of the search service.
    pub fn needs_search(&self) -> bool {
        self.facts.reads == Reads::Search
    }

    /// Returns true if the stage is built.
    pub fn is_built(&self) -> bool {
        !self.doc.is_empty()
    }
}

/// Returns the stage with this name.
pub fn find_stage(name: &str) -> Option<&'static StageRow> {
    let mut slot = slot_of(name.as_bytes());
    loop {
        let row = STAGES.get(usize::from(SLOTS[slot]))?;
        if row.name == name {
            return Some(row);
        }
        slot = (slot + 1) % SLOTS.len();
    }
}

/// A hash table of the stages' names, with linear probing: each slot has an index in `STAGES`, or
/// one beyond its end if it is empty. Several layers look up each stage of a pipeline.
static SLOTS: [u8; 256] = {
    let mut slots = [u8::MAX; 256];
    let mut at = 0;
    while at < STAGES.len() {
        let mut slot = slot_of(STAGES[at].name.as_bytes());
        while slots[slot] != u8::MAX {
            slot = (slot + 1) % slots.len();
        }
        slots[slot] = at as u8;
        at += 1;
    }
    assert!(STAGES.len() < slots.len() / 2, "too full to find a free slot soon");
    slots
};

/// Returns the slot where the search for a name begins.
const fn slot_of(name: &[u8]) -> usize {
    let (mut hash, mut at) = (name.len(), 0);
    // Two stages may have the same first or last letters.
    while at < name.len() && at < 8 {
        hash = hash.wrapping_mul(31) + name[at] as usize;
        at += 1;
    }
    hash % 256
}
