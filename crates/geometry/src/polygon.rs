//! A polygon: the inside of a ring, without the insides of other rings, its holes.

use s2::point::Point;

use crate::edges::{Edge, any_pair, crosses, middle, touches};
use crate::line::Line;
use crate::position::ON_EDGE;
use crate::ring::Ring;

/// A polygon. Its edges belong to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Polygon {
    outer: Ring,
    holes: Vec<Ring>,
    /// True if the inside is to the left of the ring, also if that is more than half of the sphere.
    is_big: bool,
}

impl Polygon {
    /// Returns the polygon of an outer ring and its holes.
    ///
    /// # Errors
    /// The fault, for a message.
    pub fn new(outer: Ring, holes: Vec<Ring>) -> Result<Self, &'static str> {
        let outer_edges = outer.edges();
        for hole in &holes {
            let is_in = |vertex: &Point| outer.contains(vertex) && !outer.is_on_edge(vertex);
            if !hole.vertices().iter().all(is_in) {
                return Err(
                    "Secondary loops not contained by first exterior loop - secondary loops must be holes",
                );
            }
            if any_pair(&outer_edges, &hole.edges(), crosses) {
                return Err("Polygon isn't valid: the edges of two loops cross");
            }
        }
        let edges: Vec<Vec<Edge>> = holes.iter().map(Ring::edges).collect();
        for (at, one) in edges.iter().enumerate() {
            if edges.iter().skip(at + 1).any(|other| any_pair(one, other, crosses)) {
                return Err("Polygon isn't valid: the edges of two loops cross");
            }
        }
        Ok(Polygon { outer, holes, is_big: false })
    }

    /// Returns the polygon of one ring, which may contain more than half of the sphere.
    pub fn big(outer: Ring) -> Self {
        Polygon { outer, holes: Vec::new(), is_big: true }
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub fn is_big(&self) -> bool {
        self.is_big
    }

    pub fn outer(&self) -> &Ring {
        &self.outer
    }

    pub fn edges(&self) -> Vec<Edge> {
        self.rings().flat_map(Ring::edges).collect()
    }

    pub fn vertices(&self) -> impl Iterator<Item = &Point> {
        self.rings().flat_map(Ring::vertices)
    }

    /// Returns true if the point is inside; a point on an edge may be.
    fn has_inside(&self, point: &Point) -> bool {
        self.outer.contains(point) && !self.holes.iter().any(|hole| hole.contains(point))
    }

    fn is_on_edge(&self, point: &Point) -> bool {
        self.rings().any(|ring| ring.is_on_edge(point))
    }

    /// Returns true if the point is inside or on an edge.
    pub fn has(&self, point: &Point) -> bool {
        self.has_inside(point) || self.is_on_edge(point)
    }

    /// Returns the angle between a point and the nearest point of the polygon, in radians; 0 inside.
    pub fn distance(&self, point: &Point) -> f64 {
        if self.has_inside(point) {
            return 0.0;
        }
        let nearest = self.rings().map(|ring| ring.distance(point)).fold(f64::INFINITY, f64::min);
        if nearest <= ON_EDGE { 0.0 } else { nearest }
    }

    /// Returns true if all points of the edges are inside or on an edge. Edges that do not cross an
    /// edge of the polygon change sides only where they touch one, so their middles tell.
    fn has_edges(&self, edges: &[Edge]) -> bool {
        edges.iter().all(|edge| self.has(&edge.0) && self.has(&edge.1) && self.has(&middle(edge)))
            && !any_pair(&self.edges(), edges, crosses)
    }

    /// Returns true if the line is in the polygon.
    pub fn has_line(&self, line: &Line) -> bool {
        self.has_edges(line.edges())
    }

    /// Returns true if the other polygon is in this one.
    pub fn has_polygon(&self, other: &Polygon) -> bool {
        // A hole of this polygon may be in the other one only where that has a hole too.
        let is_filled = |hole: &Ring| {
            hole.vertices().iter().any(|v| other.has_inside(v) && !other.is_on_edge(v))
                || hole
                    .edges()
                    .iter()
                    .map(middle)
                    .any(|m| other.has_inside(&m) && !other.is_on_edge(&m))
        };
        // The other one may be everything outside of this polygon's ring.
        let is_around = |ring: &Ring| {
            let vertex = ring.vertices().first();
            vertex.is_some_and(|vertex| other.has_inside(vertex) && !other.is_on_edge(vertex))
        };
        self.has_edges(&other.edges())
            && !self.holes.iter().any(is_filled)
            && !is_around(&self.outer)
    }

    /// Returns true if the line and the polygon have a point in common.
    pub fn meets_line(&self, line: &Line) -> bool {
        line.points().any(|point| self.has(point)) || any_pair(&self.edges(), line.edges(), touches)
    }

    /// Returns true if the insides of the polygons have a point in common. Polygons that share only
    /// edges or corners do not meet, as in MongoDB.
    pub fn meets_polygon(&self, other: &Polygon) -> bool {
        self.has_strictly(other)
            || other.has_strictly(self)
            || any_pair(&self.edges(), &other.edges(), crosses)
            || self.has_polygon(other)
            || other.has_polygon(self)
    }

    /// Returns true if a vertex or the middle of an edge of the other polygon is inside, not on an edge.
    fn has_strictly(&self, other: &Polygon) -> bool {
        let is_in = |point: &Point| self.has_inside(point) && !self.is_on_edge(point);
        other.vertices().any(is_in) || other.edges().iter().any(|edge| is_in(&middle(edge)))
    }
}
