//! `find`: matching documents, in batches.

use crate::cursors::cursor_reply::Opening;
use crate::frame::command::Show;
use crate::frame::context::Context;
use crate::frame::query_args::comment;
use crate::read::find_request::parse_find;
use crate::read::on_view;
use quire_collections::WritePolicy;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{UnitOfWork, open};
use quire_planner::ReadRequest;
use quire_session::PlanSource;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    namespace.check_readable()?;
    let (mut request, batching) = parse_find(namespace.as_str().to_owned(), body)?;
    if batching.tailable && cx.in_transaction() {
        let text = "It is illegal to open a tailable cursor in a transaction";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if batching.tailable && cx.service.store.catalog().lookup(&namespace).is_some() {
        let text = format!(
            "error processing query: ns={namespace} tailable cursor requested on non capped collection"
        );
        return Err(Error::bad_value(text));
    }
    request.comment = comment(cx.generic.comment);
    cx.apply_query_settings(ReadRequest::Find(&request), false)?;
    cx.service.metrics.queries.add(1);
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    if let Some(pipeline) = on_view::resolved(ReadRequest::Find(&request), &views)? {
        on_view::check_batching(&batching, request.limit)?;
        let opening = Opening {
            namespace: request.namespace,
            batch_size: batching.batch_size,
            single_batch: batching.single_batch,
            no_timeout: false,
            limit: 0,
            full_batch_stays_open: true,
            command: body,
        };
        return cx.open_pipeline(reply, pipeline, (opening, WritePolicy::Client), &mut views);
    }
    let execution = open(&request, &views, cx.exec_params())?;
    // A blocking sort has the limit inside and does not report that it is reached.
    let limit = if execution.blocks() { 0 } else { request.limit };
    let opening = Opening {
        namespace: request.namespace,
        batch_size: match (batching.batch_size, limit) {
            (Some(batch), 0) => Some(batch),
            (Some(batch), limit) => Some(batch.min(limit)),
            (None, 0) => None,
            (None, limit) => Some(limit.min(crate::cursors::cursor_reply::FIRST_BATCH_DOCS)),
        },
        single_batch: batching.single_batch,
        no_timeout: batching.no_timeout,
        limit,
        full_batch_stays_open: true,
        command: body,
    };
    let source = PlanSource::new(execution, views.time());
    cx.open_cursor(reply, opening, Box::new(source), &mut views)
}

/// Shows the plan.
pub fn explain(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let (request, _) = parse_find(cx.target(body)?.as_str().to_owned(), body)?;
    show(ReadRequest::Find(&request))
}
