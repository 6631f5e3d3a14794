//! Updates by a pipeline of stages that make one document of each.

use super::apply::{begin, end, header};
use super::limits;
use super::modifier::depth;
use super::replacement;
use crate::context::{EvalContext, ParseContext};
use crate::stage::{Transform, Transforms, row_of};
use quire_document::{Array, Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The stages, in order.
#[derive(Debug, Default)]
pub(super) struct PipelineUpdate {
    stages: Transforms,
}

impl PipelineUpdate {
    /// Parses the stages. An operation on constants that fails is no error here: MongoDB does not
    /// optimise the pipeline of an update, so it fails for the first document that matches.
    pub(super) fn parse(stages: Array<'_>, cx: &ParseContext) -> Result<Self> {
        let unfolded = |_| PipelineUpdate::parse_stages(stages, &cx.clone().without_folding());
        PipelineUpdate::parse_stages(stages, cx).or_else(unfolded)
    }

    fn parse_stages(stages: Array<'_>, cx: &ParseContext) -> Result<Self> {
        let mut parsed = Transforms::default();
        for stage in stages.iter() {
            parsed.push(parse_stage(stage, cx)?);
        }
        Ok(PipelineUpdate { stages: parsed })
    }

    /// Appends the result to `out`. Returns true if it differs from `original`.
    pub(super) fn apply(
        &self,
        original: Doc<'_>,
        cx: &EvalContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let cx = narrowed(cx);
        let doc = self.stages.apply(&cx.with_root(original))?;
        if depth(Value::Document(doc)) > limits::DEPTH_MAX {
            return Err(limits::too_deep());
        }
        let start = out.len();
        write_with_id(original, doc, out);
        let written = Doc::from_valid_bytes(out.get(start..).unwrap_or_default());
        replacement::check_id(original, written)?;
        Ok(doc.as_bytes() != original.as_bytes())
    }
}

/// Returns the context with a shorter lifetime.
fn narrowed<'s>(cx: &EvalContext<'s>) -> EvalContext<'s> {
    *cx
}

/// Writes `doc` with `_id` as the first field: that of `original`, if it has none.
fn write_with_id(original: Doc<'_>, doc: Doc<'_>, out: &mut Vec<u8>) {
    let first_is_id = doc.first().is_some_and(|first| first.key_bytes() == b"_id");
    let id = doc.find("_id").or_else(|| original.find("_id"));
    let Some(id) = id.filter(|_| !first_is_id) else {
        out.extend_from_slice(doc.as_bytes());
        return;
    };
    let start = begin(out);
    header(out, id.kind(), b"_id");
    out.extend_from_slice(id.value_bytes());
    for element in doc.iter().filter(|element| element.key_bytes() != b"_id") {
        header(out, element.kind(), element.key_bytes());
        out.extend_from_slice(element.value_bytes());
    }
    end(out, start);
}

fn parse_stage(stage: Value<'_>, cx: &ParseContext) -> Result<Transform> {
    let (row, operand) = row_of(stage)?;
    if let Some(transform) = Transform::parse(row, operand, cx)? {
        return Ok(transform);
    }
    let message = format!("{} is not allowed to be used within an update", row.name);
    Err(Error::new(ErrorCode::InvalidOptions, message))
}
