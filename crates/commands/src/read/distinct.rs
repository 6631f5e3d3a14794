//! `distinct`: the distinct values at a path.

use crate::cursors::cursor_reply::write_read_time;
use crate::frame::args::{arguments, missing};
use crate::frame::command::Show;
use crate::frame::context::Context;
use crate::frame::query_args::{collation, comment, hint, owned};
use crate::read::find::is_series;
use crate::read::{on_view, oplog, series_buckets};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, Result};
use quire_executor::{UnitOfWork, distinct};
use quire_planner::{DistinctRequest, ReadRequest};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let request = parse(cx, body)?;
    cx.apply_query_settings(ReadRequest::Distinct(&request), false)?;
    let params = cx.exec_params();
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    if oplog::is_read(&request.namespace, &views) {
        return Err(oplog::not_served(cx.command.name));
    }
    if let Some(series) = series_buckets::series_of(&request.namespace, &views) {
        let (values, examined) = series_buckets::distinct(cx, &request, &series, &mut views)?;
        cx.tally.examined = Some(examined);
        reply.append("values", &values);
        return Ok(());
    }
    let key = &request.key;
    let (values, examined) = match on_view::resolved(ReadRequest::Distinct(&request), &views)? {
        Some(pipeline) => {
            cx.integer_ok.set(true);
            distinct(key, &pipeline, &mut views, params)?
        }
        None => {
            cx.integer_ok.set(is_series(&cx.target(body)?, &views));
            distinct(key, &request, &mut views, params)?
        }
    };
    cx.tally.examined = Some(examined);
    reply.append("values", &values);
    write_read_time(reply, views.time());
    Ok(())
}

/// Shows the plan.
pub fn explain(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    show(ReadRequest::Distinct(&parse(cx, body)?))
}

/// Reads the arguments.
pub fn parse(cx: &Context<'_>, body: Doc<'_>) -> Result<DistinctRequest> {
    let namespace = cx.target(body)?;
    namespace.check_readable()?;
    let namespace = namespace.as_str().to_owned();
    let mut request = DistinctRequest { namespace, ..DistinctRequest::default() };
    let mut key = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "key" if arg.is_null() => {}
            "key" => key = Some(arg.string()?),
            "query" => request.filter = owned(&arg)?,
            "hint" => request.hint = hint(&arg)?,
            "collation" => request.collation = collation(&arg)?,
            "includeQueryStatsMetrics" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    if key.is_some_and(|key| key.contains('\0')) {
        let text = "Key field in distinct command must not contain a null byte";
        return Err(Error::location(31032, text));
    }
    request.key = key.ok_or_else(|| missing(cx.command.name, "key"))?.to_owned();
    request.comment = comment(cx.generic.comment);
    Ok(request)
}
