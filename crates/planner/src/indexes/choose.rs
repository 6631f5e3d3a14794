//! Chooses among candidates by the number of keys that each would read. The same data give the same
//! choice: among equal plans the one without a fetch is best, then the one without a sort, then the
//! first.

use crate::plan::{IndexScan, Node};
use quire_catalog::{Collection, QuerySettings, ResolvedView};
use quire_error::Result;
use std::sync::Arc;

/// Facts about the data. The executor measures them on the read view; tests use a fixed table.
pub trait Statistics {
    /// Returns the collection of a namespace, `database.collection`; `None` if there is none.
    ///
    /// # Errors
    /// InvalidNamespace if it is not a valid namespace.
    fn collection(&self, namespace: &str) -> Result<Option<Arc<Collection>>>;

    /// Returns the collection and the stages of a view; `None` if no view has the name.
    ///
    /// # Errors
    /// 165 ViewDepthLimitExceeded, 182 InvalidViewDefinition.
    fn view(&self, namespace: &str) -> Result<Option<ResolvedView>> {
        let _ = namespace;
        Ok(None)
    }

    /// Fails if the request must stop. Long planning steps call it.
    ///
    /// # Errors
    /// The interrupt's error.
    fn check_interrupt(&self) -> Result<()> {
        Ok(())
    }

    /// Counts a query that is planned.
    fn note_query(&self) {}

    /// Returns the query settings of the request.
    fn query_settings(&self) -> Option<&Arc<QuerySettings>> {
        None
    }

    /// Returns true if the plan may come from the plan cache, or go into it: not for an explain.
    fn uses_plan_cache(&self) -> bool {
        false
    }

    /// Returns the time of the request in milliseconds since 1970.
    fn now_ms(&self) -> i64 {
        0
    }

    /// Returns the number of documents in a collection.
    fn documents(&self, collection: &Collection) -> u64;

    /// Returns how many keys the scan would visit, counted up to `limit` (an index dive). The keys of a
    /// join in its bounds are estimated.
    fn keys(&self, scan: &IndexScan, limit: u64) -> u64;

    /// Returns true if a time-series collection has buckets that the request reads.
    ///
    /// # Errors
    /// The errors of reading.
    fn has_buckets(&self, _: &Arc<Collection>) -> Result<bool> {
        Ok(false)
    }

    /// Returns true if drawing `size` random documents costs less than reading all documents.
    fn draws(&self, collection: &Collection, size: u64) -> bool;
}

/// The first depth of a dive. While no candidate ends within the depth, it grows.
const DIVE_FIRST: u64 = 128;
/// Last depth of a dive.
const DIVE_LAST: u64 = 1 << 14;

/// The most intervals of a scan that are made, or prepared for a dive, without a check of the
/// interrupt.
pub(crate) const UNCOUNTED_INTERVALS_MAX: usize = 64;

/// The number of results by which a plan without a limit is judged.
const RESULTS_JUDGED: u64 = 101;

/// Returns the position of the cheapest node; `None` if there are none.
///
/// # Errors
/// The interrupt's error.
pub(crate) fn cheapest(nodes: &[&Node], stats: &dyn Statistics) -> Result<Option<usize>> {
    Ok(rank(nodes, stats, 0)?.order.first().copied())
}

/// The candidates in the order of their cost.
#[derive(Default)]
pub(crate) struct Ranking {
    /// The positions of the nodes, the best first.
    pub order: Vec<usize>,
    /// How many keys each node would visit, counted up to `depth`; empty for a single node.
    pub keys: Vec<u64>,
    /// The number up to which keys were counted.
    pub depth: u64,
}

/// Ranks the nodes for a request that needs `limit` results (0: all).
///
/// # Errors
/// The interrupt's error.
pub(crate) fn rank(nodes: &[&Node], stats: &dyn Statistics, limit: u64) -> Result<Ranking> {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    if nodes.len() < 2 {
        return Ok(Ranking { order, ..Ranking::default() });
    }
    let mut depth = DIVE_FIRST;
    let keys = loop {
        let keys: Vec<u64> =
            nodes.iter().map(|node| visited(node, stats, depth)).collect::<Result<_>>()?;
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
                // A sort reads all of its input and then returns rows one by one.
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
    Ok(Ranking { order, keys, depth })
}

/// Returns how many keys the node's scans visit, counted up to `depth` in total.
///
/// # Errors
/// The interrupt's error.
pub(crate) fn visited(node: &Node, stats: &dyn Statistics, depth: u64) -> Result<u64> {
    let mut is_large = false;
    node.for_each_scan(&mut |scan| {
        is_large |= scan.bounds.iter().any(|field| field.0.len() > UNCOUNTED_INTERVALS_MAX);
    });
    if is_large {
        stats.check_interrupt()?;
    }
    let mut sum = 0;
    let mut any = false;
    node.for_each_scan(&mut |scan| {
        any = true;
        if sum < depth {
            sum += stats.keys(scan, depth - sum);
        }
    });
    if is_large {
        // An interrupted dive has counted nothing.
        stats.check_interrupt()?;
    }
    Ok(if any { sum } else { documents(node, stats) })
}

/// Returns the number of documents in the collection that the node reads.
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
