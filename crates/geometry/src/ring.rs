//! A ring: a closed line that does not touch itself, and the part of the sphere to its left.

use s2::edge_crossings::edge_or_vertex_crossing;
use s2::point::{Point, ordered_ccw};
use s2::predicates::{Direction, robust_sign};

use crate::edges::{Edge, crosses_itself, distance, is_on};
use crate::position::angle;

/// A ring of at least three vertices. The first one is not repeated at the end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ring {
    vertices: Vec<Point>,
    /// True if the point `Point::origin` is inside.
    has_origin: bool,
    /// A cap around the ring and its inside; `None` if there is none smaller than a half sphere.
    bound: Option<(Point, f64)>,
}

impl Ring {
    /// Returns the ring of these vertices, whose inside is to the left. Equal neighbours count once.
    ///
    /// # Errors
    /// The fault, for a message.
    pub fn new(mut vertices: Vec<Point>) -> Result<Self, &'static str> {
        vertices.dedup();
        if vertices.len() > 1 && vertices.first() == vertices.last() {
            vertices.pop();
        }
        if vertices.len() < 3 {
            return Err("Loop must have at least 3 different vertices");
        }
        let mut sorted: Vec<[u64; 3]> = vertices.iter().map(bits).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("Duplicate vertices");
        }
        let mut ring = Ring { vertices, has_origin: false, bound: None };
        let edges = ring.edges();
        if edges.iter().any(|(a, b)| a.0.dot(&b.0) < -1.0 + 1e-15) {
            return Err("Edge between opposite points of the sphere");
        }
        if crosses_itself(&edges) {
            return Err("Edges cross");
        }
        ring.find_origin();
        Ok(ring)
    }

    /// Returns the ring with its inside and outside exchanged if its inside is more than half of the
    /// sphere.
    pub fn normalized(mut self) -> Self {
        if self.turning() < 0.0 {
            self.vertices.reverse();
            self.find_origin();
        }
        self.bound = self.bounding_cap();
        self
    }

    /// Determines whether the origin is inside: the vertex 1 tells, beside which inside and outside are
    /// known. The method is that of S2's loops.
    fn find_origin(&mut self) {
        self.has_origin = false;
        let [first, second, third, ..] = &self.vertices[..] else { return };
        let is_inside = ordered_ccw(&second.ortho(), first, third, second);
        self.has_origin = is_inside != self.contains(second);
    }

    /// Returns the sum of the angles by which the ring turns left, in radians: positive if its inside
    /// is less than half of the sphere.
    fn turning(&self) -> f64 {
        let count = self.vertices.len();
        let at = |number: usize| &self.vertices[number % count];
        (0..count).map(|number| turn(at(number), at(number + 1), at(number + 2))).sum()
    }

    fn bounding_cap(&self) -> Option<(Point, f64)> {
        let sum =
            self.vertices.iter().fold(Point::from_coords(0.0, 0.0, 0.0).0, |sum, v| sum + v.0);
        if sum.norm() < 1e-9 {
            return None;
        }
        let center = Point(sum.normalize());
        let farthest = self.vertices.iter().map(|v| angle(&center, v)).fold(0.0, f64::max);
        (farthest < 1.5).then_some((center, farthest + 1e-8))
    }

    /// Returns true if the point is inside. A point on an edge is inside of exactly one of the rings
    /// to its two sides.
    pub fn contains(&self, point: &Point) -> bool {
        if let Some((center, radius)) = &self.bound
            && angle(center, point) > *radius
        {
            return false;
        }
        let origin = Point::origin();
        let crossings =
            self.edges_iter().filter(|(a, b)| edge_or_vertex_crossing(&origin, point, a, b));
        self.has_origin != (crossings.count() % 2 == 1)
    }

    /// Returns true if the point is on an edge.
    pub fn is_on_edge(&self, point: &Point) -> bool {
        if let Some((center, radius)) = &self.bound
            && angle(center, point) > *radius
        {
            return false;
        }
        self.edges_iter().any(|edge| is_on(point, &edge))
    }

    /// Returns the angle between a point and the nearest edge, in radians.
    pub fn distance(&self, point: &Point) -> f64 {
        self.edges_iter().map(|edge| distance(point, &edge)).fold(f64::INFINITY, f64::min)
    }

    pub fn vertices(&self) -> &[Point] {
        &self.vertices
    }

    /// Returns the cap around the ring and its inside, if it is known: its center and its radius in
    /// radians.
    pub fn bound(&self) -> Option<(Point, f64)> {
        self.bound
    }

    pub fn edges(&self) -> Vec<Edge> {
        self.edges_iter().collect()
    }

    fn edges_iter(&self) -> impl Iterator<Item = Edge> + '_ {
        let next = self.vertices.iter().cycle().skip(1);
        self.vertices.iter().zip(next).map(|(a, b)| (*a, *b))
    }
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
