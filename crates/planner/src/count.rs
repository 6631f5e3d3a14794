//! Plans a `count`.

use crate::find::{FindQuery, plan_find};
use crate::indexes::choose::Statistics;
use crate::plan::{Node, Plan};
use crate::request::{CountRequest, FindRequest};
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::filter::Node as Condition;
use std::sync::Arc;

/// Plans a `count`.
///
/// # Errors
/// The errors of `mql` about the filter; `BadValue` for a hint that names no index.
pub(crate) fn plan_count(
    request: &CountRequest,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let (skip, limit) = (request.skip, request.limit);
    let (namespace, hint) = (&request.namespace, request.hint.as_ref());
    let find = FindRequest::search(namespace, &request.filter, hint, &request.collation);
    let mut plan = plan_find(&FindQuery::compile(&find, context, stats)?, stats)?;
    let everything = plan.filter.as_deref().is_some_and(Condition::is_always_true);
    if request.hint.is_none()
        && everything
        && let Some(collection) = plan.root.collection()
    {
        let collection = Arc::clone(collection);
        plan.root = Node::RecordStoreFastCount { collection, skip, limit };
        return Ok(plan);
    }
    for node in std::iter::once(&mut plan.root).chain(&mut plan.rejected) {
        let input = Box::new(keys_suffice(std::mem::replace(node, Node::Eof)));
        *node = Node::Count { skip, limit, input };
    }
    Ok(plan)
}

/// Removes a fetch of documents that are only counted.
pub(crate) fn keys_suffice(node: Node) -> Node {
    match node {
        Node::Fetch { filter: None, input } => match *input {
            Node::IndexScan(scan) if scan.filter.is_none() && scan.is_one_range() => {
                Node::CountScan(scan)
            }
            other => other,
        },
        Node::Subplan { input } => Node::Subplan { input: Box::new(keys_suffice(*input)) },
        other => other,
    }
}
