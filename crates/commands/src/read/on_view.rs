//! Reads of views: the namespace is resolved before planning, and the request becomes a pipeline on
//! the collection below the view.

use crate::read::find_request::Batching;
use quire_error::{Error, ErrorCode, Result};
use quire_executor::Views;
use quire_planner::{AggregateRequest, FindRequest, ReadRequest, on_view};

/// Returns the pipeline that answers the request if it names a view. Uses the catalog of `views`.
///
/// # Errors
/// The errors of resolving the view, and of options that a view does not support.
pub fn resolved(request: ReadRequest<'_>, views: &dyn Views) -> Result<Option<AggregateRequest>> {
    let (namespace, _) = request.target();
    let view = views.view().catalog().resolve(namespace)?;
    view.map(|view| on_view(&request, &view)).transpose()
}

/// Fails with 168 InvalidPipelineOperator for an option of a find that a pipeline does not have.
pub fn check_batching(batching: &Batching, request: &FindRequest) -> Result<()> {
    let text = if request.tailable {
        "Tailable cursors are not supported in aggregation."
    } else if batching.no_timeout {
        "Cursor option noCursorTimeout not supported in aggregation."
    } else if batching.allow_partial_results {
        "Option allowPartialResults not supported in aggregation."
    } else if batching.single_batch && request.limit != 1 {
        "Option singleBatch not supported in aggregation."
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::InvalidPipelineOperator, text))
}
