//! A polygon: the inside of a ring, without the insides of other rings, its holes.

use quire_error::Result;
use s2::point::Point;

use crate::edges::{Edge, Edges, crosses, middle, touches};
use crate::line::Line;
use crate::position::ON_EDGE;
use crate::ring::Ring;
use crate::work::{Fault, Work, each, invalid};

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
    pub fn new(outer: Ring, holes: Vec<Ring>, work: Work<'_>) -> Result<Self, Fault> {
        const CROSSING: &str = "Polygon isn't valid: the edges of two loops cross";
        for hole in &holes {
            for edge in hole.edges().iter() {
                // A hole may touch the ring at a corner of both, but not along an edge.
                let (vertex, next) = (&(edge.0, edge.0), &edge.1);
                let is_in = outer.contains(&edge.0, work)? && !outer.is_on_edge(&edge.0, work)?;
                if !is_in && !outer.edges().any(vertex, work, |own, _| own.0 == edge.0)? {
                    return invalid(
                        "Secondary loops not contained by first exterior loop - secondary loops must be holes",
                    );
                }
                let doubled = |own: &Edge, _: &Edge| {
                    (own.0, own.1) == (edge.0, *next) || (own.1, own.0) == (edge.0, *next)
                };
                if outer.edges().any(edge, work, doubled)? {
                    return invalid("Polygon isn't valid: Duplicate edge");
                }
            }
            if outer.edges().any_pair(hole.edges(), work, crosses)? {
                return invalid(CROSSING);
            }
        }
        for (at, one) in holes.iter().enumerate() {
            each(holes.len() - at, 4, work)?;
            for other in holes.iter().skip(at + 1).filter(|other| !one.is_apart_from(other)) {
                if one.edges().any_pair(other.edges(), work, crosses)? {
                    return invalid(CROSSING);
                }
            }
        }
        Ok(Polygon { outer, holes, is_big: false })
    }

    /// Returns the polygon of one ring, which may contain more than half of the sphere.
    pub fn big(outer: Ring) -> Self {
        Polygon { outer, holes: Vec::new(), is_big: true }
    }

    pub fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub fn is_big(&self) -> bool {
        self.is_big
    }

    pub fn outer(&self) -> &Ring {
        &self.outer
    }

    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.rings().flat_map(|ring| ring.edges().iter())
    }

    /// Returns true if the point is inside; a point on an edge may be.
    fn has_inside(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        if !self.outer.contains(point, work)? {
            return Ok(false);
        }
        each(self.holes.len(), 4, work)?;
        Ok(!any(&self.holes, |hole| hole.contains(point, work))?)
    }

    fn is_on_edge(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        each(self.holes.len(), 4, work)?;
        any(self.rings(), |ring| ring.is_on_edge(point, work))
    }

    /// Returns true if the point is inside or on an edge.
    pub fn has(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        Ok(self.has_inside(point, work)? || self.is_on_edge(point, work)?)
    }

    /// Returns true if the point is inside and not on an edge.
    fn has_strictly(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        Ok(self.has_inside(point, work)? && !self.is_on_edge(point, work)?)
    }

    /// Returns the angle between a point and the nearest point of the polygon, in radians; 0 inside.
    pub fn distance(&self, point: &Point, work: Work<'_>) -> Result<f64> {
        if self.has_inside(point, work)? {
            return Ok(0.0);
        }
        let mut nearest = f64::INFINITY;
        for ring in self.rings() {
            nearest = nearest.min(ring.distance(point, work)?);
        }
        Ok(if nearest <= ON_EDGE { 0.0 } else { nearest })
    }

    /// Returns true if `relate` holds for an edge of the polygon and one of `others`.
    pub fn any_pair(
        &self,
        others: &Edges,
        work: Work<'_>,
        relate: fn(&Edge, &Edge) -> bool,
    ) -> Result<bool> {
        any(self.rings(), |ring| ring.edges().any_pair(others, work, relate))
    }

    /// Returns true if all points of the edges are inside or on an edge. Edges that do not cross an
    /// edge of the polygon change sides only where they touch one, so their middles tell.
    fn has_edges(&self, edges: &Edges, work: Work<'_>) -> Result<bool> {
        for (number, edge) in edges.iter().enumerate() {
            if number == 0 && !self.has(&edge.0, work)? {
                return Ok(false);
            }
            if !self.has(&edge.1, work)? || !self.has(&middle(edge), work)? {
                return Ok(false);
            }
        }
        Ok(!self.any_pair(edges, work, crosses)?)
    }

    /// Returns true if the line is in the polygon.
    pub fn has_line(&self, line: &Line, work: Work<'_>) -> Result<bool> {
        self.has_edges(line.edges(), work)
    }

    /// Returns true if the other polygon is in this one.
    pub fn has_polygon(&self, other: &Polygon, work: Work<'_>) -> Result<bool> {
        for ring in other.rings() {
            if !self.has_edges(ring.edges(), work)? {
                return Ok(false);
            }
        }
        // A hole of this polygon may be in the other one only where that has a hole too.
        for hole in &self.holes {
            if other.has_part_of(hole.edges().iter(), work)? {
                return Ok(false);
            }
            // The other one may fill the hole exactly.
            let beside = hole.edges().iter().next().map(left_of);
            if let Some(point) = beside
                && hole.contains(&point, work)?
                && other.has_strictly(&point, work)?
            {
                return Ok(false);
            }
        }
        // The other one may be everything outside of this polygon's ring.
        let vertex = self.outer.vertices().next();
        let is_around = vertex.map_or(Ok(false), |vertex| other.has_strictly(vertex, work))?;
        Ok(!is_around)
    }

    /// Returns true if the line and the polygon have a point in common.
    pub fn meets_line(&self, line: &Line, work: Work<'_>) -> Result<bool> {
        Ok(any(line.points(), |point| self.has(point, work))?
            || self.any_pair(line.edges(), work, touches)?)
    }

    /// Returns true if the insides of the polygons have a point in common. Polygons that share only
    /// edges or corners do not meet, as in MongoDB.
    pub fn meets_polygon(&self, other: &Polygon, work: Work<'_>) -> Result<bool> {
        if !self.is_big && !other.is_big && self.outer.is_apart_from(&other.outer) {
            return Ok(false);
        }
        Ok(self.has_part_of(other.edges(), work)?
            || other.has_part_of(self.edges(), work)?
            || any(other.rings(), |ring| self.any_pair(ring.edges(), work, crosses))?
            || self.has_polygon(other, work)?
            || other.has_polygon(self, work)?)
    }

    /// Returns true if the beginning or the middle of one of the edges is inside, not on an edge.
    fn has_part_of<'e>(
        &self,
        mut edges: impl Iterator<Item = &'e Edge>,
        work: Work<'_>,
    ) -> Result<bool> {
        any(&mut edges, |edge| {
            Ok(self.has_strictly(&edge.0, work)? || self.has_strictly(&middle(edge), work)?)
        })
    }
}

/// Returns a point less than a meter to the left of the middle of an edge.
fn left_of(edge: &Edge) -> Point {
    let left = edge.0.0.cross(&edge.1.0).normalize();
    Point((middle(edge).0 + left * 1e-7).normalize())
}

/// Returns true if a test that can fail holds for one of the items.
pub(crate) fn any<T>(
    items: impl IntoIterator<Item = T>,
    mut test: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    for item in items {
        if test(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
