//! From a `distinct` to its plan.

use crate::access::Candidate;
use crate::choose::Statistics;
use crate::find::plan_find;
use crate::hint::{Choice, choice};
use crate::plan::{IndexScan, Node, Plan, ProjectionKind};
use crate::request::{DistinctRequest, FindRequest};
use quire_catalog::Collection;
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::Filter;

/// Plans a `distinct`: the first key of each value where an index has them, else a `find`.
/// `filter` is the compiled filter of the request.
///
/// # Errors
/// `BadValue` for a hint that names no index.
pub fn plan_distinct(
    request: &DistinctRequest,
    filter: &Filter,
    collection: Option<&Collection>,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let find = FindRequest::search(&request.namespace, &request.filter, request.hint.as_ref());
    let mut plan = plan_find(&find, Some(filter), collection, stats)?;
    let Some(collection) = collection else { return Ok(plan) };
    if filter.is_always_true() {
        if let Choice::Any(indexes) =
            choice(collection, request.hint.as_ref(), filter.root(), find.collation.as_deref())?
            && let Some(scan) = whole_index(&indexes, &request.key)
        {
            plan.root = distinct_scan(scan, 0, &request.key);
        }
        return Ok(plan);
    }
    if let Node::Fetch { filter: None, input } = &plan.root
        && let Node::IndexScan(scan) = &**input
        && scan.filter.is_none()
        && let Some(field) = scan.field(&request.key)
        && usable(scan, field)
    {
        plan.root = distinct_scan(IndexScan::clone(scan), field, &request.key);
    }
    Ok(plan)
}

/// The shortest index that begins with the key.
fn whole_index(indexes: &[Candidate], key: &str) -> Option<IndexScan> {
    indexes
        .iter()
        .filter(|candidate| {
            candidate.index.keys.fields().first().is_some_and(|field| field.path == key)
        })
        .map(|candidate| IndexScan::whole(&candidate.index, candidate.multikey.clone()))
        .filter(|scan| usable(scan, 0))
        .min_by_key(|scan| scan.bounds.len())
}

/// Keys of arrays are elements, not values, and long keys are not whole.
fn usable(scan: &IndexScan, field: usize) -> bool {
    scan.gives_value(field)
}

fn distinct_scan(scan: IndexScan, field: usize, key: &str) -> Node {
    let dotted = key.contains('.');
    let kind = if dotted { ProjectionKind::Default } else { ProjectionKind::Covered };
    let input = Box::new(Node::DistinctScan { scan: Box::new(scan), field });
    Node::Projection { kind, spec: DocBuf::new(), input }
}
