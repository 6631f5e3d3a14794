//! A line of points, connected by the shortest ways.

use s2::point::Point;

use crate::edges::{Edge, any_pair, distance, touches};
use crate::position::ON_EDGE;

/// A line of at least one edge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    edges: Vec<Edge>,
}

impl Line {
    /// Returns the line through these points. Equal neighbours count once; a line of equal points is
    /// an edge of no length.
    ///
    /// # Errors
    /// The fault, for a message.
    pub fn new(mut points: Vec<Point>) -> Result<Self, &'static str> {
        if points.len() < 2 {
            return Err("GeoJSON LineString must have at least 2 vertices");
        }
        points.dedup();
        if let [only] = points[..] {
            points.push(only);
        }
        let edges: Vec<Edge> = points.windows(2).map(|pair| (pair[0], pair[1])).collect();
        if edges.iter().any(|(a, b)| a.0.dot(&b.0) < -1.0 + 1e-15) {
            return Err("GeoJSON LineString has an edge between opposite points of the sphere");
        }
        Ok(Line { edges })
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Returns the points of the line.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.edges.iter().flat_map(|(a, b)| [a, b])
    }

    /// Returns true if the point is on the line.
    pub fn has(&self, point: &Point) -> bool {
        self.distance(point) <= ON_EDGE
    }

    /// Returns the angle between a point and the nearest point of the line, in radians.
    pub fn distance(&self, point: &Point) -> f64 {
        self.edges.iter().map(|edge| distance(point, edge)).fold(f64::INFINITY, f64::min)
    }

    /// Returns true if the lines have a point in common.
    pub fn meets(&self, other: &Line) -> bool {
        any_pair(&self.edges, &other.edges, touches)
    }
}
