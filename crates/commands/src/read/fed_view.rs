//! Requests that read a collection whose documents are made for them, such as the oplog: they become pipelines over a feed,
//! as requests on a view become pipelines.

use quire_catalog::{Namespace, ResolvedView};
use quire_error::Result;
use quire_executor::{Execution, Views};
use quire_planner::{AggregateRequest, COUNT_FIELD, ReadRequest};
use quire_storage::Interrupt;
use std::sync::Arc;

/// Returns the pipeline that answers a request on the collection with this full name, as for a view without stages.
///
/// # Errors
/// Those of options that a view does not take.
pub fn as_pipeline(request: ReadRequest<'_>, namespace: &str) -> Result<AggregateRequest> {
    let view = ResolvedView {
        view: Namespace::parse(namespace)?,
        namespace: namespace.to_owned(),
        pipeline: Vec::new(),
        ends: Vec::new(),
        collation: None,
    };
    let pipeline = quire_planner::on_view(&request, &view)?;
    Ok(AggregateRequest { view: None, ..pipeline })
}

/// Returns the number that the pipeline of a count finds.
///
/// # Errors
/// Those of the pipeline.
pub fn counted(
    execution: &mut Execution,
    views: &mut dyn Views,
    interrupt: &Arc<Interrupt>,
) -> Result<u64> {
    let counted = execution.next_document(views, interrupt)?;
    let number = counted.and_then(|doc| doc.get(COUNT_FIELD)?.exact_i64());
    Ok(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
}
