//! `aggregate`: a pipeline of stages over a collection, or over documents of the first stage.

use crate::cursors::cursor_reply::Opening;
use crate::frame::args::{Arg, arguments, missing};
use crate::frame::command::Show;
use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use crate::frame::query_args::batch_size;
use crate::frame::query_args::{collation, comment, hint, owned, write_policy};
use crate::read::run_pipeline::writes;
use crate::read::{change_stream, on_view, pipeline_sources};
use quire_catalog::Namespace;
use quire_collections::WritePolicy;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::UnitOfWork;
use quire_mql::stage::{find_stage, for_each_row};
use quire_planner::{AggregateRequest, ReadRequest};

/// The parsed command: the planner's request and the options outside the plan.
pub struct Parsed {
    /// The request for the planner.
    pub request: AggregateRequest,
    /// The largest number of documents in the first batch.
    pub batch_size: Option<u64>,
    /// `explain: true`: returns the plan instead of the documents.
    pub explain: bool,
    /// `bypassDocumentValidation`, for a pipeline that writes.
    pub policy: WritePolicy,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    cx.tally.failed_early = true;
    let parsed = parse(cx, body)?;
    let is_change_stream = change_stream::is_change_stream(&parsed.request);
    cx.apply_query_settings(ReadRequest::Aggregate(&parsed.request), parsed.explain)?;
    if parsed.explain {
        return crate::read::explain::write_aggregate(cx, &parsed.request, body, reply);
    }
    let mut request = parsed.request;
    let opening = Opening {
        namespace: request.namespace.clone(),
        batch_size: parsed.batch_size,
        single_batch: false,
        no_timeout: false,
        limit: 0,
        full_batch_stays_open: true,
        command: body,
    };
    if is_change_stream {
        return change_stream::open(cx, request, opening, reply);
    }
    // Waits before the views are opened: they must not be older than the wait, and the view
    // definition and the plan must come from the same catalog.
    let _writing = match writes(&request) {
        true => Some(cx.enter_unblocked()?),
        false => None,
    };
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    if !pipeline_sources::is_of_name(&request)
        && let Some(resolved) = on_view::resolved(ReadRequest::Aggregate(&request), &views)?
    {
        request = resolved;
    }
    let opened = cx.open_pipeline(reply, request, (opening, parsed.policy), &mut views);
    opened.map_err(|error| cx.without_values_of_target(body, error))
}

/// Shows the plan. In an `explain` an aggregate needs no `cursor` and must not have `explain:
/// true`.
pub fn explain(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let mut with_cursor = body.to_owned();
    if !body.contains("cursor") {
        with_cursor.append("cursor", Doc::empty());
    }
    let Parsed { request, explain, .. } = parse(cx, with_cursor.as_doc())?;
    if explain {
        let text = "The 'explain' option is illegal when a explain verbosity is also provided";
        return Err(Error::failed_to_parse(text));
    }
    if writes(&request) {
        refuse_write_concern(body)?;
    }
    show(ReadRequest::Aggregate(&request))
}

/// Reads the arguments.
pub fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<Parsed> {
    let mut request =
        AggregateRequest { namespace: namespace(cx, body)?, ..AggregateRequest::default() };
    let (mut pipeline, mut cursor, mut explain) = (None, None, None);
    let mut policy = WritePolicy::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "pipeline" => pipeline = Some(stages(&arg)?),
            "cursor" => {
                let text = "cursor field must be missing or an object";
                let doc = arg.value().as_document().ok_or_else(|| Error::type_mismatch(text))?;
                cursor = Some(batch_size("cursor", doc)?);
            }
            "explain" => explain = Some(arg.bool()?),
            "allowDiskUse" => request.allow_disk_use = Some(arg.bool()?),
            "hint" => request.hint = hint(&arg)?,
            "let" => request.let_vars = owned(&arg)?,
            "collation" => request.collation = collation(&arg)?,
            "bypassDocumentValidation" => policy = write_policy(&arg)?,
            "exchange"
            | "fromMongos"
            | "fromRouter"
            | "needsMerge"
            | "isMapReduceCommand"
            | "collectionUUID"
            | "passthroughToShard"
            | "encryptionInformation"
            | "resumeAfter"
            | "requestReshardingResumeToken"
            | "$_requestReshardingResumeToken" => {
                return Err(Error::not_built(&format!("aggregate.{}", arg.name())));
            }
            "includeQueryStatsMetrics" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    request.pipeline = pipeline.ok_or_else(|| missing(cx.command.name, "pipeline"))?;
    let explain = explain.unwrap_or(false);
    if cursor.is_none() && !explain {
        let text =
            "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::failed_to_parse(text));
    }
    if explain {
        refuse_write_concern(body)?;
    }
    check_pipeline(cx, &request)?;
    check_in_transaction(cx, &request, explain)?;
    request.comment = comment(cx.generic.comment);
    Ok(Parsed { request, batch_size: cursor.flatten(), explain, policy })
}

/// Refuses a write concern for a pipeline that is explained.
fn refuse_write_concern(body: Doc<'_>) -> Result<()> {
    match body.contains("writeConcern") {
        false => Ok(()),
        true => Err(Error::failed_to_parse(
            "aggregate command cannot specify both 'explain' and 'writeConcern'",
        )),
    }
}

/// Returns the collection, or the database's own namespace for `aggregate: 1`.
fn namespace(cx: &Context<'_>, body: Doc<'_>) -> Result<String> {
    let first = body.first().map(|first| first.value());
    match first {
        Some(Value::String(_)) => {
            let namespace: Namespace = cx.target(body)?;
            namespace.check_readable()?;
            Ok(namespace.as_str().to_owned())
        }
        Some(Value::Int32(1) | Value::Int64(1) | Value::Double(1.0)) => {
            Ok(format!("{}.$cmd.aggregate", cx.db))
        }
        Some(Value::Decimal(number)) if number.to_f64() == 1.0 => {
            Ok(format!("{}.$cmd.aggregate", cx.db))
        }
        Some(number) if number.is_number() => {
            let text =
                "Invalid command format: the 'aggregate' field must specify a collection name or 1";
            Err(Error::bad_value(text))
        }
        Some(other) => {
            let text = format!(
                "Invalid command format: the 'aggregate' field must specify a collection name or 1, not {}",
                other.type_name()
            );
            Err(Error::new(ErrorCode::InvalidNamespace, text))
        }
        None => Err(missing("aggregate", "aggregate")),
    }
}

/// Checks the stages against the request's concerns, its transaction and its source.
fn check_pipeline(cx: &Context<'_>, request: &AggregateRequest) -> Result<()> {
    cx.check_stages_api(&request.pipeline)?;
    let row = |stage: Option<&DocBuf>| find_stage(stage?.as_doc().first()?.key());
    let first = row(request.pipeline.first());
    let concern = &cx.generic.read_concern;
    if let Some(row) = first.filter(|row| row.facts.local_only)
        && !concern.is_plain()
    {
        let text = format!("Aggregation stage {} requires read concern local", row.name);
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if let Some(row) = row(request.pipeline.last()).filter(|row| row.facts.writes)
        && concern.level == Some(ReadLevel::Linearizable)
    {
        let text =
            format!("Aggregation stage {} cannot run with read concern linearizable", row.name);
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    Ok(())
}

/// Refuses what a transaction must not contain: an explain, and stages that write, follow changes
/// or read data of the server.
fn check_in_transaction(cx: &Context<'_>, request: &AggregateRequest, explain: bool) -> Result<()> {
    if !cx.in_transaction() {
        return Ok(());
    }
    let refuse =
        |text: String| Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text));
    for_each_row(request.pipeline.iter().map(|stage| stage.as_doc()), &mut |row| {
        if row.facts.in_transaction {
            return Ok(());
        }
        let name = row.name;
        refuse(format!("Stage not supported inside of a multi-document transaction: {name}"))
    })?;
    if explain {
        let text = "Operation not permitted in transaction :: caused by :: Explain for the aggregate command cannot run within a multi-document transaction";
        return refuse(text.to_owned());
    }
    Ok(())
}

fn stages(arg: &Arg<'_>) -> Result<Vec<DocBuf>> {
    let text = "'pipeline' option must be specified as an array";
    let stages = arg.value().as_array().ok_or_else(|| Error::type_mismatch(text))?;
    let text = "Each element of the 'pipeline' array must be an object";
    let stage = |stage: Value<'_>| stage.as_document().map(Doc::to_owned);
    stages.iter().map(|value| stage(value).ok_or_else(|| Error::type_mismatch(text))).collect()
}
