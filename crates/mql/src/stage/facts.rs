//! What holds of a stage wherever it stands. Each row of the registry has one [`Facts`]: parsing,
//! planner and commands decide by them and never by a stage's name.

use super::registry::StageRow;
use super::rights::{Names, READ, Right};
use crate::context::ParseContext;
use quire_document::{Array, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// What is true of a stage.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Where in a pipeline it may stand.
    pub standing: Standing,
    /// What gives it the documents that it works on.
    pub reads: Reads,
    /// What an `aggregate` that begins with it must name.
    pub source: Source,
    /// Which value of its operand is a pipeline.
    pub pipelines: Pipelines,
    /// Where its operand names another collection.
    pub names: Names,
    /// What its user needs. What is needed of the source and of the server counts where the stage
    /// begins a pipeline; a stage that reads another collection needs `find` on it besides.
    pub rights: &'static [Right],
    /// A pipeline of `$facet` may have it.
    pub in_facet: bool,
    /// A pipeline of `$lookup` may have it.
    pub in_lookup: bool,
    /// A pipeline of `$unionWith` may have it.
    pub in_union: bool,
    /// The definition of a view may have it.
    pub in_view: bool,
    /// A pipeline update may have it.
    pub in_update: bool,
    /// It writes to a collection.
    pub writes: bool,
    /// `apiStrict: true` allows it.
    pub in_api: bool,
    /// A transaction allows it.
    pub in_transaction: bool,
    /// It refuses every read concern but `local`.
    pub local_only: bool,
    /// Documents leave it with other fields than they had: part of a plan's shape.
    pub reshapes: bool,
    /// What it is in an input pipeline of `$rankFusion` and `$scoreFusion`.
    pub in_fusion: InFusion,
}

/// What a stage is in an input pipeline of `$rankFusion` and `$scoreFusion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFusion {
    /// No input pipeline may have it, because it changes documents or makes new ones.
    Refused,
    /// It takes documents away.
    Selects,
    /// It orders documents.
    Orders,
    /// It gives documents a score.
    Scores,
    /// As the first stage it orders and scores documents. With one of these fields in its operand
    /// it changes documents, and is refused.
    Searches(&'static [&'static str]),
}

/// Where in a pipeline a stage may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing restricts where it stands.
    Anywhere,
    /// First; anywhere else it is refused with 40602.
    First,
    /// Last; anywhere else it is refused with 40601.
    Last,
    /// First of the stages that the client wrote, so that those of a view may stand before it;
    /// anywhere else it is refused with this code.
    FirstWritten(ErrorCode),
}

/// What gives a stage the documents that it works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The stage before it.
    Input,
    /// The stage before it, and another collection.
    OtherCollection,
    /// The server makes them.
    Server,
    /// They are written in the stage.
    Literal,
    /// The search service, which is not there.
    Search,
}

/// What an `aggregate` that begins with a stage must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A collection or a view.
    Collection,
    /// A database: `{aggregate: 1}`. Over a collection the stage is refused with this code.
    Database(ErrorCode),
    /// The database `admin`: `{aggregate: 1}`.
    Admin,
    /// The collection `config.system.sessions`.
    Sessions,
    /// The stage's own parser decides.
    Any,
}

/// Which value of a stage's operand is a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipelines {
    /// It has no pipeline inside.
    None,
    /// The one of this field.
    Field(&'static str),
    /// The value of each field.
    Each,
    /// The value of each field of `input.pipelines`.
    Inputs,
}

/// What a pipeline is parsed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// The command `aggregate`, or what reads as it does.
    #[default]
    Aggregate,
    /// A branch of a `$facet`.
    Facet,
    /// The `pipeline` of a `$lookup`.
    Lookup,
    /// The `pipeline` of a `$unionWith`.
    Union,
    /// The definition of a view.
    View,
}

/// Where the pipeline stands that is being parsed.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// What it reads: `database.collection`, or `database.$cmd.aggregate` for a pipeline without a
    /// collection.
    pub namespace: String,
    /// What it is parsed for.
    pub inside: Inside,
    /// The number of pipelines around it.
    pub depth: usize,
    /// It is a branch of a `$facet`, or stands inside of one.
    pub below_facet: bool,
    /// A stage that stood before its first one is taken off already.
    pub behind_source: bool,
    /// The view that the client named, if its first stages are those of the view.
    pub view: Option<ViewStages>,
    /// A stage before this one gives its documents a `score`.
    pub has_score: bool,
    /// A stage before this one gives its documents `scoreDetails`.
    pub has_score_details: bool,
}

/// The stages of a view at the beginning of a pipeline.
#[derive(Clone, Debug)]
pub struct ViewStages {
    /// The view, `database.view`.
    pub namespace: String,
    /// The number of its stages, those of the views below included.
    pub count: usize,
}

impl Pipelines {
    /// Returns the pipelines inside of an operand with these fields.
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
    /// A stage that works on what the stage before it gives, and that may stand anywhere.
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
    };

    /// A stage that makes one document of one.
    pub const TRANSFORM: Facts = Facts { in_update: true, ..Facts::PLAIN };

    /// A stage that joins what several pipelines over the same collection find.
    pub const FUSION: Facts = Facts {
        standing: Standing::FirstWritten(ErrorCode::location(10170100)),
        pipelines: Pipelines::Inputs,
        in_view: false,
        in_api: false,
        in_transaction: false,
        ..Facts::PLAIN
    };

    /// A stage that reads another collection beside its input.
    pub const JOIN: Facts = Facts {
        reads: Reads::OtherCollection,
        names: Names::Field("from"),
        pipelines: Pipelines::Field("pipeline"),
        ..Facts::PLAIN
    };

    /// A stage whose documents the server makes.
    pub const SERVER: Facts = Facts {
        standing: Standing::First,
        reads: Reads::Server,
        in_facet: false,
        in_transaction: false,
        in_api: false,
        ..Facts::PLAIN
    };

    /// A stage that writes the documents that it gets.
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

impl Place {
    /// Returns the place of an `aggregate`'s pipeline.
    pub fn of(namespace: &str) -> Self {
        Place { namespace: namespace.to_owned(), ..Place::default() }
    }

    /// True if the pipeline reads no collection.
    pub fn has_no_collection(&self) -> bool {
        self.namespace.ends_with(".$cmd.aggregate")
    }

    /// Returns the database of what it reads.
    pub fn db(&self) -> &str {
        self.namespace.split('.').next().unwrap_or_default()
    }
}

/// Fails if the pipeline that `cx` parses may not have the stage at all.
///
/// # Errors
/// 51047, 31441 and 167 for a stage that may not stand in this kind of pipeline, 323 where
/// `apiStrict` refuses it.
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

/// 323 APIStrictError for a stage that is not part of the stable API.
pub fn not_in_api(name: &str) -> Error {
    let text = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
    Error::new(ErrorCode::APIStrictError, text)
}

/// Fails for a stage of a sub-pipeline that needs another source than the pipeline has: with 73
/// InvalidNamespace, or with the code that [`Source::Database`] names.
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

/// Fails with 40600 for a stage that no `$facet` may have, not even in the pipeline of a stage of its
/// own, unless the stage brings its documents with it there.
pub(super) fn check_facet(row: &StageRow, cx: &ParseContext) -> Result<()> {
    let Some(place) = cx.place.as_deref().filter(|place| place.below_facet) else { return Ok(()) };
    let brings_its_own = place.inside != Inside::Facet && row.facts.reads == Reads::Literal;
    if row.facts.in_facet || brings_its_own {
        return Ok(());
    }
    let text = format!("{} is not allowed to be used within a $facet stage", row.name);
    Err(Error::location(40600, text))
}

/// Fails with 73 InvalidNamespace for a pipeline without a collection whose first stage needs one.
/// `first` is `None` for no stages.
pub(super) fn check_first(first: Option<&StageRow>, cx: &ParseContext) -> Result<()> {
    let Some(place) = cx.place.as_deref() else { return Ok(()) };
    let reads_collection = first.is_none_or(|row| row.facts.source == Source::Collection);
    if place.inside != Inside::Aggregate || !place.has_no_collection() || !reads_collection {
        return Ok(());
    }
    let text = "{aggregate: 1} is not valid for a pipeline whose first stage needs a collection";
    Err(Error::new(ErrorCode::InvalidNamespace, text))
}
