//! Reads of views: the namespace is resolved before anything is planned, and the request becomes a
//! pipeline on the collection below.

use crate::read::find_request::Batching;
use quire_error::{Error, ErrorCode, Result};
use quire_executor::Views;
use quire_planner::{AggregateRequest, ReadRequest, on_view};

/// Returns the pipeline that answers the request if it names a view. The catalog is that of
/// `views`.
///
/// # Errors
/// What resolving the view answers, and what the request asks of it that no view has.
pub fn resolved(request: ReadRequest<'_>, views: &dyn Views) -> Result<Option<AggregateRequest>> {
    let (namespace, _) = request.target();
    let view = views.view().catalog().resolve(namespace)?;
    view.map(|view| on_view(&request, &view)).transpose()
}

/// Fails with 168 InvalidPipelineOperator for an option of a find's cursor that no pipeline has.
pub fn check_batching(batching: &Batching) -> Result<()> {
    let text = if batching.tailable {
        "Tailable cursors are not supported in aggregation."
    } else if batching.no_timeout {
        "Cursor option noCursorTimeout not supported in aggregation."
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorCode::InvalidPipelineOperator, text))
}
