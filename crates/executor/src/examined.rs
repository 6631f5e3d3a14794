//! The keys and documents that a request has examined, and its plan: for slow-query lines, the
//! profiler and `serverStatus`.

use std::sync::Arc;

use quire_document::Doc;
use quire_planner::explain::NodeStats;
use quire_planner::{Node, Plan, shape_digits, shape_hashes};

/// Returns the name of a lookup by `_id` in a plan summary.
fn express(clustered: bool) -> &'static str {
    if clustered { "EXPRESS_CLUSTERED_IXSCAN" } else { "EXPRESS_IXSCAN { _id: 1 }" }
}

/// A write that found its document by `_id`, without a plan.
#[derive(Debug, Clone, Copy)]
pub struct WriteById {
    /// True if the collection is clustered by `_id`.
    pub clustered: bool,
    /// True for an update, false for a delete.
    pub updates: bool,
}

/// The counters of an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Index keys examined.
    pub keys_examined: u64,
    /// Documents that were examined.
    pub docs_examined: u64,
    /// Bytes of the documents that were examined.
    pub bytes_read: u64,
    /// Documents returned to the client.
    pub returned: u64,
    /// True if a stage sorted.
    pub sorted: bool,
    /// True if a stage spilled to disk.
    pub used_disk: bool,
    /// An estimate of the bytes that its stages hold in memory between two batches.
    pub held_bytes: u64,
}

/// The counters and the plan of a request.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// The counters of its execution.
    pub counters: Counters,
    /// The plan; `None` for a write that found its document by `_id`, and for a missing collection.
    pub plan: Option<Arc<Plan>>,
    /// The write, if it found its document by `_id`.
    pub by_id: Option<WriteById>,
}

impl Counters {
    pub(crate) fn of(stats: &NodeStats) -> Self {
        let mut counters = Counters::default();
        counters.add_stats(stats);
        counters
    }

    fn add_stats(&mut self, stats: &NodeStats) {
        self.keys_examined += stats.keys_examined;
        self.docs_examined += stats.docs_examined;
        self.bytes_read += stats.bytes_read;
        self.sorted |= stats.bytes_sorted > 0;
        self.used_disk |= stats.spills > 0;
        self.held_bytes += stats.held_bytes;
        stats.inputs.iter().for_each(|input| self.add_stats(input));
    }

    /// Adds the counters of another execution.
    pub fn add(&mut self, other: &Counters) {
        self.keys_examined += other.keys_examined;
        self.docs_examined += other.docs_examined;
        self.bytes_read += other.bytes_read;
        self.returned += other.returned;
        self.sorted |= other.sorted;
        self.used_disk |= other.used_disk;
        self.held_bytes += other.held_bytes;
    }

    /// Returns the difference from `earlier`, which must be of the same execution.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            keys_examined: self.keys_examined.saturating_sub(earlier.keys_examined),
            docs_examined: self.docs_examined.saturating_sub(earlier.docs_examined),
            bytes_read: self.bytes_read.saturating_sub(earlier.bytes_read),
            returned: self.returned.saturating_sub(earlier.returned),
            sorted: self.sorted,
            used_disk: self.used_disk,
            held_bytes: self.held_bytes,
        }
    }
}

impl WriteById {
    fn summary(self) -> String {
        let stage = if self.updates { "EXPRESS_UPDATE" } else { "EXPRESS_DELETE" };
        format!("{},{stage}", express(self.clustered))
    }
}

impl Examined {
    /// Notes that a write looked up its document by `_id`.
    pub(crate) fn note_by_id(&mut self, write: WriteById, found: Option<Doc<'_>>) {
        self.by_id = Some(write);
        self.counters.keys_examined += u64::from(found.is_some());
        self.counters.docs_examined += u64::from(found.is_some());
        self.counters.bytes_read += found.map_or(0, |doc| doc.len() as u64);
    }

    /// Returns the plan summary for slow-query lines and the profiler, such as `IXSCAN { a: 1 }` or
    /// `COLLSCAN`. Empty without a plan.
    pub fn summary(&self) -> String {
        match &self.plan {
            Some(plan) => summary(&plan.root),
            None => self.by_id.map(WriteById::summary).unwrap_or_default(),
        }
    }

    /// Returns the hashes of the plan's shape and of its key in the plan cache, as MongoDB shows them;
    /// `None` for a lookup by `_id`, and without a plan.
    pub fn shape_hashes(&self) -> Option<(String, String)> {
        let plan = self.plan.as_ref().filter(|plan| {
            plan.filter.is_some() && !matches!(plan.cursor(), Node::IdHack { .. })
        })?;
        let (shape, key) = shape_hashes(plan);
        Some((shape_digits(shape), shape_digits(key)))
    }

    /// Returns true if the choice of the plan comes from the plan cache.
    pub fn is_from_cache(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.from_cache)
    }

    /// Returns a number that tells plans of one shape of requests apart, within a process: it is made
    /// of the kinds of the leaves and their indexes. `None` without a plan.
    pub fn mark(&self) -> Option<u64> {
        match (&self.plan, self.by_id) {
            (Some(plan), _) => Some(mark(&plan.root, 1)),
            (None, Some(write)) => Some(u64::from(write.clustered)),
            (None, None) => None,
        }
    }

    /// Returns the name of the index that the plan reads first; empty without one.
    pub fn index_name(&self) -> &str {
        match (&self.plan, self.by_id) {
            (Some(plan), _) => first_index(&plan.root).unwrap_or_default(),
            (None, Some(write)) if !write.clustered => "_id_",
            (None, _) => "",
        }
    }

    /// Returns true if the plan reads the whole collection.
    pub fn scans_collection(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| has_collection_scan(&plan.root))
    }
}

fn mark(node: &Node, so_far: u64) -> u64 {
    let own = match node {
        Node::IndexScan(scan) | Node::CountScan(scan) | Node::DistinctScan { scan, .. } => {
            u64::from(scan.index.id.0)
        }
        _ => 0,
    };
    match node.inputs() {
        [] => {
            let mixed = so_far ^ own ^ node.name().as_ptr() as u64;
            mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        }
        inputs => inputs.iter().fold(so_far, |so_far, input| mark(input, so_far)),
    }
}

fn first_index(node: &Node) -> Option<&str> {
    match node {
        Node::IndexScan(scan) | Node::CountScan(scan) | Node::DistinctScan { scan, .. } => {
            Some(&scan.index.name)
        }
        Node::IdHack { collection, .. } if collection.clustered_index().is_none() => Some("_id_"),
        Node::IdLookups(found) if !found.scan.index.is_clustered() => Some(&found.scan.index.name),
        other => other.inputs().iter().find_map(first_index),
    }
}

fn has_collection_scan(node: &Node) -> bool {
    node.scans_collection() || node.inputs().iter().any(has_collection_scan)
}

fn summary(node: &Node) -> String {
    match node {
        Node::IndexScan(scan) | Node::CountScan(scan) | Node::DistinctScan { scan, .. } => {
            format!("{} {}", node.name(), quire_catalog::debug_doc(scan.index.key()))
        }
        Node::IdHack { collection, .. } => {
            express(collection.clustered_index().is_some()).to_owned()
        }
        other if other.inputs().is_empty() => other.name().to_owned(),
        other => {
            let mut parts: Vec<String> = other.inputs().iter().map(summary).collect();
            parts.dedup();
            parts.join(", ")
        }
    }
}
