//! The intersection of two indexes: the records that both scans find, computed from keys alone
//! before a document is read. MongoDB considers such plans but practically never chooses one. Here
//! one is chosen if the documents that it saves cost more than the keys of the second index; else
//! explain shows it among the rejected plans.

use crate::indexes::choose::{Ranking, Statistics};
use crate::plan::{IndexScan, Node, Plan};
use quire_catalog::key::Intervals;
use quire_mql::filter::Node as Condition;

/// The smallest number of documents of the better index for which an intersection is considered.
const DOCUMENTS_MIN: u64 = 64;
/// How many keys can be read in the time of reading and testing one document, all in memory
/// (docs/adr/0016-intersections.md).
const KEYS_A_DOCUMENT: u64 = 4;
/// How many times cheaper the intersection must be. The estimate assumes that the two conditions
/// are independent. If one implies the other, an intersection chosen by this margin costs a fifth
/// more than the better index alone.
const MARGIN: u64 = 2;

/// Returns the intersection of the best two of `nodes` for `filter`, if it is better than the best
/// of them. Its rows have no order.
pub(crate) fn worthwhile(
    nodes: &[Node],
    ranking: &Ranking,
    filter: &Condition,
    stats: &dyn Statistics,
) -> Option<Node> {
    let mut scans: Vec<(u64, &IndexScan)> = nodes
        .iter()
        .zip(&ranking.keys)
        .filter(|(_, keys)| **keys >= DOCUMENTS_MIN && **keys < ranking.depth)
        .filter_map(|(node, keys)| Some((*keys, by_record_id(node)?)))
        .collect();
    scans.sort_by_key(|(keys, _)| *keys);
    let [(few, first), (many, second), ..] = scans.as_slice() else { return None };
    if ranking.order.first().is_none_or(|best| ranking.keys.get(*best) != Some(few)) {
        return None;
    }
    let both = few.saturating_mul(*many) / stats.documents(&first.collection).max(1);
    let cost = few + many + both.saturating_mul(KEYS_A_DOCUMENT);
    let pays = cost.saturating_mul(MARGIN) < few.saturating_mul(1 + KEYS_A_DOCUMENT);
    pays.then(|| of(first, second, filter.clone()))
}

fn of(first: &IndexScan, second: &IndexScan, filter: Condition) -> Node {
    let scan = |scan: &IndexScan| Node::IndexScan(Box::new(scan.clone()));
    let both = Node::AndSorted { inputs: vec![scan(first), scan(second)] };
    Node::Fetch { filter: Some(filter), input: Box::new(both) }
}

/// Returns the index scan below a node, if its rows are in the order of their record ids and each
/// document is tested after it.
fn by_record_id(node: &Node) -> Option<&IndexScan> {
    match node {
        Node::Fetch { filter: Some(_), input } => match &**input {
            Node::IndexScan(scan)
                if scan.range.is_none()
                    && scan.filter.is_none()
                    && !scan.keys.is_seen_in_views()
                    && !scan.index.has_long_keys()
                    && scan.bounds.iter().all(Intervals::is_point) =>
            {
                Some(scan)
            }
            _ => None,
        },
        Node::Sort { input, .. } | Node::Projection { input, .. } => by_record_id(input),
        _ => None,
    }
}

fn intersects(node: &Node) -> bool {
    matches!(node, Node::AndSorted { .. }) || node.inputs().iter().any(intersects)
}

/// Adds the intersection of the first two scans of single keys to the rejected plans, unless it was
/// chosen.
pub fn add_intersection(plan: &mut Plan) {
    if plan.rejected.is_empty() || !matches!(plan.filter.as_deref(), Some(Condition::And(_))) {
        return;
    }
    if !plan.sort.as_doc().is_empty() || !plan.projection.as_doc().is_empty() {
        return;
    }
    if intersects(&plan.root) {
        return;
    }
    let nodes = plan.rejected.iter().chain(std::iter::once(&plan.root));
    let mut scans: Vec<&IndexScan> = nodes.filter_map(by_record_id).collect();
    scans.sort_by(|a, b| {
        let first = |scan: &IndexScan| scan.bounds.first()?.0.first().map(|i| i.low.clone());
        a.index.id.cmp(&b.index.id).then_with(|| match (first(a), first(b)) {
            (Some(x), Some(y)) => quire_document::compare(x.as_value(), y.as_value(), None),
            _ => std::cmp::Ordering::Equal,
        })
    });
    if let ([first, second, ..], Some(filter)) = (scans.as_slice(), plan.filter.as_deref()) {
        let both = of(first, second, filter.clone());
        plan.rejected.push(both);
    }
}
