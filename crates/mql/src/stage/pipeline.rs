//! Parsing pipelines.

use super::registry::{NOT_BUILT, find_stage, needs_search, search_not_enabled};
use super::{Stage, StageBody};
use crate::context::ParseContext;
use quire_document::{ArrayBuf, Value};
use quire_error::{Error, Result};

/// How many stages a pipeline may have.
const STAGES_MAX: usize = 1000;

/// Parses a pipeline.
///
/// # Errors
/// 7749501 for more than 1,000 stages, 17313 for a `$text` behind the first stage, and what the
/// stages' parsers answer.
pub fn parse_pipeline<'s>(
    stages: impl ExactSizeIterator<Item = Value<'s>>,
    cx: &ParseContext,
) -> Result<Vec<Stage>> {
    if stages.len() > STAGES_MAX {
        let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
        return Err(Error::location(7749501, message));
    }
    let mut parsed = Vec::with_capacity(stages.len());
    for (at, stage) in stages.enumerate() {
        let filter = stage.as_document().and_then(|stage| stage.get("$match"));
        let filter = filter.and_then(|filter| filter.as_document());
        if at > 0 && filter.is_some_and(|filter| super::matching::names(filter, "$text")) {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(Error::location(17313, message));
        }
        parsed.extend(parse_stage(stage, cx)?);
    }
    Ok(parsed)
}

/// Parses one stage, `{$name: ...}`; a shorthand becomes several.
pub fn parse_stage(stage: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let Value::Document(stage) = stage else {
        let message = "Each element of the 'pipeline' array must be an object";
        return Err(Error::type_mismatch(message));
    };
    let Some(only) = stage.first().filter(|_| stage.count() == 1) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::location(40323, message));
    };
    match find_stage(only.key()) {
        Some(row) => (row.parse)(row.name, only.value(), cx),
        None if NOT_BUILT.contains(&only.key()) => Err(Error::not_built(only.key())),
        None if needs_search(only.key()) => Err(search_not_enabled(only.key())),
        None => {
            let message = format!("Unrecognized pipeline stage name: '{}'", only.key());
            Err(Error::location(40324, message))
        }
    }
}

/// The stages as explain shows them.
pub fn pipeline_to_bson(stages: &[Stage]) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        for stage in stages {
            stage.print(&mut writer.document());
        }
    })
}
