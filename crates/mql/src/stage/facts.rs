//! The facts about a stage that do not depend on its operand. Each row of the registry has one
//! [`Facts`]. Parsing, planner and commands use these facts, never the name of a stage.

use super::registry::StageRow;
use super::rights::{Names, READ, Right};
use crate::context::{Inside, ParseContext};
use quire_document::{Array, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The facts about a kind of stage.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its allowed position in a pipeline.
    pub standing: Standing,
    /// The source of its documents.
    pub reads: Reads,
    /// The namespace that an `aggregate` needs if the stage is its first.
    pub source: Source,
    /// The part of its operand that is a pipeline.
    pub pipelines: Pipelines,
    /// The part of its operand that names another collection.
    pub names: Names,
    /// The privileges that it needs. Those on the source and on the server apply if the stage is
    /// the first of a pipeline. A stage that reads another collection also needs `find` on it.
    pub rights: &'static [Right],
    /// Allowed in a pipeline of `$facet`.
    pub in_facet: bool,
    /// Allowed in a pipeline of `$lookup`.
    pub in_lookup: bool,
    /// Allowed in a pipeline of `$unionWith`.
    pub in_union: bool,
    /// Allowed in the definition of a view.
    pub in_view: bool,
    /// Allowed in a pipeline update.
    pub in_update: bool,
    /// True if it writes to a collection.
    pub writes: bool,
    /// Allowed with `apiStrict: true`.
    pub in_api: bool,
    /// Allowed in a transaction.
    pub in_transaction: bool,
    /// True if it refuses every read concern except `local`.
    pub local_only: bool,
    /// True if it changes the fields of documents, which makes it a part of the plan's shape.
    pub reshapes: bool,
    /// Its role in an input pipeline of `$rankFusion` and `$scoreFusion`.
    pub in_fusion: InFusion,
    /// Whether it may follow `$changeStream`.
    pub behind_changes: BehindChanges,
}

/// Whether a stage may follow `$changeStream`, whose documents have no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehindChanges {
    /// Allowed, because it takes one document at a time.
    Allowed,
    /// Refused under its own name.
    Refused,
    /// Refused under the name of the stage that it is short for.
    RefusedAs(&'static str),
    /// Allowed if it depends on one document at a time: a `$fill` with values.
    WithoutOrder,
    /// Allowed as the last stage: it cuts large events.
    Cuts,
}

/// The role of a stage in an input pipeline of `$rankFusion` and `$scoreFusion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFusion {
    /// Not allowed, because it changes documents or creates new ones.
    Refused,
    /// It removes documents.
    Selects,
    /// It orders documents.
    Orders,
    /// It assigns a score to documents.
    Scores,
    /// As the first stage it orders and scores documents. If its operand has one of these fields,
    /// it changes documents and is refused.
    Searches(&'static [&'static str]),
}

/// The allowed position of a stage in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Any position is allowed.
    Anywhere,
    /// The first position; 40602 otherwise.
    First,
    /// The first position, or one after filters that every document passes, which are removed; 40603
    /// otherwise.
    FirstLeft,
    /// The last position; 40601 otherwise.
    Last,
    /// The first position among the stages that the client wrote; those of a view may precede it.
    /// This code otherwise.
    FirstWritten(ErrorCode),
}

/// The source of a stage's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The previous stage.
    Input,
    /// The previous stage, and another collection.
    OtherCollection,
    /// The server generates them.
    Server,
    /// The change log.
    Changes,
    /// The operand of the stage.
    Literal,
    /// The search service, which this server does not have.
    Search,
}

/// The namespace that an `aggregate` needs if the stage is its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A collection or a view.
    Collection,
    /// A database: `{aggregate: 1}`. With a collection the stage fails with this code.
    Database(ErrorCode),
    /// The database `admin`: `{aggregate: 1}`.
    Admin,
    /// The collection `config.system.sessions`.
    Sessions,
    /// A collection, a database or all databases: the stage follows their changes.
    Watched,
    /// The stage's parser checks it.
    Any,
}

/// The part of a stage's operand that is a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipelines {
    /// The operand contains no pipeline.
    None,
    /// The value of this field.
    Field(&'static str),
    /// The value of each field.
    Each,
    /// The value of each field of `input.pipelines`.
    Inputs,
}

impl Pipelines {
    /// Returns the pipelines in an operand with these fields.
    pub fn of<'a>(self, operand: Doc<'a>) -> Vec<Array<'a>> {
        let each = |doc: Doc<'a>| doc.fields().map(|(_, value)| value).collect();
        let inside = |doc: Doc<'a>, name: &str| doc.get(name).and_then(|value| value.as_document());
        let values: Vec<Value<'a>> = match self {
            Pipelines::None => Vec::new(),
            Pipelines::Field(name) => operand.get(name).into_iter().collect(),
            Pipelines::Each => each(operand),
            Pipelines::Inputs => {
                let input = inside(operand, "input").unwrap_or_default();
                inside(input, "pipelines").map(each).unwrap_or_default()
            }
        };
        values.into_iter().filter_map(|stages| stages.as_array()).collect()
    }
}

impl Facts {
    /// The facts of a stage that only processes its input and may have any position.
    pub const PLAIN: Facts = Facts {
        standing: Standing::Anywhere,
        reads: Reads::Input,
        source: Source::Collection,
        pipelines: Pipelines::None,
        names: Names::Nothing,
        rights: READ,
        in_facet: true,
        in_lookup: true,
        in_union: true,
        in_view: true,
        in_update: false,
        writes: false,
        in_api: true,
        in_transaction: true,
        local_only: false,
        reshapes: false,
        in_fusion: InFusion::Refused,
        behind_changes: BehindChanges::Refused,
    };

    /// The facts of a stage that makes one document of each.
    pub const TRANSFORM: Facts =
        Facts { in_update: true, behind_changes: BehindChanges::Allowed, ..Facts::PLAIN };

    /// The facts of a stage that combines the results of several pipelines over the same
    /// collection.
    pub const FUSION: Facts = Facts {
        standing: Standing::FirstWritten(ErrorCode::location(10170100)),
        pipelines: Pipelines::Inputs,
        in_view: false,
        in_api: false,
        in_transaction: false,
        ..Facts::PLAIN
    };

    /// The facts of a stage that reads another collection in addition to its input.
    pub const JOIN: Facts = Facts {
        reads: Reads::OtherCollection,
        names: Names::Field("from"),
        pipelines: Pipelines::Field("pipeline"),
        ..Facts::PLAIN
    };

    /// The facts of a stage whose documents the server generates.
    pub const SERVER: Facts = Facts {
        standing: Standing::First,
        reads: Reads::Server,
        in_facet: false,
        in_transaction: false,
        in_api: false,
        ..Facts::PLAIN
    };

    /// The facts of a stage that writes its input to a collection.
    pub const WRITER: Facts = Facts {
        standing: Standing::Last,
        in_facet: false,
        in_lookup: false,
        in_union: false,
        in_view: false,
        writes: true,
        in_transaction: false,
        ..Facts::PLAIN
    };
}

/// Fails if the stage is not allowed in the pipeline that `cx` parses.
///
/// # Errors
/// 51047, 31441 and 167 for a stage that is not allowed in this kind of pipeline, 323
/// APIStrictError for one outside the stable API.
pub(super) fn check_place(row: &StageRow, cx: &ParseContext) -> Result<()> {
    if cx.api_strict && !row.facts.in_api {
        return Err(not_in_api(row.name));
    }
    let Some(place) = cx.place.as_deref() else { return Ok(()) };
    let name = row.name;
    let (allowed, code, text) = match place.inside {
        Inside::Aggregate | Inside::Facet => return Ok(()),
        Inside::Lookup => (
            row.facts.in_lookup,
            ErrorCode::location(51047),
            format!("{name} is not allowed within a $lookup's sub-pipeline"),
        ),
        Inside::Union => (
            row.facts.in_union,
            ErrorCode::location(31441),
            format!("{name} is not allowed within a $unionWith's sub-pipeline"),
        ),
        Inside::View => (
            row.facts.in_view,
            ErrorCode::OptionNotSupportedOnView,
            format!("The aggregation stage {name} cannot be used in a view definition"),
        ),
    };
    if allowed { Ok(()) } else { Err(Error::new(code, text)) }
}

/// Returns a 323 APIStrictError for a stage outside the stable API.
pub fn not_in_api(name: &str) -> Error {
    let text = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
    Error::new(ErrorCode::APIStrictError, text)
}

/// Fails if a stage of a subpipeline needs another source than the pipeline has: with 73
/// InvalidNamespace, or with the code in [`Source::Database`].
pub(super) fn check_source(row: &StageRow, cx: &ParseContext) -> Result<()> {
    let Some(place) = cx.place.as_deref().filter(|place| place.depth > 0) else { return Ok(()) };
    let name = row.name;
    let refuse = |text: String| Err(Error::new(ErrorCode::InvalidNamespace, text));
    match row.facts.source {
        Source::Database(code) if !place.has_no_collection() => {
            Err(Error::new(code, format!("'{name}' can only be run with {{aggregate: 1}}")))
        }
        Source::Admin if !place.has_no_collection() || place.db() != "admin" => {
            refuse(format!("{name} must be run against the 'admin' database with {{aggregate: 1}}"))
        }
        Source::Sessions if place.namespace != "config.system.sessions" => {
            refuse(format!("{name} may only be run against config.system.sessions"))
        }
        _ => Ok(()),
    }
}

/// Fails with 40600 for a stage that is not allowed in a `$facet`, nor in pipelines inside it,
/// unless its documents are in the stage itself.
pub(super) fn check_facet(row: &StageRow, cx: &ParseContext) -> Result<()> {
    let Some(place) = cx.place.as_deref().filter(|place| place.below_facet) else { return Ok(()) };
    let brings_its_own = place.inside != Inside::Facet && row.facts.reads == Reads::Literal;
    if row.facts.in_facet || brings_its_own {
        return Ok(());
    }
    let text = format!("{} is not allowed to be used within a $facet stage", row.name);
    Err(Error::location(40600, text))
}

/// Fails with 73 InvalidNamespace if a pipeline without a collection has a first stage that needs
/// one. `first` is `None` if there are no stages.
pub(super) fn check_first(first: Option<&StageRow>, cx: &ParseContext) -> Result<()> {
    let Some(place) = cx.place.as_deref() else { return Ok(()) };
    let reads_collection = first.is_none_or(|row| row.facts.source == Source::Collection);
    if place.inside != Inside::Aggregate || !place.has_no_collection() || !reads_collection {
        return Ok(());
    }
    let text = "{aggregate: 1} is not valid for a pipeline whose first stage needs a collection";
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}
