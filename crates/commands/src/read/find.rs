//! `find`: matching documents, in batches.

use crate::cursors::cursor_reply::Opening;
use crate::frame::command::Show;
use crate::frame::context::Context;
use crate::frame::query_args::comment;
use crate::read::find_request::parse_find;
use crate::read::{on_view, oplog, series_buckets};
use quire_catalog::Namespace;
use quire_collections::WritePolicy;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{UnitOfWork, Views, open};
use quire_planner::{ReadRequest, check_find_options};
use quire_session::PlanSource;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    namespace.check_readable()?;
    let (mut request, batching) = parse_find(namespace.as_str().to_owned(), body)?;
    if request.tailable && cx.in_transaction() {
        let text = "It is illegal to open a tailable cursor in a transaction";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    request.comment = comment(cx.generic.comment);
    cx.apply_query_settings(ReadRequest::Find(&request), false)?;
    cx.service.metrics.queries.add(1);
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    if oplog::is_read(&request.namespace, &views) {
        return oplog::find(cx, body, (request, batching), &mut views, reply);
    }
    if let Some(series) = series_buckets::series_of(&request.namespace, &views) {
        let (request, views) = ((request, batching), &mut views);
        return series_buckets::find(cx, body, request, (&series, views), reply);
    }
    if let Some(pipeline) = on_view::resolved(ReadRequest::Find(&request), &views)? {
        on_view::check_batching(&batching, &request)?;
        let opening = batching.opening(request.namespace, body);
        return cx.open_pipeline(reply, pipeline, (opening, WritePolicy::Client), &mut views);
    }
    let refused = check_find_options(&request);
    let refused = refused.and_then(|()| on_view::check_batching(&batching, &request));
    if refused.is_err() && is_series(&namespace, &views) {
        return refused;
    }
    let is_dead = request.tailable && is_empty(&namespace, &views)?;
    let execution = open(&request, &views, cx.exec_params())?;
    // A blocking sort has the limit inside and does not report that it is reached.
    let limit = if execution.blocks() || request.tailable { 0 } else { request.limit };
    let opening = Opening {
        namespace: request.namespace,
        batch_size: match (batching.batch_size, limit) {
            (Some(batch), 0) => Some(batch),
            (Some(batch), limit) => Some(batch.min(limit)),
            (None, 0) => None,
            (None, limit) => Some(limit.min(crate::cursors::cursor_reply::FIRST_BATCH_DOCS)),
        },
        single_batch: batching.single_batch || is_dead,
        no_timeout: batching.no_timeout,
        limit,
        full_batch_stays_open: true,
        command: body,
    };
    let source = PlanSource::new(execution, views.time()).awaiting(batching.await_data);
    cx.open_cursor(reply, opening, Box::new(source), &mut views)
        .map_err(|error| error.context(&format!("Executor error during find command: {namespace}")))
}

pub(super) fn is_series(namespace: &Namespace, views: &dyn Views) -> bool {
    views.view().collection(namespace).is_some_and(|collection| collection.is_time_series())
}

/// Returns true if a tailable cursor would have nothing to follow: the collection is missing or
/// empty, so that the cursor has no position.
///
/// # Errors
/// `BadValue` if the collection is not capped.
fn is_empty(namespace: &Namespace, views: &dyn Views) -> Result<bool> {
    let view = views.view();
    let Some(collection) = view.collection(namespace) else { return Ok(true) };
    if collection.options.capped().is_none() {
        let text = format!(
            "error processing query: ns={namespace} tailable cursor requested on non capped collection"
        );
        return Err(Error::bad_value(text));
    }
    Ok(view.counts(collection).documents == 0)
}

/// Shows the plan.
pub fn explain(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let (request, _) = parse_find(cx.target(body)?.as_str().to_owned(), body)?;
    show(ReadRequest::Find(&request))
}
