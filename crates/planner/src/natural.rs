//! Scans of a collection in natural order. In a clustered collection it is the order of `_id`s, whose
//! index has no stored keys.

use crate::plan::{IndexScan, Node};
use quire_catalog::Collection;
use quire_mql::filter::Node as Condition;
use std::sync::Arc;

/// Returns a scan of a collection in natural order, or in reverse natural order.
pub(crate) fn natural_scan(
    collection: &Arc<Collection>,
    filter: Option<Condition>,
    backward: bool,
) -> Node {
    match collection.clustered_index() {
        Some(index) => {
            let mut scan = IndexScan::whole(collection, index, index.multikey_paths());
            scan.backward = backward;
            Node::ClusteredScan { scan: Box::new(scan), filter }
        }
        None => {
            let collection = Arc::clone(collection);
            Node::CollScan { collection, filter, backward, tails: false }
        }
    }
}

/// Returns the scan of a tailable cursor, which reads in the order of insertion.
pub(crate) fn tail_scan(collection: &Arc<Collection>, filter: &Condition) -> Node {
    let filter = (!filter.is_always_true()).then(|| filter.clone());
    let collection = Arc::clone(collection);
    Node::CollScan { collection, filter, backward: false, tails: true }
}

/// Replaces the scans of the clustered index, which has no stored keys. As in MongoDB, such a scan
/// tests the whole `filter` if it is the whole plan.
pub(crate) fn converted(node: Node, filter: Option<&Condition>) -> Node {
    match node {
        Node::IndexScan(scan) if scan.index.is_clustered() => clustered(*scan, None, filter),
        Node::Fetch { filter: rest, input } => match *input {
            Node::IndexScan(scan) if scan.index.is_clustered() => clustered(*scan, rest, filter),
            input => Node::Fetch { filter: rest, input: Box::new(converted(input, None)) },
        },
        Node::Or { inputs } => {
            let inputs = inputs.into_iter().map(|input| converted(input, None)).collect();
            Node::Or { inputs }
        }
        other => other,
    }
}

fn clustered(mut scan: IndexScan, rest: Option<Condition>, whole: Option<&Condition>) -> Node {
    let own = scan.filter.take();
    let filter = match whole {
        Some(whole) => (!whole.is_always_true()).then(|| whole.clone()),
        None => {
            let parts: Vec<Condition> = own.into_iter().chain(rest).collect();
            (!parts.is_empty()).then(|| Condition::all(parts))
        }
    };
    Node::ClusteredScan { scan: Box::new(scan), filter }
}
