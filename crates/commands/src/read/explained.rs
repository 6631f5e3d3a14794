//! Explains a request whose names are resolved, on the data of the server or on those of the
//! laboratory.

use crate::frame::context::Context;
use crate::read::{change_stream, on_view, pipeline_sources};
use quire_document::DocBuf;
use quire_error::Result;
use quire_executor::{ExecParams, OpenViews, ServerStage, explain};
use quire_planner::{AggregateRequest, ReadRequest, Verbosity};

/// Returns the pipeline that answers a request on a view; `None` if it does not name a view, or if
/// its first stage applies to the view itself.
///
/// # Errors
/// Those of [`on_view::resolved`].
pub fn on_collection(
    what: ReadRequest<'_>,
    views: &OpenViews<'_>,
) -> Result<Option<AggregateRequest>> {
    match what {
        ReadRequest::Aggregate(pipeline)
            if pipeline_sources::is_of_name(pipeline)
                || change_stream::is_change_stream(pipeline) =>
        {
            Ok(None)
        }
        what => on_view::resolved(what, views),
    }
}

/// Explains a request that names no view.
///
/// # Errors
/// Those of [`explain`], and of a stage whose documents the server creates.
pub fn explain_on(
    cx: &Context<'_>,
    what: ReadRequest<'_>,
    verbosity: Verbosity,
    views: &mut OpenViews<'_>,
    params: ExecParams,
) -> Result<DocBuf> {
    let ReadRequest::Aggregate(pipeline) = what else {
        return explain(what, None, verbosity, views, params);
    };
    let mut pipeline = pipeline.clone();
    if change_stream::is_change_stream(&pipeline) {
        let first = change_stream::explained(cx, &mut pipeline, views)?;
        let what = ReadRequest::Aggregate(&pipeline);
        return explain(what, Some(first), verbosity, views, params);
    }
    let stage = pipeline.pipeline.first().cloned();
    let made = pipeline_sources::take(cx, &mut pipeline)?;
    let first = stage.zip(made).map(|(stage, rows)| {
        let documents = Box::new(rows.into_iter());
        ServerStage { stage, documents }
    });
    explain(ReadRequest::Aggregate(&pipeline), first, verbosity, views, params)
}
