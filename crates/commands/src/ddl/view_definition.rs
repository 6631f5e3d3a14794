//! The definition of a view in the arguments of `create` and `collMod`.

use crate::frame::args::Arg;
use crate::frame::context::Context;
use quire_catalog::{Namespace, ViewDefinition};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::as_collator;
use quire_mql::stage::{CollStats, Inside, Place, Reads, Source, parse_pipeline, row_of};

/// Reads the argument `viewOn`.
///
/// # Errors
/// 14 TypeMismatch; 2 BadValue for an empty name; 73 InvalidNamespace for an invalid collection
/// name.
pub fn view_on(cx: &Context<'_>, arg: &Arg<'_>) -> Result<String> {
    let on = arg.string()?;
    if on.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    let is_name = !on.starts_with('.') && !on.contains(['$', '\0']);
    if !is_name {
        let text = format!("Invalid view namespace specified '{}.{on}'", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(on.to_owned())
}

/// Reads the argument `pipeline`; nulls are dropped.
///
/// # Errors
/// 14 TypeMismatch.
pub fn pipeline(arg: &Arg<'_>) -> Result<Vec<DocBuf>> {
    let stages = arg.array()?;
    let stages = stages.iter().enumerate().filter(|(_, stage)| !stage.is_nullish());
    stages
        .map(|(at, stage)| match stage {
            Value::Document(stage) => Ok(stage.to_owned()),
            other => Err(arg.wrong_element(at, other, "object")),
        })
        .collect()
}

/// Checks the stages of a view.
///
/// # Errors
/// 167 OptionNotSupportedOnView and 73 InvalidNamespace for a stage that a view must not have; the
/// errors of parsing the stages.
pub fn check_stages(cx: &Context<'_>, view: &ViewDefinition) -> Result<()> {
    let namespace = &view.namespace;
    cx.check_stages_api(&view.pipeline)?;
    for (at, stage) in view.pipeline.iter().enumerate() {
        check_stage(namespace, at, stage.as_doc())?;
    }
    let mut parse = cx.parse_context();
    parse.collator = as_collator(view.collation.as_ref());
    parse.cluster_time = cx.clock().1.is_some();
    parse.api_strict = cx.generic.api.strict == Some(true);
    let source = format!("{}.{}", namespace.db(), view.on);
    let place = Place { inside: Inside::View, ..Place::of(&source) };
    // Stages about the server have no operator: the command that reads the view removes them.
    let first = view.pipeline.first().map(|stage| row_of(Value::Document(stage.as_doc())));
    let is_served = matches!(first, Some(Ok((row, _))) if row.facts.reads == Reads::Server);
    let place = Place { behind_source: is_served, ..place };
    if let Some(Ok((row, operand))) = first
        && row.name == "$collStats"
    {
        CollStats::parse(operand, parse.api_strict)?;
    }
    let stages: Vec<Value<'_>> = view
        .pipeline
        .iter()
        .skip(usize::from(is_served))
        .map(|stage| Value::Document(stage.as_doc()))
        .collect();
    let parsed = parse_pipeline(stages.into_iter(), &parse.at(place));
    parsed.map(|_| ()).map_err(|error| match error.code().number() {
        // mongod finds these errors before it knows that the pipeline is that of a view.
        40323 | 40324 | 7749501 => error,
        _ if error.code() == ErrorCode::MaxSubPipelineDepthExceeded => error,
        _ => within(namespace, error),
    })
}

fn check_stage(namespace: &Namespace, at: usize, stage: Doc<'_>) -> Result<()> {
    let (row, _) = row_of(Value::Document(stage))?;
    let name = row.name;
    let refuse = |code: ErrorCode, text: String| Err(within(namespace, Error::new(code, text)));
    if row.facts.writes {
        let text = format!(
            "The aggregation stage {name} in location {at} of the pipeline cannot be used in the view definition of {namespace} because it writes to disk"
        );
        return refuse(ErrorCode::OptionNotSupportedOnView, text);
    }
    if row.facts.source == Source::Watched {
        let text = format!("{name} cannot be used in a view definition");
        return refuse(ErrorCode::OptionNotSupportedOnView, text);
    }
    if row.facts.source != Source::Collection && row.facts.reads != Reads::Search {
        let text = format!("{name} reads no collection and cannot be used in a view definition");
        return refuse(ErrorCode::InvalidNamespace, text);
    }
    Ok(())
}

fn within(namespace: &Namespace, error: Error) -> Error {
    error.context(&format!("Invalid pipeline for view {namespace}"))
}
