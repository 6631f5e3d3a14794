//! Parses the pipeline of a command, and pipelines inside stages.

use super::facts::{Reads, Standing, check_facet, check_first, check_place, check_source};
use super::registry::{StageRow, find_stage, first_only};
use super::{HideMetadata, Stage, StageBody};
use crate::context::ParseContext;
use crate::context::{Inside, Place};
use crate::filter::NearQuery;
use quire_document::limits::SUB_PIPELINE_DEPTH_MAX;
use quire_document::{Array, ArrayBuf, Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// The most stages of a pipeline.
pub(super) const STAGES_MAX: usize = 1000;

/// Returns the error of a pipeline with too many stages.
pub(super) fn too_many_stages() -> Error {
    let message = format!("Pipeline length must be no longer than {STAGES_MAX} stages");
    Error::location(7749501, message)
}

/// Parses a pipeline at `cx.place`.
///
/// # Errors
/// 7749501 for more than 1,000 stages; 17313 for a `$text` after the first stage; 40602 and 40601
/// for a stage that must be the first or the last and is not; 40603 for a `$geoNear` after another
/// stage; 10170100 for a fusion that is not the first stage; 40600, 51047, 31441 and 167 for a stage
/// that is not allowed in this kind of pipeline; 323 APIStrictError for one outside the stable API;
/// and errors of the stages' parsers.
pub fn parse_pipeline<'s>(
    stages: impl ExactSizeIterator<Item = Value<'s>>,
    cx: &ParseContext,
) -> Result<Vec<Stage>> {
    let count = stages.len();
    if count > STAGES_MAX {
        return Err(too_many_stages());
    }
    let behind_source = cx.place.as_deref().is_some_and(|place| place.behind_source);
    let view = cx.place.as_deref().and_then(|place| place.view.clone());
    let first_written = view.as_ref().map_or(0, |view| view.count);
    let mut cx = Cow::Borrowed(cx);
    let mut parsed = Vec::with_capacity(count);
    let view_ends = cx.place.as_deref().map(|place| place.view_ends.clone()).unwrap_or_default();
    let mut parsed_ends = Vec::new();
    let mut reads_dollar_path = false;
    for (at, stage) in stages.enumerate() {
        if let Some(view) = view.as_ref().filter(|view| view.count == at) {
            cx = Cow::Owned(cx.changed(|place| place.namespace.clone_from(&view.namespace)));
        }
        if view_ends.contains(&at) {
            parsed_ends.push(parsed.len());
        }
        let cx = &mut cx;
        let (row, operand) = row_of(stage)?;
        // A `$documents` after the first stage is a 40602, so its source is checked after its
        // position.
        let written = row.facts.reads == Reads::Literal;
        if !written {
            check_source(row, cx)?;
        }
        check_place(row, cx)?;
        check_facet(row, cx)?;
        let (is_first, is_last) = (at == 0 && !behind_source, at + 1 == count);
        match row.facts.standing {
            Standing::First if !is_first => return Err(first_only(row.name)),
            Standing::FirstLeft if behind_source || !passes_all(&parsed) => {
                return Err(first_left_only(row.name));
            }
            Standing::Last if !is_last => return Err(last_only(row.name)),
            Standing::FirstWritten(code) if behind_source || at != first_written => {
                let text = format!("{} is only valid as the first stage of a pipeline", row.name);
                return Err(Error::new(code, text));
            }
            _ => {}
        }
        if written {
            check_source(row, cx)?;
        }
        let filter = operand.as_document().filter(|_| row.name == "$match");
        reads_dollar_path |= filter.is_some_and(super::matching::has_dollar_path);
        if at > 0 && filter.is_some_and(|filter| super::matching::names(filter, "$text")) {
            return Err(late_text());
        }
        cx.part()?;
        let stages = (row.parse)(row.name, operand, cx)?;
        if is_first {
            check_first(Some(row), cx)?;
        }
        note_scores(&stages, cx);
        parsed.extend(stages);
    }
    if count == 0 && !behind_source {
        check_first(None, &cx)?;
    }
    HideMetadata::insert(&mut parsed, &parsed_ends);
    if reads_dollar_path {
        check_dollar_paths(&parsed)?;
    }
    Ok(parsed)
}

/// Returns true if every document passes the stages unchanged.
fn passes_all(stages: &[Stage]) -> bool {
    stages.iter().all(|stage| match stage {
        Stage::Match(filter) => filter.filter().is_always_true(),
        _ => false,
    })
}

/// Checks that the stages of a view, which come before `own`, leave a search in the first place.
///
/// # Errors
/// 40603 for a `$geoNear`, 17313 for a `$text`.
pub fn check_search_place(of_view: &[Stage], own: &[Stage]) -> Result<()> {
    let search = match own.first() {
        Some(Stage::Match(filter)) => filter.filter().root().search(),
        _ => None,
    };
    match search {
        Some(search) if !passes_all(of_view) => match search.as_any().is::<NearQuery>() {
            true => Err(first_left_only("$geoNear")),
            false => Err(late_text()),
        },
        _ => Ok(()),
    }
}

/// Returns the error of a `$text` after the first stage.
fn late_text() -> Error {
    Error::location(17313, "$match with $text is only allowed as the first pipeline stage")
}

/// Returns the error of a stage that does not come first after the removal of filters that every
/// document passes.
fn first_left_only(name: &str) -> Error {
    Error::location(
        40603,
        format!("{name} was not the first stage in the pipeline after optimization"),
    )
}

/// Fails with 16410 for a filter on a path such as `a.$b` before a stage that determines which fields
/// the pipeline reads: mongod then fetches these fields, and `a.$b` is no path of a field. A `$group`
/// is the exception, because mongod runs it in one plan with the filter.
fn check_dollar_paths(stages: &[Stage]) -> Result<()> {
    let is_name = |name: &str| !name.starts_with('$') || matches!(name, "$id" | "$ref" | "$db");
    let mut wrong = None;
    for stage in stages {
        if let Stage::Match(filter) = stage {
            let paths = filter.filter().paths().unwrap_or_default();
            wrong = wrong.or(paths.into_iter().find(|path| !path.split('.').all(is_name)));
        }
        if let Stage::Group(_) = stage {
            break;
        }
        if let Some(path) = wrong
            && stage.needs().exhaustive
        {
            let text = format!("FieldPath field names may not start with '$'. Found: {path}");
            return Err(Error::location(16410, text));
        }
    }
    Ok(())
}

/// Records for later stages the metadata that these stages set.
fn note_scores(stages: &[Stage], cx: &mut Cow<'_, ParseContext>) {
    for stage in stages {
        if let Stage::SetScore(score) = stage {
            *cx = Cow::Owned(cx.changed(|place| {
                place.has_score = true;
                place.has_score_details = score.gives_details();
            }));
        }
        if matches!(stage, Stage::Group(_)) && !cx.metadata.is_empty() {
            *cx = Cow::Owned(cx.with_metadata(&[]));
        }
        if let Stage::Match(filter) = stage
            && let Some(search) = filter.filter().root().search()
        {
            *cx = Cow::Owned(cx.with_metadata(search.metadata()));
        }
    }
}

/// Parses a pipeline inside a stage. It reads `namespace` and has the variables of `cx`.
///
/// # Errors
/// 232 MaxSubPipelineDepthExceeded for more than 20 levels, and errors as [`parse_pipeline`].
pub fn parse_sub_pipeline(
    stages: Array<'_>,
    inside: Inside,
    namespace: &str,
    cx: &ParseContext,
) -> Result<Vec<Stage>> {
    let stages: Vec<Value<'_>> = stages.iter().collect();
    parse_pipeline(stages.into_iter(), &cx.below(inside, namespace)?)
}

impl ParseContext {
    /// Returns the context of a pipeline inside a stage, which reads `namespace`.
    ///
    /// # Errors
    /// 232 MaxSubPipelineDepthExceeded for more than 20 levels.
    pub fn below(&self, inside: Inside, namespace: &str) -> Result<Self> {
        let around = self.place.as_deref();
        let depth = around.map_or(0, |place| place.depth) + 1;
        if depth > SUB_PIPELINE_DEPTH_MAX {
            let text = format!(
                "Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINE_DEPTH_MAX}"
            );
            return Err(Error::new(ErrorCode::MaxSubPipelineDepthExceeded, text));
        }
        let below_facet = around.is_some_and(|place| place.below_facet) || inside == Inside::Facet;
        let mut place = Place { inside, depth, below_facet, ..Place::of(namespace) };
        if let Some(around) = around.filter(|_| inside == Inside::Facet) {
            place.has_score = around.has_score;
            place.has_score_details = around.has_score_details;
        }
        let metadata = if inside == Inside::Facet { self.metadata } else { &[] };
        Ok(self.at(place).with_metadata(metadata))
    }

    /// Returns the context after a stage that sets scores.
    pub(super) fn with_score(&self) -> Self {
        self.changed(|place| place.has_score = true)
    }

    /// Returns the context with a changed place; without a place, the unchanged context.
    fn changed(&self, change: impl FnOnce(&mut Place)) -> Self {
        let mut changed = self.clone();
        if let Some(place) = &mut changed.place {
            change(Arc::make_mut(place));
        }
        changed
    }
}

/// Parses a stage, `{$name: ...}`. Some stages are replaced by several others.
pub fn parse_stage(stage: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let (row, operand) = row_of(stage)?;
    (row.parse)(row.name, operand, cx)
}

/// Returns the registry row of the stage `{$name: operand}`, and the operand.
///
/// # Errors
/// 14 TypeMismatch, 40323 and 40324 for a value that is not a stage.
pub fn row_of(stage: Value<'_>) -> Result<(&'static StageRow, Value<'_>)> {
    let Value::Document(stage) = stage else {
        let message = "Each element of the 'pipeline' array must be an object";
        return Err(Error::type_mismatch(message));
    };
    let Some(only) = stage.first().filter(|_| stage.count() == 1) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::location(40323, message));
    };
    match find_stage(only.key()) {
        Some(row) => Ok((row, only.value())),
        None => {
            let message = format!("Unrecognized pipeline stage name: '{}'", only.key());
            Err(Error::location(40324, message))
        }
    }
}

/// Calls `visit` for each known stage of a pipeline and of the pipelines inside its stages, outer
/// stages first.
pub fn for_each_row<'s>(
    stages: impl Iterator<Item = Doc<'s>>,
    visit: &mut dyn FnMut(&'static StageRow) -> Result<()>,
) -> Result<()> {
    for first in stages.filter_map(|stage| stage.first()) {
        let Some(row) = find_stage(first.key()) else { continue };
        visit(row)?;
        let operand = first.value().as_document().unwrap_or_default();
        for pipeline in row.facts.pipelines.of(operand) {
            let inner: Vec<Doc<'_>> = pipeline.iter().filter_map(|one| one.as_document()).collect();
            for_each_row(inner.into_iter(), visit)?;
        }
    }
    Ok(())
}

/// Returns the stages as explain shows them.
pub fn pipeline_to_bson(stages: &[Stage]) -> ArrayBuf {
    ArrayBuf::build(|writer| {
        for stage in stages {
            stage.print(&mut writer.document());
        }
    })
}

/// Returns the error 40601, for a stage that is not the last one.
fn last_only(name: &str) -> Error {
    Error::location(40601, format!("{name} can only be the final stage in the pipeline"))
}
