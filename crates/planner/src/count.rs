//! From a `count` to its plan.

use crate::choose::Statistics;
use crate::find::plan_find;
use crate::plan::{Node, Plan};
use crate::request::{CountRequest, FindRequest};
use quire_catalog::Collection;
use quire_error::Result;
use quire_mql::Filter;

/// Plans a `count`; `filter` is the compiled filter of the request.
///
/// # Errors
/// `BadValue` for a hint that names no index.
pub fn plan_count(
    request: &CountRequest,
    filter: &Filter,
    collection: Option<&Collection>,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let find = FindRequest::search(&request.namespace, &request.filter, request.hint.as_ref());
    let mut plan = plan_find(&find, Some(filter), collection, stats)?;
    let counted = |node| Node::Count {
        skip: request.skip,
        limit: request.limit,
        input: Box::new(keys_suffice(node)),
    };
    if request.hint.is_none() && !plan.missing && filter.is_always_true() {
        plan.root = Node::RecordStoreFastCount;
        return Ok(plan);
    }
    plan.root = counted(plan.root);
    plan.rejected = plan.rejected.into_iter().map(counted).collect();
    Ok(plan)
}

/// Without fetching documents that nobody looks at.
fn keys_suffice(node: Node) -> Node {
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
