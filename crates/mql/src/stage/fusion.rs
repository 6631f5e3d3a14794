//! The common part of `$rankFusion` and `$scoreFusion`: their input pipelines, the weights, and the
//! stages that replace both. (MongoDB manual, "$rankFusion" and "$scoreFusion".)
//!
//! The first input pipeline runs on the stage's own source, each other one in a `$unionWith` over
//! the same collection. A [`FusionInput`] at the end of each wraps a document in an envelope `{doc,
//! of: {name: {...}}}`, a `$group` merges the envelopes of equal `_id`, a [`SetScore`] returns the
//! document with its score, and a `$sort` orders by score and `_id`.

use super::facts::InFusion;
use super::fusion_input::FusionInput;
use super::pipeline::{STAGES_MAX, parse_stage, parse_sub_pipeline, row_of, too_many_stages};
use super::score::SetScore;
use super::sub_pipeline::From;
use super::{OtherPipeline, Stage, UnionWith};
use crate::context::{Inside, ParseContext};
use crate::options::Options;
use quire_document::{Array, Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The field of an envelope that has the document.
pub(super) const DOCUMENT: &str = "doc";
/// The field of an envelope that has the data of each input pipeline, by its name.
pub(super) const OF: &str = "of";
/// The field that has the score of an input pipeline before normalization.
pub(super) const RAW: &str = "raw";
/// The field that has the score of an input pipeline after scaling.
pub(super) const SCALED: &str = "scaled";

/// An input pipeline before parsing.
pub(super) struct Input<'v> {
    pub name: &'v str,
    stages: Array<'v>,
}

/// The operands of the whole stage.
pub(super) struct Asked<'v> {
    pub input: Doc<'v>,
    pub combination: Option<Doc<'v>>,
    pub details: bool,
}

impl<'v> Asked<'v> {
    /// Reads the operand of the stage that `options` names.
    ///
    /// # Errors
    /// 9 FailedToParse for what is no document, 40415 for an unknown field, 40414 without `input`, 14
    /// TypeMismatch for a field of another type.
    pub fn parse(options: Options<'_>, value: Value<'v>) -> Result<Self> {
        let Value::Document(spec) = value else {
            let (name, kind) = (options.0, value.type_name());
            let text = format!("the {name} stage specification must be an object, found {kind}");
            return Err(Error::failed_to_parse(text));
        };
        let (mut input, mut combination, mut details) = (None, None, false);
        for field in options.fields(spec) {
            match field? {
                ("input", value) => input = object(options, "input", value)?,
                ("combination", value) => combination = object(options, "combination", value)?,
                ("scoreDetails", value) => details = flag(options, "scoreDetails", value)?,
                (other, _) => return Err(options.unknown(other)),
            }
        }
        let input = input.ok_or_else(|| options.missing("input"))?;
        Ok(Asked { input, combination, details })
    }
}

/// The requirement on an input pipeline, besides that it only selects documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requirement {
    /// It must order documents: by a `$sort`, or a search as its first stage.
    Order,
    /// It must score documents: by a `$score`, or a search as its first stage.
    Score,
}

/// Parses an operand that is a document. Returns `None` for null, which counts as missing.
///
/// # Errors
/// 14 TypeMismatch for other types.
pub(super) fn object<'v>(
    options: Options<'_>,
    name: &str,
    value: Value<'v>,
) -> Result<Option<Doc<'v>>> {
    match value {
        Value::Document(doc) => Ok(Some(doc)),
        Value::Null | Value::Undefined => Ok(None),
        other => Err(options.wrong_type(name, other, "object")),
    }
}

/// Parses an operand that is a boolean. Null counts as false.
///
/// # Errors
/// 14 TypeMismatch for other types.
pub(super) fn flag(options: Options<'_>, name: &str, value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        Value::Null | Value::Undefined => Ok(false),
        other => Err(options.wrong_type(name, other, "bool")),
    }
}

/// Parses the operand `input.pipelines`.
///
/// # Errors
/// 14 TypeMismatch for a value that is not an array of documents, 2 BadValue for no pipelines, 7749501 for
/// more than a pipeline may have stages: each of them becomes a stage.
pub(super) fn inputs<'v>(options: Options<'_>, pipelines: Doc<'v>) -> Result<Vec<Input<'v>>> {
    let mut inputs = Vec::new();
    for field in options.fields(pipelines) {
        let (name, value) = field?;
        let Value::Array(stages) = value else {
            return Err(options.wrong_type(name, value, "array"));
        };
        if let Some(other) = stages.iter().find(|stage| stage.as_document().is_none()) {
            return Err(options.wrong_type(name, other, "array of objects"));
        }
        if inputs.len() == STAGES_MAX {
            return Err(too_many_stages());
        }
        inputs.push(Input { name, stages });
    }
    if inputs.is_empty() {
        let text = format!("{} must have at least one pipeline", options.0);
        return Err(Error::bad_value(text));
    }
    Ok(inputs)
}

impl Input<'_> {
    /// Parses the stages of the pipeline.
    ///
    /// # Errors
    /// 15998, 16410 and 16412 for an invalid name, 9834300 for no stages, 9191103 for a stage that
    /// does more than select documents, 10473002 and 10170100 for a nested fusion, 9191100 if it
    /// does not order or score documents, and errors of parsing the stages.
    pub fn parse(&self, requirement: Requirement, cx: &ParseContext) -> Result<Vec<Stage>> {
        let name = self.name;
        crate::expression::check_field_name(name)?;
        if name.contains('.') {
            return Err(Error::location(16412, "FieldPath field names may not contain '.'."));
        }
        if self.stages.is_empty() {
            return Err(Error::location(9834300, format!("input pipeline '{name}' has no stages")));
        }
        let mut is_satisfied = false;
        for (at, stage) in self.stages.iter().enumerate() {
            is_satisfied |= self.check(at, stage)? == Some(requirement);
        }
        let first = self.stages.iter().next().map(row_of).transpose()?;
        let searches = first.is_some_and(|(row, _)| is_search(row.facts.in_fusion));
        if !is_satisfied && !searches {
            let needed = match requirement {
                Requirement::Order => "needs a $sort, or has to begin with a search that ranks",
                Requirement::Score => "needs a $score, or has to begin with a search that scores",
            };
            return Err(Error::location(9191100, format!("input pipeline '{name}' {needed}")));
        }
        let namespace = cx.place.as_deref().map_or("", |place| &place.namespace);
        parse_sub_pipeline(self.stages, Inside::Union, namespace, cx)
    }

    /// Returns the requirement that the stage satisfies, if any.
    fn check(&self, at: usize, stage: Value<'_>) -> Result<Option<Requirement>> {
        let name = self.name;
        let (row, operand) = row_of(stage)?;
        if row.facts.pipelines == super::Pipelines::Inputs {
            let (code, text) = match at {
                0 => (10473002, "is not allowed as the first stage of an input pipeline"),
                _ => (10170100, "is only valid as the first stage of a pipeline"),
            };
            return Err(Error::location(code, format!("{} {text}: '{name}'", row.name)));
        }
        let fields = operand.as_document().unwrap_or_default();
        let changes = match row.facts.in_fusion {
            InFusion::Refused => true,
            InFusion::Searches(changing) => changing.iter().any(|field| fields.contains(field)),
            InFusion::Selects | InFusion::Orders | InFusion::Scores => false,
        };
        if changes {
            let text = format!(
                "{} is not allowed in the input pipeline '{name}', which may only select documents",
                row.name
            );
            return Err(Error::location(9191103, text));
        }
        Ok(match row.facts.in_fusion {
            InFusion::Orders => Some(Requirement::Order),
            InFusion::Scores => Some(Requirement::Score),
            _ => None,
        })
    }
}

fn is_search(in_fusion: InFusion) -> bool {
    matches!(in_fusion, InFusion::Searches(_))
}

/// Parses the operand `combination.weights`. Returns a weight for each input pipeline, which is 1
/// by default.
///
/// # Errors
/// 13118 for a value that is not a number, 9460300 for one below 0 or NaN, 9460301 for more weights
/// than pipelines, 9967500 for an unknown pipeline name.
pub(super) fn weights(inputs: &[Input<'_>], weights: Doc<'_>) -> Result<Vec<f64>> {
    let count = weights.count();
    if count > inputs.len() {
        let text = format!("{count} weights were given for {} input pipelines", inputs.len());
        return Err(Error::location(9460301, text));
    }
    let mut list = vec![1.0; inputs.len()];
    for (name, value) in weights.fields() {
        let at = inputs.iter().position(|input| input.name == name);
        let Some(slot) = at.and_then(|at| list.get_mut(at)) else {
            let text = format!("the weight '{name}' has the name of no input pipeline");
            return Err(Error::location(9967500, text));
        };
        *slot = weight(name, value)?;
    }
    Ok(list)
}

fn weight(name: &str, value: Value<'_>) -> Result<f64> {
    let Some(weight) = value.to_f64() else {
        let kind = value.type_name();
        let text = format!("the weight of '{name}' must be a number, but is of type {kind}");
        return Err(Error::location(13118, text));
    };
    if weight >= 0.0 {
        return Ok(weight);
    }
    Err(Error::location(9460300, format!("the weight of '{name}' must not be below 0: {weight}")))
}

/// Returns the stages that replace a fusion. Each of `pipelines` ends with a [`FusionInput`], or
/// with stages that process its envelopes.
pub(super) fn fused(
    pipelines: Vec<Vec<Stage>>,
    score: Arc<dyn SetScore>,
    cx: &ParseContext,
) -> Result<Vec<Stage>> {
    let mut pipelines = pipelines.into_iter();
    let mut stages = pipelines.next().unwrap_or_default();
    let from = source(cx);
    let others: Vec<OtherPipeline> =
        pipelines.map(|pipeline| OtherPipeline { from: from.clone(), pipeline }).collect();
    if !others.is_empty() {
        stages.push(Stage::UnionWith(Arc::new(UnionWith { others })));
    }
    let id = format!("${DOCUMENT}._id");
    let document = format!("${DOCUMENT}");
    let of = format!("${OF}");
    let group = doc! { "$group": {
        "_id": id.as_str(),
        DOCUMENT: { "$first": document.as_str() },
        OF: { "$mergeObjects": of.as_str() },
    } };
    stages.extend(parse_stage(Value::Document(group.as_doc()), cx)?);
    stages.push(Stage::SetScore(score));
    let sort = doc! { "$sort": { "score": { "$meta": "score" }, "_id": 1 } };
    stages.extend(parse_stage(Value::Document(sort.as_doc()), &cx.with_score())?);
    Ok(stages)
}

/// Returns the collection or view that the stage reads.
fn source(cx: &ParseContext) -> From {
    let namespace = cx.place.as_deref().map_or("", |place| &place.namespace);
    let name = namespace.split_once('.').map_or("", |(_, name)| name);
    From { name: Some(name.into()), namespace: namespace.into() }
}

/// Returns the stage that ends an input pipeline.
pub(super) fn envelope(name: &str, requirement: Requirement) -> Stage {
    Stage::FusionInput(Arc::new(FusionInput::new(name, requirement)))
}

/// Returns the data of each input pipeline in an envelope, in the order of `names`.
pub(super) fn input_data<'a>(
    envelope: Doc<'a>,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> Vec<Option<Doc<'a>>> {
    let of = envelope.get(OF).and_then(|of| of.as_document()).unwrap_or_default();
    let mut by_name: Vec<(&str, Doc<'_>)> =
        of.fields().filter_map(|(name, data)| Some((name, data.as_document()?))).collect();
    by_name.sort_unstable_by_key(|(name, _)| *name);
    let find = |name: &str| {
        let at = by_name.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        by_name.get(at).map(|(_, data)| *data)
    };
    names.map(find).collect()
}

/// Returns the document in an envelope.
pub(super) fn document(envelope: Doc<'_>) -> Doc<'_> {
    envelope.get(DOCUMENT).and_then(|doc| doc.as_document()).unwrap_or_default()
}

/// The normalization of scores to the range from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Normalization {
    None,
    Sigmoid,
    /// By the smallest and the largest score of the pipeline.
    MinMaxScaler,
}

impl Normalization {
    /// Parses the name of a normalization.
    ///
    /// # Errors
    /// 14 TypeMismatch for a value that is not a string, 2 BadValue for an unknown name.
    pub fn parse(options: Options<'_>, name: &str, value: Value<'_>) -> Result<Self> {
        match value {
            Value::String("none") => Ok(Normalization::None),
            Value::String("sigmoid") => Ok(Normalization::Sigmoid),
            Value::String("minMaxScaler") => Ok(Normalization::MinMaxScaler),
            Value::String(other) => {
                let owner = options.0;
                let text = format!(
                    "Enumeration value '{other}' for field '{owner}.{name}' is not a valid value."
                );
                Err(Error::new(ErrorCode::BadValue, text))
            }
            other => Err(options.wrong_type(name, other, "string")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Normalization::None => "none",
            Normalization::Sigmoid => "sigmoid",
            Normalization::MinMaxScaler => "minMaxScaler",
        }
    }

    /// Returns the normalized score. `scaled` is the result of scaling all scores, which only
    /// `MinMaxScaler` uses.
    pub fn apply(self, raw: f64, scaled: Option<f64>) -> f64 {
        match self {
            Normalization::None => raw,
            Normalization::Sigmoid => 1.0 / (1.0 + (-raw).exp()),
            Normalization::MinMaxScaler => scaled.unwrap_or(0.0),
        }
    }

    /// Returns the stages that set the scaled score of envelopes at `path`.
    pub fn scaling(self, path: &str, cx: &ParseContext) -> Result<Vec<Stage>> {
        if self != Normalization::MinMaxScaler {
            return Ok(Vec::new());
        }
        let input = format!("${RAW}");
        let output = DocBuf::build(|writer| {
            let scaler = doc! {
                "$minMaxScaler": { "input": input.as_str() },
                "window": { "documents": ["unbounded", "unbounded"] },
            };
            writer.append(path, &scaler);
        });
        let stage = doc! { "$setWindowFields": { "output": &output } };
        parse_stage(Value::Document(stage.as_doc()), cx)
    }
}
