//! `$score`: sets the score of each document, which later stages read with `{$meta: "score"}`.

use super::facts::{Facts, InFusion};
use super::fusion::{DOCUMENT, Normalization, RAW, SCALED, document, flag};
use super::pipeline::parse_stage;
use super::registry::StageRow;
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext};
use crate::expression::{Dependencies, Expression};
use crate::options::Options;
use crate::text::show_doc;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, Result};
use std::fmt::Debug;
use std::sync::Arc;

pub(super) const SCORE: StageRow = StageRow {
    name: "$score",
    since: "8.2",
    doc: "Sets the score of each document.",
    facts: Facts { in_fusion: InFusion::Scores, in_api: false, ..Facts::PLAIN },
    parse: |_, value, cx| parse(value, cx),
};

/// A stage that sets the score of each document.
pub trait SetScore: StageBody + Debug + Send + Sync {
    /// Returns true if the stage also sets `scoreDetails`.
    fn gives_details(&self) -> bool;

    /// Returns the score of `cx.root`, and the output document.
    ///
    /// # Errors
    /// 14 TypeMismatch for a score that is not a number.
    fn score<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Scored<'a>>;
}

/// A document with its score.
#[derive(Debug)]
pub struct Scored<'a> {
    /// The value of `{$meta: "score"}`.
    pub score: f64,
    /// The value of `{$meta: "scoreDetails"}`.
    pub details: Option<DocBuf>,
    /// The output document.
    pub doc: Doc<'a>,
}

/// A `$score`. If scores are scaled by the smallest and largest one, its input is envelopes `{doc,
/// raw, scaled}`.
#[derive(Debug)]
struct Score {
    expression: Expression,
    normalization: Normalization,
    weight: f64,
    details: bool,
}

const OPTIONS: Options<'_> = Options("$score");

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Value::Document(spec) = value else {
        let kind = value.type_name();
        let text = format!("the $score stage specification must be an object, found {kind}");
        return Err(Error::failed_to_parse(text));
    };
    let (mut score, mut normalization, mut weight, mut details) = (None, None, 1.0, false);
    for field in OPTIONS.fields(spec) {
        match field? {
            ("score", value) => score = Some(value),
            (name @ "normalization", value) => {
                normalization = Some(Normalization::parse(OPTIONS, name, value)?);
            }
            (name @ "weight", value) => weight = parse_weight(name, value)?,
            (name @ "scoreDetails", value) => details = flag(OPTIONS, name, value)?,
            (other, _) => return Err(OPTIONS.unknown(other)),
        }
    }
    let value = score.ok_or_else(|| OPTIONS.missing("score"))?;
    let expression = Expression::parse(value, cx)?;
    let normalization = normalization.unwrap_or(Normalization::None);
    let mut stages = Vec::new();
    if normalization == Normalization::MinMaxScaler {
        let envelope = doc! { "$replaceWith": { DOCUMENT: "$$ROOT", RAW: value } };
        stages.extend(parse_stage(Value::Document(envelope.as_doc()), cx)?);
        stages.extend(normalization.scaling(SCALED, cx)?);
    }
    let score = Score { expression, normalization, weight, details };
    stages.push(Stage::SetScore(Arc::new(score)));
    Ok(stages)
}

/// Parses a weight between 0 and 1.
fn parse_weight(name: &str, value: Value<'_>) -> Result<f64> {
    let Some(weight) = value.to_f64() else {
        return Err(OPTIONS.wrong_type(name, value, "double"));
    };
    if (0.0..=1.0).contains(&weight) {
        return Ok(weight);
    }
    Err(Error::bad_value(format!("'$score.weight' must be between 0 and 1, found {weight}")))
}

/// Returns a score as a double.
///
/// # Errors
/// 14 TypeMismatch for a value that is not a number.
pub(super) fn number(owner: &str, value: Option<Value<'_>>) -> Result<f64> {
    value.and_then(|value| value.to_f64()).ok_or_else(|| {
        let kind = value.map_or("missing", |value| value.type_name());
        Error::type_mismatch(format!("the score of {owner} must be a number, but is {kind}"))
    })
}

impl Score {
    fn scales(&self) -> bool {
        self.normalization == Normalization::MinMaxScaler
    }

    fn details(&self, score: f64, raw: f64) -> DocBuf {
        let shown = DocBuf::build(|writer| self.expression.serialize_to("string", writer));
        DocBuf::build(|writer| {
            writer.append("value", score);
            writer.append("description", "the weight times the score, normalised or as it is:");
            writer.append("rawScore", raw);
            writer.append("normalization", self.normalization.name());
            writer.append("weight", self.weight);
            writer.append("expression", show_doc(shown.as_doc()).as_str());
            writer.append("details", &ArrayBuf::new());
        })
    }
}

impl SetScore for Score {
    fn gives_details(&self) -> bool {
        self.details
    }

    fn score<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Scored<'a>> {
        let (raw, scaled, doc) = if self.scales() {
            let scaled = cx.root.get(SCALED).and_then(|scaled| scaled.to_f64());
            (cx.root.get(RAW), scaled, document(cx.root))
        } else {
            (self.expression.eval(cx)?, None, cx.root)
        };
        let raw = number(SCORE.name, raw)?;
        let score = self.weight * self.normalization.apply(raw, scaled);
        let details = self.details.then(|| self.details(score, raw));
        Ok(Scored { score, details, doc })
    }
}

impl StageBody for Score {
    fn name(&self) -> &'static str {
        SCORE.name
    }

    fn needs(&self) -> Needs {
        if self.scales() {
            return Needs::only(Dependencies { whole_document: true, ..Dependencies::default() });
        }
        let mut reads = Dependencies::default();
        self.expression.add_dependencies(&mut reads);
        Needs::reading(reads)
    }

    fn modified(&self) -> Modified {
        if self.scales() { Modified::All } else { Modified::Nothing }
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(SCORE.name);
        self.expression.serialize_to("score", &mut inner);
        inner.append("normalization", self.normalization.name());
        inner.append("weight", self.weight);
        inner.append("scoreDetails", self.details);
    }
}
