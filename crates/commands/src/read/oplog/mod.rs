//! `local.oplog.rs`, a view of the change log with MongoDB's entries: what tools expect that show the
//! log, dump it or tail it. The collection in the catalog is empty; each read makes its documents of
//! the log. `bounds` finds the part of the log that a filter needs, `feed` reads it, `entries` makes
//! the documents, `diff` writes updates as MongoDB does.

mod bounds;
mod diff;
mod entries;
mod feed;

use crate::frame::context::Context;
use crate::read::fed_view::{as_pipeline, counted};
use crate::read::find_request::Batching;
use bounds::TimeBounds;
use feed::OplogFeed;
use quire_catalog::OPLOG;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{Execution, OpenViews, Views, open_fed};
use quire_planner::{AggregateRequest, CountRequest, FindRequest, Hint, ReadRequest};
use quire_session::PlanSource;
use std::sync::Arc;

/// Returns true if a request reads the log: it names the collection, and the server has one.
pub fn is_read(namespace: &str, views: &dyn Views) -> bool {
    namespace == OPLOG && views.view().catalog().find(OPLOG).is_some()
}

/// Runs a find, which may be tailable.
///
/// # Errors
/// Those of the pipeline that it becomes.
pub fn find(
    cx: &mut Context<'_>,
    body: Doc<'_>,
    (mut request, batching): (FindRequest, Batching),
    views: &mut OpenViews<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    // The order of the log is that of its times.
    if let Some(forward) = order_of_time(request.sort.as_doc()) {
        request.sort = DocBuf::new();
        request.hint = Some(Hint::Natural(forward));
    }
    let pipeline = as_pipeline(ReadRequest::Find(&request), OPLOG)?;
    let execution = open(cx, &pipeline, request.tailable, views)?;
    let opening = batching.opening(request.namespace, body);
    let source = PlanSource::new(execution, None).awaiting(batching.await_data);
    cx.open_cursor(reply, opening, Box::new(source), views)
}

/// Returns the number of entries that a count finds.
///
/// # Errors
/// Those of reading the log and of the filter.
pub fn count(cx: &Context<'_>, request: &CountRequest, views: &mut OpenViews<'_>) -> Result<u64> {
    let pipeline = as_pipeline(ReadRequest::Count(request), OPLOG)?;
    let mut execution = open(cx, &pipeline, false, views)?;
    counted(&mut execution, views, &cx.interrupt)
}

/// Opens a pipeline over the entries. With `tails` it follows the log.
///
/// # Errors
/// The errors of the stages.
pub fn open(
    cx: &Context<'_>,
    request: &AggregateRequest,
    tails: bool,
    views: &dyn Views,
) -> Result<Execution> {
    let filter = request.pipeline.first().and_then(|stage| match stage.get("$match") {
        Some(Value::Document(filter)) => Some(TimeBounds::of(filter)),
        _ => None,
    });
    let is_forward = !matches!(request.hint, Some(Hint::Natural(false)));
    let request = AggregateRequest { fed_by: Some("the oplog"), hint: None, ..request.clone() };
    let store = Arc::clone(&cx.service.store);
    let feed = OplogFeed::new(store, filter.unwrap_or_default(), is_forward, tails);
    open_fed(&request, Box::new(feed), views, cx.exec_params())
}

/// Returns the error of a request that only collections answer.
pub fn not_served(command: &str) -> Error {
    let text = format!("{command} is not supported on {OPLOG}");
    Error::new(ErrorCode::CommandNotSupported, text)
}

/// Returns the direction of a sort by `ts` alone.
fn order_of_time(sort: Doc<'_>) -> Option<bool> {
    let mut fields = sort.fields();
    let (name, direction) = fields.next()?;
    let direction = direction.to_f64().filter(|_| name == "ts" && fields.next().is_none())?;
    Some(direction > 0.0)
}
