//! A line of points, connected by the shortest ways.

use quire_error::Result;
use s2::point::Point;

use crate::edges::{Edges, touches};
use crate::position::are_opposite;
use crate::work::{Fault, Work, invalid};

/// A line of at least one edge.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    edges: Edges,
}

impl Line {
    /// Returns the line through these points. Equal neighbours count once.
    pub fn new(mut points: Vec<Point>) -> Result<Self, Fault> {
        points.dedup();
        if points.len() < 2 {
            return invalid("GeoJSON LineString must have at least 2 vertices");
        }
        let mut edges = Vec::with_capacity(points.len());
        for pair in points.windows(2) {
            let edge = (pair[0], pair[1]);
            if are_opposite(&edge) {
                // All ways are equally short. This one depends on the beginning only.
                let between = edge.0.ortho();
                edges.extend([(edge.0, between), (between, edge.1)]);
            } else {
                edges.push(edge);
            }
        }
        Ok(Line { edges: Edges::new(edges) })
    }

    pub fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Returns the points of the line.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        let first = self.edges.iter().next().map(|(first, _)| first);
        first.into_iter().chain(self.edges.iter().map(|(_, end)| end))
    }

    /// Returns true if the point is on the line.
    pub fn has(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        self.edges.has(point, work)
    }

    /// Returns the angle between a point and the nearest point of the line, in radians.
    pub fn distance(&self, point: &Point, work: Work<'_>) -> Result<f64> {
        self.edges.distance(point, work)
    }

    /// Returns true if the lines have a point in common.
    pub fn meets(&self, other: &Line, work: Work<'_>) -> Result<bool> {
        self.edges.any_pair(&other.edges, work, touches)
    }
}
