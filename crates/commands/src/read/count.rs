//! `count`: the number of matching documents.

use crate::frame::args::arguments;
use crate::frame::command::Show;
use crate::frame::context::Context;
use crate::frame::query_args::{collation, comment, count_limit, hint, owned};
use crate::read::{on_view, oplog, series_buckets};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_executor::{UnitOfWork, count};
use quire_planner::{CountRequest, ReadRequest};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let request = parse(cx, body)?;
    cx.note_request(&ReadRequest::Count(&request));
    let params = cx.exec_params();
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    if oplog::is_read(&request.namespace, &views) {
        let found = oplog::count(cx, &request, &mut views)?;
        reply.append("n", i32::try_from(found).unwrap_or(i32::MAX));
        return Ok(());
    }
    if let Some(series) = series_buckets::series_of(&request.namespace, &views) {
        let found = series_buckets::count(cx, &request, &series, &mut views)?;
        reply.append("n", i32::try_from(found).unwrap_or(i32::MAX));
        return Ok(());
    }
    let (found, examined) = match on_view::resolved(ReadRequest::Count(&request), &views)? {
        Some(pipeline) => count(&pipeline, &mut views, params)?,
        None => count(&request, &mut views, params)?,
    };
    cx.tally.examined = Some(examined);
    match i32::try_from(found) {
        Ok(found) => reply.append("n", found),
        Err(_) => reply.append("n", found as i64),
    };
    Ok(())
}

/// Shows the plan.
pub fn explain(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    show(ReadRequest::Count(&parse(cx, body)?))
}

/// Reads the arguments.
pub fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<CountRequest> {
    let namespace = cx.target(body)?;
    namespace.check_readable()?;
    let namespace = namespace.as_str().to_owned();
    let mut request = CountRequest { namespace, ..CountRequest::default() };
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "query" => request.filter = owned(&arg)?,
            "limit" => request.limit = count_limit(&arg)?,
            "skip" if !arg.is_null() => request.skip = arg.integer_from(0)? as u64,
            "skip" => {}
            "hint" => request.hint = hint(&arg)?,
            "collation" => request.collation = collation(&arg)?,
            "fields" | "queryOptions" | "includeQueryStatsMetrics" => {}
            _ => return Err(arg.unknown()),
        }
    }
    request.comment = comment(cx.generic.comment);
    Ok(request)
}
