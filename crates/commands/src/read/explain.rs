//! `explain`: the plan of another command, and its execution statistics.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::command::{Command, Kind};
use crate::frame::command_shape::requested;
use crate::frame::context::Context;
use crate::frame::parameters::table::STAGE_BYTES;
use crate::read::what_if::{self, WhatIf};
use crate::read::{explained, series_buckets};
use quire_document::limits::INTERNAL_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{OpenViews, UnitOfWork};
use quire_mql::too_large;
use quire_planner::{AggregateRequest, ReadRequest, RequestShape, Verbosity};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut verbosity, mut what_if) = (Verbosity::AllPlansExecution, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "verbosity" if !arg.is_null() => verbosity = parse_verbosity(&arg)?,
            "whatIf" if !arg.is_null() => what_if = Some(WhatIf::parse(&arg)?),
            "verbosity" | "whatIf" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let inner = match body.first() {
        Some(first) if !Arg::new(cx.command.name, first).is_null() => {
            Arg::new(cx.command.name, first).document()?
        }
        _ => return Err(missing(cx.command.name, cx.command.name)),
    };
    let name = inner.first().map_or("", |first| first.key());
    let Some(command) = cx.service.commands.find(name) else {
        let text = format!("Explain failed due to unknown command: {name}");
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    };
    if cx.generic.api.strict == Some(true) && !command.in_api_v1 {
        let text =
            format!("Provided apiStrict:true, but the command {name} is not in API Version 1");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    if let Some(Value::String(db)) = inner.get("$db")
        && db != cx.db
    {
        let text = format!("Mismatched $db in explain command. Expected {} but got {db}", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let own = std::mem::replace(&mut cx.command, command);
    let target = cx.target(inner);
    cx.tally.explained =
        Some(target.map_or_else(|_| format!("{}.$cmd", cx.db), |ns| ns.as_str().to_owned()));
    if let Some(request) = requested(cx.db, inner) {
        cx.apply_query_settings(request.as_read(), true)?;
    }
    let explained = explain_inner(cx, command, inner, (verbosity, what_if.as_ref()));
    cx.command = own;
    finish(cx, inner, explained?, reply)
}

/// Explains an `aggregate` with `explain: true`.
pub fn write_aggregate(
    cx: &mut Context<'_>,
    request: &AggregateRequest,
    body: Doc<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    let what = ReadRequest::Aggregate(request);
    let shown = explain_resolved(cx, what, Verbosity::QueryPlanner, &mut views)?;
    cx.tally.failed_early = false;
    let command = DocBuf::build(|writer| {
        let own =
            body.iter().filter(|element| !crate::frame::args::is_generic(element.key_bytes()));
        own.for_each(|element| {
            writer.append_element(element);
        });
    });
    finish(cx, command.as_doc(), shown, reply)
}

fn explain_inner(
    cx: &Context<'_>,
    command: &Command,
    inner: Doc<'_>,
    (verbosity, what_if): (Verbosity, Option<&WhatIf>),
) -> Result<DocBuf> {
    let Some(own) = command.explain else {
        let text = format!("Cannot explain cmd: {}", command.name);
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    };
    let unit = cx.unit()?;
    let explained = own(cx, inner, &mut |what| {
        let mut explained = explain_resolved(cx, what, verbosity, &mut unit.views()?)?;
        if let Some(what_if) = what_if {
            let tried = what_if::explain(cx, (what, inner), verbosity, what_if)?;
            explained.append("whatIf", &tried);
        }
        Ok(explained)
    });
    match (command.kind, cx.target(inner)) {
        (Kind::Write, Ok(namespace)) => explained
            .and_then(|shown| if cx.may_read(&namespace) { Ok(shown) } else { told_failure(shown) })
            .map_err(|error| cx.without_values(&namespace, error)),
        _ => explained,
    }
}

/// Fails with the execution error that an explanation contains, if there is one.
fn told_failure(shown: DocBuf) -> Result<DocBuf> {
    let stats = shown.get("executionStats").and_then(|stats| stats.as_document());
    let told = |name: &str| stats.and_then(|stats| stats.get(name));
    match (told("errorCode"), told("errorMessage").and_then(|text| text.as_str())) {
        (Some(Value::Int32(code)), Some(text)) => {
            Err(Error::new(ErrorCode::location(code), text.to_owned()))
        }
        _ => Ok(shown),
    }
}

/// Explains the request, with the hash of its shape.
fn explain_resolved(
    cx: &Context<'_>,
    what: ReadRequest<'_>,
    verbosity: Verbosity,
    views: &mut OpenViews<'_>,
) -> Result<DocBuf> {
    let mut explained = explain_plans(cx, what, verbosity, views)?;
    if let Some(shape) = RequestShape::of(&what) {
        explained.append("queryShapeHash", shape.hash().to_string().as_str());
    }
    Ok(explained)
}

/// Explains the plans of the request; on a view, those of its pipeline.
fn explain_plans(
    cx: &Context<'_>,
    what: ReadRequest<'_>,
    verbosity: Verbosity,
    views: &mut OpenViews<'_>,
) -> Result<DocBuf> {
    if let Some(series) = series_buckets::series_of(what.target().0, views) {
        return series_buckets::explain(cx, what, verbosity, &series, views);
    }
    let resolved = explained::on_collection(what, views)?;
    let what = resolved.as_ref().map_or(what, ReadRequest::Aggregate);
    explained::explain_on(cx, what, verbosity, views, cx.exec_params())
}

fn parse_verbosity(arg: &Arg<'_>) -> Result<Verbosity> {
    match arg.string()? {
        "queryPlanner" => Ok(Verbosity::QueryPlanner),
        "executionStats" => Ok(Verbosity::ExecutionStats),
        "allPlansExecution" => Ok(Verbosity::AllPlansExecution),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
        ))),
    }
}

/// Appends the explanation and the other fields of the reply.
///
/// # Errors
/// 10334 BSONObjectTooLarge if the explanation and the command are larger than a document.
fn finish(
    cx: &Context<'_>,
    inner: Doc<'_>,
    explained: DocBuf,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let bytes = explained.as_doc().len() + inner.len();
    if bytes > INTERNAL_DOCUMENT_BYTES_MAX {
        return Err(too_large(bytes, explained.as_doc().first()));
    }
    reply.append_all(explained.as_doc());
    if !inner.is_empty() {
        let mut command = reply.document("command");
        command.append_all(inner);
        if !inner.contains("$db") {
            command.append("$db", cx.db);
        }
    }
    {
        let mut info = reply.document("serverInfo");
        info.append("host", crate::frame::host::host_name().as_str());
        let port = cx.connection.info.local.map_or(27017, |local| i32::from(local.port()));
        info.append("port", port).append("version", crate::frame::MONGODB_VERSION);
        info.append("gitVersion", cx.service.options.git_version);
    }
    reply
        .document("serverParameters")
        .append(STAGE_BYTES, cx.service.parameters.cached.stage_bytes_max() as i32);
    Ok(())
}
