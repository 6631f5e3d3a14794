//! `$rankFusion`: merges the results of several pipelines, ordered by their ranks (Cormack, Clarke
//! and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
//! Methods", SIGIR 2009).

use super::facts::Facts;
use super::fusion::{
    Asked, Requirement, document, envelope, fused, input_data, inputs, object, weights,
};
use super::registry::StageRow;
use super::score::{Scored, SetScore};
use super::{Modified, Needs, Stage, StageBody};
use crate::context::{EvalContext, ParseContext};
use crate::expression::Dependencies;
use crate::options::Options;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::Result;
use std::sync::Arc;

pub(super) const RANK_FUSION: StageRow = StageRow {
    name: "$rankFusion",
    since: "8.1",
    doc: "Merges the results of several pipelines by the ranks of documents.",
    facts: Facts::FUSION,
    parse: |_, value, cx| parse(value, cx),
};

/// Reduces the weight of the first ranks. MongoDB has the same constant.
const RANK_CONSTANT: f64 = 60.0;

/// The last stage of a `$rankFusion`. The score of a document is the sum of `weight / (60 + rank)`
/// over the pipelines that found it.
#[derive(Debug)]
struct RankFusion {
    /// The name and weight of each input pipeline.
    inputs: Vec<(Box<str>, f64)>,
    details: bool,
}

const OPTIONS: Options<'_> = Options("$rankFusion");
const INPUT: Options<'_> = Options("$rankFusion.input");
const PIPELINES: Options<'_> = Options("$rankFusion.input.pipelines");
const COMBINATION: Options<'_> = Options("$rankFusion.combination");

fn parse(value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Asked { input, combination, details } = Asked::parse(OPTIONS, value)?;
    let given = combination.map(parse_combination).transpose()?.unwrap_or_default();
    let inputs = inputs(PIPELINES, parse_input(input)?)?;
    let pipelines = inputs.iter().map(|input| {
        let mut stages = input.parse(Requirement::Order, cx)?;
        stages.push(envelope(input.name, Requirement::Order));
        Ok(stages)
    });
    let pipelines = pipelines.collect::<Result<_>>()?;
    let weights = weights(&inputs, given)?;
    let names = inputs.iter().map(|input| Box::from(input.name));
    let score = RankFusion { inputs: names.zip(weights).collect(), details };
    fused(pipelines, Arc::new(score), cx)
}

fn parse_input(input: Doc<'_>) -> Result<Doc<'_>> {
    let mut pipelines = None;
    for field in INPUT.fields(input) {
        match field? {
            ("pipelines", value) => pipelines = object(INPUT, "pipelines", value)?,
            (other, _) => return Err(INPUT.unknown(other)),
        }
    }
    pipelines.ok_or_else(|| INPUT.missing("pipelines"))
}

fn parse_combination(combination: Doc<'_>) -> Result<Doc<'_>> {
    let mut weights = None;
    for field in COMBINATION.fields(combination) {
        match field? {
            ("weights", value) => weights = object(COMBINATION, "weights", value)?,
            (other, _) => return Err(COMBINATION.unknown(other)),
        }
    }
    weights.ok_or_else(|| COMBINATION.missing("weights"))
}

impl RankFusion {
    fn details(&self, score: f64, data: &[Option<Doc<'_>>]) -> DocBuf {
        DocBuf::build(|writer| {
            writer.append("value", score);
            let description = "the sum of weight / (60 + rank) over the input pipelines that found the document (reciprocal rank fusion):";
            writer.append("description", description);
            let mut list = writer.array("details");
            for ((name, weight), data) in self.inputs.iter().zip(data) {
                let mut one = list.document();
                one.append("inputPipelineName", &**name);
                let Some(data) = data else {
                    one.append("rank", "NA");
                    continue;
                };
                one.append_some("rank", data.get("rank"));
                one.append("weight", *weight);
                one.append_some("value", data.get("score"));
                one.append_some("description", data.get("description"));
                one.append_some("details", data.get("details"));
            }
        })
    }
}

impl SetScore for RankFusion {
    fn gives_details(&self) -> bool {
        self.details
    }

    fn score<'a>(&'a self, cx: &EvalContext<'a>) -> Result<Scored<'a>> {
        let data = input_data(cx.root, self.inputs.iter().map(|(name, _)| &**name));
        let mut score = 0.0;
        for ((_, weight), data) in self.inputs.iter().zip(&data) {
            let rank = data.and_then(|data| data.get("rank")).and_then(|rank| rank.to_f64());
            if let Some(rank) = rank {
                score += weight * (1.0 / (RANK_CONSTANT + rank));
            }
        }
        let details = self.details.then(|| self.details(score, &data));
        Ok(Scored { score, details, doc: document(cx.root) })
    }
}

impl StageBody for RankFusion {
    fn name(&self) -> &'static str {
        RANK_FUSION.name
    }

    fn needs(&self) -> Needs {
        Needs::only(Dependencies { whole_document: true, ..Dependencies::default() })
    }

    fn modified(&self) -> Modified {
        Modified::All
    }

    fn print(&self, writer: &mut DocWriter<'_>) {
        let mut inner = writer.document(RANK_FUSION.name);
        {
            let mut combination = inner.document("combination");
            let mut weights = combination.document("weights");
            for (name, weight) in &self.inputs {
                weights.append(name, *weight);
            }
        }
        inner.append("scoreDetails", self.details);
    }
}
