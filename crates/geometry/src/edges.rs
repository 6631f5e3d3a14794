//! Edges on the sphere: the shortest ways between two points. Whether sets of edges cross or touch
//! each other is found by a sweep along one axis, so that long rings do not compare all pairs.

use s2::edge_crossings::{Crossing, crossing_sign};
use s2::edgeutil::distance_from_segment;
use s2::point::Point;

use crate::position::ON_EDGE;

/// The two ends of an edge.
pub(crate) type Edge = (Point, Point);

/// The smallest box around an edge, a little enlarged.
struct Extent {
    low: [f64; 3],
    high: [f64; 3],
}

impl Extent {
    fn of((a, b): &Edge) -> Self {
        // The arc rises above its chord by at most 1 - cos(angle / 2), that is chord² / 8 and less
        // than chord² / 4 for arcs up to a half circle.
        let chord = (a.0 - b.0).norm2();
        let rise = (chord / 4.0).min(1.0) + 2.0 * ON_EDGE;
        let (a, b) = ([a.0.x, a.0.y, a.0.z], [b.0.x, b.0.y, b.0.z]);
        let (mut low, mut high) = ([0.0; 3], [0.0; 3]);
        for axis in 0..3 {
            low[axis] = a[axis].min(b[axis]) - rise;
            high[axis] = a[axis].max(b[axis]) + rise;
        }
        Extent { low, high }
    }

    fn meets(&self, other: &Extent) -> bool {
        (0..3).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }
}

/// Returns true if `relate` holds for one edge of `first` and one of `second`, of those that are near
/// each other.
pub(crate) fn any_pair(
    first: &[Edge],
    second: &[Edge],
    mut relate: impl FnMut(&Edge, &Edge) -> bool,
) -> bool {
    let mut all: Vec<(Extent, bool, &Edge)> = Vec::with_capacity(first.len() + second.len());
    all.extend(first.iter().map(|edge| (Extent::of(edge), true, edge)));
    all.extend(second.iter().map(|edge| (Extent::of(edge), false, edge)));
    sweep(&mut all, |one, other| match (one.1, other.1) {
        (true, false) => relate(one.2, other.2),
        (false, true) => relate(other.2, one.2),
        _ => false,
    })
}

/// Returns true if two edges of a ring cross each other. The ring has no vertex twice.
pub(crate) fn crosses_itself(edges: &[Edge]) -> bool {
    let mut all: Vec<(Extent, bool, &Edge)> =
        edges.iter().map(|edge| (Extent::of(edge), true, edge)).collect();
    sweep(&mut all, |one, other| crosses(one.2, other.2))
}

/// Returns the axis along which the fewest edges overlap: the one on which the widths of all edges add
/// up to the least part of the width of the whole.
fn best_axis(all: &[(Extent, bool, &Edge)]) -> usize {
    let overlap = |axis: usize| {
        let low = all.iter().map(|edge| edge.0.low[axis]).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(|edge| edge.0.high[axis]).fold(f64::NEG_INFINITY, f64::max);
        let widths: f64 = all.iter().map(|edge| edge.0.high[axis] - edge.0.low[axis]).sum();
        // A hair for each edge, so that an axis without any width is the worst one.
        (widths + 1e-12 * all.len() as f64) / (high - low + 1e-300)
    };
    [0, 1, 2]
        .into_iter()
        .min_by(|one, other| overlap(*one).total_cmp(&overlap(*other)))
        .unwrap_or(0)
}

/// Calls `relate` for the pairs whose boxes meet, until it returns true.
fn sweep<'e>(
    all: &mut [(Extent, bool, &'e Edge)],
    mut relate: impl FnMut(&(Extent, bool, &'e Edge), &(Extent, bool, &'e Edge)) -> bool,
) -> bool {
    let axis = best_axis(all);
    all.sort_by(|one, other| one.0.low[axis].total_cmp(&other.0.low[axis]));
    let mut open: Vec<usize> = Vec::new();
    for (at, edge) in all.iter().enumerate() {
        open.retain(|before| all[*before].0.high[axis] >= edge.0.low[axis]);
        if open.iter().any(|before| all[*before].0.meets(&edge.0) && relate(&all[*before], edge)) {
            return true;
        }
        open.push(at);
    }
    false
}

/// Returns true if two edges cross at a point inside both.
pub(crate) fn crosses((a, b): &Edge, (c, d): &Edge) -> bool {
    crossing_sign(a, b, c, d) == Crossing::Cross
}

/// Returns true if two edges have a point in common.
pub(crate) fn touches(one: &Edge, other: &Edge) -> bool {
    crossing_sign(&one.0, &one.1, &other.0, &other.1) != Crossing::DoNotCross
        || is_on(&one.0, other)
        || is_on(&one.1, other)
        || is_on(&other.0, one)
        || is_on(&other.1, one)
}

/// Returns true if a point is on an edge.
pub(crate) fn is_on(point: &Point, edge: &Edge) -> bool {
    distance(point, edge) <= ON_EDGE
}

/// Returns the angle between a point and the nearest point of an edge, in radians.
pub(crate) fn distance(point: &Point, (a, b): &Edge) -> f64 {
    distance_from_segment(point, a, b).rad()
}

/// Returns the point in the middle of an edge.
pub(crate) fn middle((a, b): &Edge) -> Point {
    Point((a.0 + b.0).normalize())
}
