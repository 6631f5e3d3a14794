//! `$scoreFusion`: merges the results of several pipelines, ordered by their scores. Errors that
//! `$rankFusion` also has use its codes.

use super::facts::Facts;
use super::fusion::{
    Asked, Input, Normalization, OF, Requirement, SCALED, document, envelope, fused, input_data,
    inputs, object, weights,
};
use super::registry::StageRow;
use super::score::{Scored, SetScore, number};
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext, Slot};
use crate::expression::{Dependencies, Expression, check_variable_name};
use crate::options::Options;
use crate::text::show_doc;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, Result};
use std::sync::Arc;

pub(super) const SCORE_FUSION: StageRow = StageRow {
    name: "$scoreFusion",
    since: "8.2",
    doc: "Merges the results of several pipelines by the scores of documents.",
    facts: Facts::FUSION,
    parse: |_, value, cx| parse(value, cx),
};

/// The last stage of a `$scoreFusion`.
#[derive(Debug)]
struct ScoreFusion {
    /// The name and weight of each input pipeline.
    inputs: Vec<(Box<str>, f64)>,
    normalization: Normalization,
    method: Method,
    details: bool,
}

/// How the scores of a document are combined. A pipeline that did not find it counts as 0.
#[derive(Debug)]
enum Method {
    Average,
    /// By an expression that reads the scores as variables; the first has this slot.
    Expression(Expression, Slot),
}

const OPTIONS: Options<'_> = Options("$scoreFusion");
const INPUT: Options<'_> = Options("$scoreFusion.input");
const PIPELINES: Options<'_> = Options("$scoreFusion.input.pipelines");
const COMBINATION: Options<'_> = Options("$scoreFusion.combination");

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Asked { input, combination, details } = Asked::parse(OPTIONS, value)?;
    let (pipelines, normalization) = parse_input(input)?;
    let combination = Combination::parse(combination.unwrap_or_default())?;
    let inputs = inputs(PIPELINES, pipelines)?;
    let pipelines = inputs.iter().map(|input| {
        let mut stages = input.parse(Requirement::Score, cx)?;
        stages.push(envelope(input.name, Requirement::Score));
        stages.extend(normalization.scaling(&format!("{OF}.{}.{SCALED}", input.name), cx)?);
        Ok(stages)
    });
    let pipelines = pipelines.collect::<Result<_>>()?;
    let weights = weights(&inputs, combination.weights.unwrap_or_default())?;
    let method = combination.method(&inputs, cx)?;
    let names = inputs.iter().map(|input| Box::from(input.name));
    let inputs = names.zip(weights).collect();
    fused(pipelines, Arc::new(ScoreFusion { inputs, normalization, method, details }), cx)
}

fn parse_input(input: Doc<'_>) -> Result<(Doc<'_>, Normalization)> {
    let (mut pipelines, mut normalization) = (None, None);
    for field in INPUT.fields(input) {
        match field? {
            ("pipelines", value) => pipelines = object(INPUT, "pipelines", value)?,
            (name @ "normalization", value) => {
                normalization = Some(Normalization::parse(INPUT, name, value)?);
            }
            (other, _) => return Err(INPUT.unknown(other)),
        }
    }
    let pipelines = pipelines.ok_or_else(|| INPUT.missing("pipelines"))?;
    Ok((pipelines, normalization.ok_or_else(|| INPUT.missing("normalization"))?))
}

/// The parsed operand `combination`.
struct Combination<'v> {
    weights: Option<Doc<'v>>,
    /// True if `method` is `"expression"`.
    by_expression: bool,
    expression: Option<Value<'v>>,
}

impl<'v> Combination<'v> {
    fn parse(spec: Doc<'v>) -> Result<Self> {
        let (mut weights, mut by_expression, mut expression) = (None, false, None);
        for field in COMBINATION.fields(spec) {
            match field? {
                ("weights", value) => weights = object(COMBINATION, "weights", value)?,
                ("method", Value::String("avg")) => by_expression = false,
                ("method", Value::String("expression")) => by_expression = true,
                ("method", Value::String(other)) => {
                    let text = format!(
                        "Enumeration value '{other}' for field '$scoreFusion.combination.method' is not a valid value."
                    );
                    return Err(Error::bad_value(text));
                }
                ("method", other) => return Err(COMBINATION.wrong_type("method", other, "string")),
                ("expression", value) => expression = Some(value),
                (other, _) => return Err(COMBINATION.unknown(other)),
            }
        }
        let wrong = match (by_expression, expression.is_some(), weights.is_some()) {
            (true, false, _) => Some("the method 'expression' needs an expression"),
            (false, true, _) => Some("an expression needs the method 'expression'"),
            (true, true, true) => Some("weights and an expression exclude each other"),
            _ => None,
        };
        match wrong {
            None => Ok(Combination { weights, by_expression, expression }),
            Some(why) => Err(Error::bad_value(format!("$scoreFusion.combination: {why}"))),
        }
    }

    fn method(&self, inputs: &[Input<'_>], cx: &ParseContext) -> Result<Method> {
        let Some(expression) = self.expression.filter(|_| self.by_expression) else {
            return Ok(Method::Average);
        };
        inputs.iter().try_for_each(|input| check_variable_name(input.name, false))?;
        let (inner, first) = cx.bind_all(inputs.iter().map(|input| input.name));
        Ok(Method::Expression(Expression::parse(expression, &inner)?, first))
    }
}

/// The data of one input pipeline for a document.
struct Given<'a> {
    data: Doc<'a>,
    raw: f64,
    /// The normalized score times the weight of the pipeline.
    value: f64,
}

impl ScoreFusion {
    fn given<'a>(&self, data: Doc<'a>, weight: f64) -> Result<Given<'a>> {
        let raw = number(SCORE_FUSION.name, data.get("score"))?;
        let scaled = data.get(SCALED).and_then(|scaled| scaled.to_f64());
        Ok(Given { data, raw, value: weight * self.normalization.apply(raw, scaled) })
    }

    fn combined<'a>(&'a self, given: &[Option<Given<'_>>], cx: &EvalContext<'a>) -> Result<f64> {
        let values = given.iter().map(|given| given.as_ref().map_or(0.0, |given| given.value));
        match &self.method {
            Method::Average => Ok(values.sum::<f64>() / given.len().max(1) as f64),
            Method::Expression(expression, first) => {
                let values: Vec<_> = values.map(|value| Some(Value::Double(value))).collect();
                let values = cx.arena.alloc_slice_copy(&values);
                number(SCORE_FUSION.name, expression.eval(&cx.bind_all(*first, values))?)
            }
        }
    }

    fn details(&self, score: f64, given: &[Option<Given<'_>>]) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("value", score);
            let description = "the scores of the input pipelines that found the document, normalised or as they are, joined into one:";
            writer.append("description", description);
            writer.append("normalization", self.normalization.name());
            {
                let mut combination = writer.document("combination");
                match &self.method {
                    Method::Average => combination.append("method", "average"),
                    Method::Expression(expression, _) => {
                        let shown =
                            DocBuf::build(|writer| expression.serialize_to("string", writer));
                        combination.append("method", "custom expression");
                        combination.append("expression", show_doc(shown.as_doc()).as_str())
                    }
                };
            }
            let mut list = writer.array("details");
            for ((name, weight), given) in self.inputs.iter().zip(given) {
                let mut one = list.document();
                one.append("inputPipelineName", &**name);
                let Some(given) = given else {
                    one.append("inputPipelineRawScore", "NA");
                    continue;
                };
                one.append("inputPipelineRawScore", given.raw);
                one.append("weight", *weight);
                one.append("value", given.value);
                one.append_some("details", given.data.get("details"));
            }
        })
    }
}

impl SetScore for ScoreFusion {
    fn gives_details(&self) -> bool {
        self.details
    }

    fn score<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Scored<'a>> {
        let data = input_data(cx.root, self.inputs.iter().map(|(name, _)| &**name));
        let given = data.into_iter().zip(&self.inputs);
        let given =
            given.map(|(data, (_, weight))| data.map(|data| self.given(data, *weight)).transpose());
        let given: Vec<Option<Given<'_>>> = given.collect::<Result<_>>()?;
        let doc = document(cx.root);
        let score = self.combined(&given, &cx.with_root(doc))?;
        let details = self.details.then(|| self.details(score, &given));
        Ok(Scored { score, details, doc })
    }
}

impl StageBody for ScoreFusion {
    fn name(&self) -> &'static str {
        SCORE_FUSION.name
    }

    fn needs(&self) -> Needs {
        let mut reads = Dependencies { whole_document: true, ..Dependencies::default() };
        if let Method::Expression(expression, _) = &self.method {
            expression.add_dependencies(&mut reads);
        }
        Needs::only(reads)
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(SCORE_FUSION.name);
        inner.append("normalization", self.normalization.name());
        {
            let mut combination = inner.document("combination");
            match &self.method {
                Method::Average => combination.append("method", "avg"),
                Method::Expression(expression, _) => {
                    expression.serialize_to("expression", &mut combination);
                    combination.append("method", "expression")
                }
            };
            let mut weights = combination.document("weights");
            for (name, weight) in &self.inputs {
                weights.append(name, *weight);
            }
        }
        inner.append("scoreDetails", self.details);
    }
}
