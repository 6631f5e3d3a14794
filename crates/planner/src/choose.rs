//! Choosing among candidates by how many keys each would read, with the same choice for the same
//! data: ties go to the plan without a fetch, then without a sort, then to the first.

use crate::plan::{IndexScan, Node};
use quire_catalog::{Collection, ResolvedView};
use quire_error::Result;
use std::sync::Arc;

/// What is known about the data. The executor measures it on the read view; tests and what-if
/// analyses use a fixed table.
pub trait Statistics {
    /// Returns the collection of a namespace, `database.collection`; `None` if there is none.
    ///
    /// # Errors
    /// InvalidNamespace for what is no namespace.
    fn collection(&self, namespace: &str) -> Result<Option<Arc<Collection>>>;

    /// Returns what a view stands for; `None` if no view has the name.
    ///
    /// # Errors
    /// 165 ViewDepthLimitExceeded, 182 InvalidViewDefinition.
    fn view(&self, namespace: &str) -> Result<Option<ResolvedView>> {
        let _ = namespace;
        Ok(None)
    }

    /// Fails if the request has to stop. Planning checks it where the work may be long.
    ///
    /// # Errors
    /// The interrupt's error.
    fn check_interrupt(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of documents in a collection.
    fn documents(&self, collection: &Collection) -> u64;

    /// How many keys the scan would visit, counted up to `limit` (an index dive).
    fn keys(&self, scan: &IndexScan, limit: u64) -> u64;

    /// Returns true if drawing `size` random documents costs less than reading all documents.
    fn draws(&self, collection: &Collection, size: u64) -> bool;
}

/// First depth of a dive; deeper ones follow while no candidate is within it.
const DIVE_FIRST: u64 = 128;
/// Last depth of a dive.
const DIVE_LAST: u64 = 1 << 14;

/// How many results a plan is judged by when nothing limits it.
const RESULTS_JUDGED: u64 = 101;

/// Returns the place of the cheapest node; `None` if there are none.
pub(crate) fn cheapest(nodes: &[&Node], stats: &dyn Statistics) -> Option<usize> {
    rank(nodes, stats, 0).order.first().copied()
}

/// Candidates in the order of their cost.
#[derive(Default)]
pub(crate) struct Ranking {
    /// The places of the nodes, the best first.
    pub order: Vec<usize>,
    /// How many keys each node would visit, counted up to `depth`; empty for a single node.
    pub keys: Vec<u64>,
    /// Where counting ended.
    pub depth: u64,
}

/// Ranks the nodes for a request that needs `limit` results (0: all).
pub(crate) fn rank(nodes: &[&Node], stats: &dyn Statistics, limit: u64) -> Ranking {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    if nodes.len() < 2 {
        return Ranking { order, ..Ranking::default() };
    }
    let mut depth = DIVE_FIRST;
    let keys = loop {
        let keys: Vec<u64> = nodes.iter().map(|node| visited(node, stats, depth)).collect();
        if depth >= DIVE_LAST || keys.iter().any(|keys| *keys < depth) {
            break keys;
        }
        depth *= 16;
    };
    let results = keys.iter().copied().min().unwrap_or(0).max(1);
    let needed = match limit {
        0 => RESULTS_JUDGED,
        limit => limit.min(RESULTS_JUDGED),
    };
    let costs: Vec<u64> = nodes
        .iter()
        .zip(&keys)
        .map(|(node, keys)| {
            let whole = is_whole(node);
            let keys = if whole { documents(node, stats).max(*keys) } else { *keys };
            match node.blocks() {
                // A sort reads everything and then steps through what it gives.
                true => keys + results.min(needed),
                false if results <= needed => keys,
                false => keys * needed / results,
            }
        })
        .collect();
    order.sort_by_key(|at| {
        let node = nodes[*at];
        (costs[*at], fetches(node), node.blocks(), *at)
    });
    Ranking { order, keys, depth }
}

/// Keys that the node's scans visit, counted up to `depth` in sum.
fn visited(node: &Node, stats: &dyn Statistics, depth: u64) -> u64 {
    let mut sum = 0;
    let mut any = false;
    node.for_each_scan(&mut |scan| {
        any = true;
        if sum < depth {
            sum += stats.keys(scan, depth - sum);
        }
    });
    if any { sum } else { documents(node, stats) }
}

/// Documents in the collection that the node reads.
fn documents(node: &Node, stats: &dyn Statistics) -> u64 {
    node.collection().map_or(0, |collection| stats.documents(collection))
}

fn is_whole(node: &Node) -> bool {
    let mut whole = true;
    node.for_each_scan(&mut |scan| whole &= scan.is_whole());
    whole
}

fn fetches(node: &Node) -> bool {
    matches!(node, Node::Fetch { .. } | Node::CollScan { .. } | Node::ClusteredScan { .. })
        || node.inputs().iter().any(fetches)
}
