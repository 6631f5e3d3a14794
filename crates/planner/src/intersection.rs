//! The intersection of two indexes: MongoDB considers it and all but never chooses it, so here it
//! is only shown among the rejected plans.

use crate::plan::{IndexScan, Node, Plan};
use quire_catalog::key::Intervals;
use quire_mql::filter::Node as Condition;

/// Adds the intersection of the first two scans of single keys to the rejected plans.
pub fn add_intersection(plan: &mut Plan) {
    if plan.rejected.is_empty() || !matches!(plan.filter.as_deref(), Some(Condition::And(_))) {
        return;
    }
    if !plan.sort.as_doc().is_empty() || !plan.projection.as_doc().is_empty() {
        return;
    }
    let mut scans: Vec<&IndexScan> = Vec::new();
    for node in plan.rejected.iter().chain(std::iter::once(&plan.root)) {
        if let Node::Fetch { filter: Some(_), input } = node
            && let Node::IndexScan(scan) = &**input
            && scan.range.is_none()
            && scan.filter.is_none()
            && !scan.keys.is_seen_in_views()
            && scan.bounds.iter().all(Intervals::is_point)
        {
            scans.push(scan);
        }
    }
    scans.sort_by(|a, b| {
        let first = |scan: &IndexScan| scan.bounds.first()?.0.first().map(|i| i.low.clone());
        a.index.id.cmp(&b.index.id).then_with(|| match (first(a), first(b)) {
            (Some(x), Some(y)) => quire_document::compare(x.as_value(), y.as_value(), None),
            _ => std::cmp::Ordering::Equal,
        })
    });
    if let [first, second, ..] = scans.as_slice() {
        let scan = |scan: &IndexScan| Node::IndexScan(Box::new(scan.clone()));
        let both = Node::AndSorted { inputs: vec![scan(first), scan(second)] };
        let filter = plan.filter.as_deref().cloned();
        plan.rejected.push(Node::Fetch { filter, input: Box::new(both) });
    }
}
