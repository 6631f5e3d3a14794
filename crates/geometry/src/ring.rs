//! A ring: a closed line that does not touch itself, and the part of the sphere to its left.

use quire_error::Result;
use s2::point::{Point, ordered_ccw};
use s2::predicates::{Direction, robust_sign};

use crate::edges::{Edge, Edges, RELATION_UNITS};
use crate::position::{angle, are_opposite};
use crate::work::{Fault, Work, each, invalid};

/// A ring of at least three vertices. The first one is not repeated at the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ring {
    /// An edge from each vertex to the next one, and from the last one to the first one.
    edges: Edges,
    /// True if the point `Point::origin` is inside.
    has_origin: bool,
    /// A cap around the ring and its inside; `None` if there is none smaller than a half sphere.
    bound: Option<(Point, f64)>,
}

impl Ring {
    /// Returns the ring of these vertices, whose inside is to the left. Equal neighbours count once.
    pub fn new(mut vertices: Vec<Point>, work: Work<'_>) -> Result<Self, Fault> {
        vertices.dedup();
        if vertices.len() > 1 && vertices.first() == vertices.last() {
            vertices.pop();
        }
        if vertices.len() < 3 {
            return invalid("Loop must have at least 3 different vertices");
        }
        // For the sorted list, whose comparisons are a few nanoseconds, and the lists of edges.
        each(vertices.len(), RELATION_UNITS, work)?;
        let mut sorted: Vec<[u64; 3]> = vertices.iter().map(bits).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return invalid("Duplicate vertices");
        }
        let edges = edges_between(&vertices);
        if edges.iter().any(are_opposite) {
            return invalid("Edge between opposite points of the sphere");
        }
        if edges.cross_themselves(work)? {
            return invalid("Edges cross");
        }
        Ok(Ring::of_edges(edges, work)?)
    }

    /// Returns the ring with its inside and outside exchanged if its inside is more than half of the
    /// sphere.
    pub fn normalized(mut self, work: Work<'_>) -> Result<Self> {
        if self.turning(work)? < 0.0 {
            let reversed: Vec<Point> = self.edges.iter().rev().map(|(vertex, _)| *vertex).collect();
            self = Ring::of_edges(edges_between(&reversed), work)?;
        }
        self.bound = self.bounding_cap();
        Ok(self)
    }

    /// Returns the ring of these edges. Determines whether the origin is inside: vertex 1 tells,
    /// beside which inside and outside are known. The method is that of S2's loops.
    fn of_edges(edges: Edges, work: Work<'_>) -> Result<Self> {
        let mut ring = Ring { edges, has_origin: false, bound: None };
        let first: Vec<Point> = ring.vertices().take(3).copied().collect();
        if let [first, second, third] = &first[..] {
            let is_inside = ordered_ccw(&second.ortho(), first, third, second);
            ring.has_origin = is_inside != ring.contains(second, work)?;
        }
        Ok(ring)
    }

    /// Returns the sum of the angles by which the ring turns left, in radians: positive if its inside
    /// is less than half of the sphere.
    fn turning(&self, work: Work<'_>) -> Result<f64> {
        each(self.edges.len(), RELATION_UNITS, work)?;
        let next = self.edges.iter().cycle().skip(1);
        Ok(self.edges.iter().zip(next).map(|((a, b), (_, c))| turn(a, b, c)).sum())
    }

    fn bounding_cap(&self) -> Option<(Point, f64)> {
        let sum = self.vertices().fold(Point::from_coords(0.0, 0.0, 0.0).0, |sum, v| sum + v.0);
        if sum.norm() < 1e-9 {
            return None;
        }
        let center = Point(sum.normalize());
        let farthest = self.vertices().map(|v| angle(&center, v)).fold(0.0, f64::max);
        (farthest < 1.5).then_some((center, farthest + 1e-8))
    }

    /// Returns true if the point is inside. A point on an edge is inside of exactly one of the rings
    /// to its two sides.
    pub fn contains(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        if self.is_beyond_bound(point) {
            return Ok(false);
        }
        let crossings = self.edges.crossings(&Point::origin(), point, work)?;
        Ok(self.has_origin != (crossings % 2 == 1))
    }

    /// Returns true if the point is on an edge.
    pub fn is_on_edge(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        Ok(!self.is_beyond_bound(point) && self.edges.has(point, work)?)
    }

    fn is_beyond_bound(&self, point: &Point) -> bool {
        matches!(&self.bound, Some((center, radius)) if angle(center, point) > *radius)
    }

    /// Returns true if the caps around the rings are known and have no point in common.
    pub fn is_apart_from(&self, other: &Ring) -> bool {
        let (Some((one, radius)), Some((center, reach))) = (&self.bound, &other.bound) else {
            return false;
        };
        angle(one, center) > radius + reach
    }

    /// Returns the angle between a point and the nearest edge, in radians.
    pub fn distance(&self, point: &Point, work: Work<'_>) -> Result<f64> {
        self.edges.distance(point, work)
    }

    pub fn vertices(&self) -> impl Iterator<Item = &Point> {
        self.edges.iter().map(|(vertex, _)| vertex)
    }

    /// Returns the cap around the ring and its inside, if it is known: its center and its radius in
    /// radians.
    pub fn bound(&self) -> Option<(Point, f64)> {
        self.bound
    }

    pub fn edges(&self) -> &Edges {
        &self.edges
    }
}

fn edges_between(vertices: &[Point]) -> Edges {
    let next = vertices.iter().cycle().skip(1);
    Edges::new(vertices.iter().zip(next).map(|(a, b)| -> Edge { (*a, *b) }).collect())
}

fn bits(point: &Point) -> [u64; 3] {
    // 0.0 equals -0.0.
    [point.0.x, point.0.y, point.0.z].map(|coordinate| (coordinate + 0.0).to_bits())
}

/// Returns the angle by which the way from `a` over `b` to `c` turns left at `b`, in radians.
fn turn(a: &Point, b: &Point, c: &Point) -> f64 {
    let (before, after) = (a.0.cross(&b.0), b.0.cross(&c.0));
    let turned = before.angle(&after).rad();
    match robust_sign(a, b, c) {
        Direction::CounterClockwise => turned,
        _ => -turned,
    }
}
