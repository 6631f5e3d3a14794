//! The branches of an `$or` that are single conditions and scan the same index: one scan serves them.

use super::Way;
use crate::plan::{IndexScan, Node};
use quire_catalog::key::{Intervals, Tightness};
use quire_mql::filter::Node as Condition;

/// Merges the branches that are single leaves and scan the same index into one scan.
pub(super) fn merge_leaves(ways: Vec<(Way, Option<&Condition>)>) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::with_capacity(ways.len());
    let mut groups: Vec<MergedLeaves> = Vec::new();
    for (way, leaf) in ways {
        let scan = match (&way.node, leaf) {
            (Node::IndexScan(scan), Some(_)) => Some((scan, scan_tightness(scan))),
            (Node::Fetch { input, .. }, Some(_)) => match &**input {
                Node::IndexScan(scan) => Some((scan, Tightness::InexactFetch)),
                _ => None,
            },
            _ => None,
        };
        // Scans that other conjuncts bound too stay separate.
        let scan = scan.filter(|(scan, _)| {
            scan.keyed.is_none()
                && scan.bounds.iter().skip(1).all(Intervals::is_all)
                && !scan.keys.is_seen_in_views()
        });
        let (Some((scan, tightness)), Some(leaf)) = (scan, leaf) else {
            out.push(way.node);
            continue;
        };
        let known = groups.iter().position(|group| group.scan.index.id == scan.index.id);
        let at = known.unwrap_or_else(|| {
            groups.push(MergedLeaves::new(out.len(), scan));
            out.push(Node::Eof);
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.bounds.extend(scan.bounds.first().cloned());
        group.leaves.push(leaf.clone());
        group.tightness = group.tightness.max(tightness);
    }
    for group in groups {
        let place = group.place;
        out[place] = group.into_node();
    }
    out
}

/// The leaves of an `$or` that scan the same index.
struct MergedLeaves {
    /// The position of their scan among the branches.
    place: usize,
    /// The scan of the first leaf.
    scan: IndexScan,
    /// The bounds of each leaf in the index's first field.
    bounds: Vec<Intervals>,
    leaves: Vec<Condition>,
    tightness: Tightness,
}

impl MergedLeaves {
    fn new(place: usize, scan: &IndexScan) -> Self {
        let (bounds, leaves) = (Vec::new(), Vec::new());
        MergedLeaves { place, scan: scan.clone(), bounds, leaves, tightness: Tightness::Exact }
    }

    fn into_node(self) -> Node {
        let (mut scan, filter) = (self.scan, Condition::Or(self.leaves));
        if let Some(first) = scan.bounds.first_mut() {
            *first = Intervals::union_of(self.bounds);
        }
        match self.tightness {
            Tightness::Exact => Node::IndexScan(Box::new(scan)),
            Tightness::InexactCovered => {
                scan.filter = Some(filter);
                Node::IndexScan(Box::new(scan))
            }
            Tightness::InexactFetch => {
                scan.filter = None;
                Node::Fetch {
                    filter: Some(filter),
                    input: Box::new(Node::IndexScan(Box::new(scan))),
                }
            }
        }
    }
}

fn scan_tightness(scan: &IndexScan) -> Tightness {
    if scan.filter.is_some() { Tightness::InexactCovered } else { Tightness::Exact }
}
