//! Which orders an index scan provides, and how scans of points are split so that they provide an
//! order.

use crate::plan::{IndexScan, Node};
use quire_catalog::MultikeyPaths;
use quire_catalog::key::Intervals;
use quire_mql::collation::Collation;
use quire_mql::sort::{Direction, SortBy, SortPattern};
use std::sync::Arc;

/// The largest number of scans that one scan is split into.
const SCANS_MAX: usize = 200;

/// One part of a sort: a path, and whether it is descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SortPart {
    pub path: String,
    pub descending: bool,
}

/// Returns the parts of a sort pattern; `None` if one of them is not a direction (`$meta`).
pub(crate) fn parts(sort: &SortPattern) -> Option<Vec<SortPart>> {
    let part = |part: &quire_mql::sort::SortPart| match &part.by {
        SortBy::Field(path) => {
            let descending = part.direction == Direction::Descending;
            Some(SortPart { path: path.as_str().to_owned(), descending })
        }
        SortBy::Meta(_) => None,
    };
    sort.parts().iter().map(part).collect()
}

/// Returns the scan direction that provides the order, `Some(true)` for backward; `None` if neither
/// does.
pub(crate) fn direction(
    scan: &IndexScan,
    sort: &[SortPart],
    collation: Option<&Collation>,
) -> Option<bool> {
    let everything = Intervals::all();
    let gives_order = |field: usize| {
        let bounds = if scan.range.is_some() { &everything } else { &scan.bounds[field] };
        scan.keys.gives_order(field, bounds, collation)
    };
    let constant = |path: &str| {
        scan.field(path).is_some_and(|field| {
            scan.range.is_none()
                && scan.bounds[field].is_point()
                && !scan.multikey.field(field)
                && gives_order(field)
        })
    };
    let mut wanted = sort.iter().filter(|part| !constant(&part.path)).peekable();
    let mut backward: Option<bool> = None;
    for (at, field) in scan.keys.fields().iter().enumerate() {
        let Some(part) = wanted.peek() else { break };
        if field.path == part.path {
            if !visits_first_key(scan, at) || !gives_order(at) {
                return None;
            }
            if *backward.get_or_insert(field.descending != part.descending)
                != (field.descending != part.descending)
            {
                return None;
            }
            wanted.next();
        } else if scan.range.is_some() || !scan.bounds[at].is_point() {
            return None;
        }
    }
    wanted.peek().is_none().then(|| backward.unwrap_or(scan.backward))
}

/// Returns true if the first key of a document that the scan visits is the one by which a sort orders
/// the document, as far as `field` is concerned. A sort orders by the smallest or largest of all
/// elements of an array, so no bounds may leave out keys of the array that the field belongs to:
/// neither those of the field, nor those of another field whose path leads through that array.
fn visits_first_key(scan: &IndexScan, field: usize) -> bool {
    if !scan.multikey.field(field) {
        return true;
    }
    let Some(path) = scan.keys.fields().get(field).map(|field| &field.path) else { return false };
    let restricted = |other: usize| {
        scan.range.is_some() || scan.bounds.get(other).is_none_or(|bounds| !bounds.is_all())
    };
    let shares_array = |other: &str, bits: u64| {
        let shared = path.split('.').zip(other.split('.')).take_while(|(a, b)| a == b).count();
        let components = (0..shared).fold(0, |all, at| all | MultikeyPaths::bit(at));
        bits & components != 0
    };
    let own = scan.multikey.0.get(field).copied().unwrap_or(0);
    scan.keys.fields().iter().enumerate().all(|(other, key)| {
        let bits = own | scan.multikey.0.get(other).copied().unwrap_or(0);
        !restricted(other) || !shares_array(&key.path, bits)
    })
}

/// Returns the node in that order without a blocking sort, if that is possible.
pub(crate) fn ordered(
    node: &Node,
    sort: &[SortPart],
    pattern: &Arc<SortPattern>,
    collation: Option<&Collation>,
) -> Option<Node> {
    match node {
        Node::IndexScan(scan) => {
            if let Some(backward) = direction(scan, sort, collation) {
                let mut scan = scan.clone();
                scan.backward = backward;
                return Some(Node::IndexScan(scan));
            }
            let scans = explode(scan, sort, collation)?;
            let inputs = scans.into_iter().map(|scan| mergeable(scan, sort)).collect();
            Some(Node::SortMerge { pattern: Arc::clone(pattern), inputs })
        }
        Node::ClusteredScan { scan, filter } => {
            let backward = direction(scan, sort, collation)?;
            let scan = Box::new(IndexScan { backward, ..IndexScan::clone(scan) });
            Some(Node::ClusteredScan { scan, filter: filter.clone() })
        }
        Node::Fetch { filter, input } => {
            let input = Box::new(ordered(input, sort, pattern, collation)?);
            Some(Node::Fetch { filter: filter.clone(), input })
        }
        Node::Or { inputs } => {
            let mut merged = Vec::new();
            for input in inputs {
                match ordered(input, sort, pattern, collation)? {
                    Node::SortMerge { inputs, .. } => merged.extend(inputs),
                    Node::IndexScan(scan) => merged.push(mergeable(*scan, sort)),
                    other => merged.push(other),
                }
            }
            (merged.len() <= SCANS_MAX)
                .then(|| Node::SortMerge { pattern: Arc::clone(pattern), inputs: merged })
        }
        Node::Subplan { input } => {
            Some(Node::Subplan { input: Box::new(ordered(input, sort, pattern, collation)?) })
        }
        _ => None,
    }
}

/// Returns the scan as the input of a merge, which compares values: with documents if its keys
/// contain sort keys instead of strings.
fn mergeable(scan: IndexScan, sort: &[SortPart]) -> Node {
    let gives = |part: &SortPart| scan.field(&part.path).is_none() || scan.gives(&part.path);
    let by_keys = scan.keys.collation().is_none() || sort.iter().all(gives);
    let node = Node::IndexScan(Box::new(scan));
    if by_keys { node } else { node.fetched() }
}

/// Splits a scan whose leading fields are points into one scan for each combination of them, so
/// that each provides the order of the following fields.
fn explode(
    scan: &IndexScan,
    sort: &[SortPart],
    collation: Option<&Collation>,
) -> Option<Vec<IndexScan>> {
    if scan.range.is_some() {
        return None;
    }
    let start = scan.bounds.iter().take_while(|intervals| intervals.is_points()).count();
    let prefix = scan.bounds.get(..start)?;
    let following = scan.keys.fields().get(start..)?;
    let gives = sort.len() <= following.len()
        && sort.iter().zip(following).enumerate().all(|(at, (part, field))| {
            part.path == field.path
                && scan.keys.gives_order(start + at, &scan.bounds[start + at], collation)
                && !scan.multikey.field(start + at)
        });
    if !gives {
        return None;
    }
    let count = prefix.iter().try_fold(1usize, |all, list| all.checked_mul(list.0.len()))?;
    if !(2..=SCANS_MAX).contains(&count) {
        return None;
    }
    let mut scans = Vec::with_capacity(count);
    for number in 0..count {
        let mut one = scan.clone();
        let mut rest = number;
        for (field, list) in prefix.iter().enumerate() {
            let point = list.0.get(rest % list.0.len())?;
            rest /= list.0.len();
            one.bounds[field] = Intervals::from(vec![point.clone()]);
        }
        one.backward = direction(&one, sort, collation)?;
        scans.push(one);
    }
    if scans.first().is_some_and(|scan| scan.is_reversed(0)) {
        reverse_within(&mut scans, prefix);
    }
    Some(scans)
}

/// Reverses the order of the scans within `prefix` for a field that is scanned in descending order.
fn reverse_within(scans: &mut Vec<IndexScan>, prefix: &[Intervals]) {
    let lengths: Vec<usize> = prefix.iter().map(|list| list.0.len()).collect();
    let mut order: Vec<usize> = Vec::with_capacity(scans.len());
    for number in 0..scans.len() {
        let (mut rest, mut at, mut stride) = (number, 0, 1);
        for length in &lengths {
            at += (length - 1 - rest % length) * stride;
            rest /= length;
            stride *= length;
        }
        order.push(at);
    }
    *scans = order.into_iter().filter_map(|at| scans.get(at).cloned()).collect();
}
