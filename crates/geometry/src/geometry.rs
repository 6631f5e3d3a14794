//! A geometry on the sphere, and the relations of two.

use quire_error::Result;
use s2::cellid::CellID;
use s2::point::Point;

use crate::line::Line;
use crate::polygon::{Polygon, any};
use crate::position::{Position, angle};
use crate::work::Work;

/// A geometry on the sphere.
#[derive(Debug, Clone, PartialEq)]
pub struct Geometry(pub(crate) Vec<Piece>);

/// A part of a geometry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Point(Position, Point),
    Line(Line),
    Polygon(Polygon),
}

impl Piece {
    pub fn point(position: Position) -> Self {
        Piece::Point(position, position.point())
    }

    /// Returns true if the two have a point in common.
    pub fn meets(&self, other: &Piece, work: Work<'_>) -> Result<bool> {
        work(4)?;
        match (self, other) {
            (Piece::Point(_, one), Piece::Point(_, other)) => {
                Ok(CellID::from(*one) == CellID::from(*other))
            }
            (Piece::Point(_, point), Piece::Line(line))
            | (Piece::Line(line), Piece::Point(_, point)) => line.has(point, work),
            (Piece::Point(_, point), Piece::Polygon(polygon))
            | (Piece::Polygon(polygon), Piece::Point(_, point)) => polygon.has(point, work),
            (Piece::Line(one), Piece::Line(other)) => one.meets(other, work),
            (Piece::Line(line), Piece::Polygon(polygon))
            | (Piece::Polygon(polygon), Piece::Line(line)) => polygon.meets_line(line, work),
            (Piece::Polygon(one), Piece::Polygon(other)) => one.meets_polygon(other, work),
        }
    }

    /// Returns true if the polygon contains this.
    pub fn is_in(&self, polygon: &Polygon, work: Work<'_>) -> Result<bool> {
        match self {
            Piece::Point(_, point) => polygon.has(point, work),
            Piece::Line(line) => polygon.has_line(line, work),
            Piece::Polygon(other) => polygon.has_polygon(other, work),
        }
    }

    /// Returns the angle between a point and this, in radians.
    pub fn distance(&self, from: &Point, work: Work<'_>) -> Result<f64> {
        work(4)?;
        match self {
            Piece::Point(_, point) => Ok(angle(from, point)),
            Piece::Line(line) => line.distance(from, work),
            Piece::Polygon(polygon) => polygon.distance(from, work),
        }
    }
}

impl Geometry {
    /// Returns the position of a geometry that is a point.
    pub fn as_point(&self) -> Option<Position> {
        match &self.0[..] {
            [Piece::Point(position, _)] => Some(*position),
            _ => None,
        }
    }

    /// Returns true if the geometry has a polygon with strict winding, which no index can have.
    pub fn has_big_polygon(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Polygon(polygon) if polygon.is_big()))
    }

    /// Returns true if the two have a point in common.
    pub(crate) fn meets(&self, other: &Geometry, work: Work<'_>) -> Result<bool> {
        any(&self.0, |one| any(&other.0, |other| one.meets(other, work)))
    }

    /// Returns the angle between a point and the geometry, in radians.
    pub(crate) fn distance(&self, from: &Point, work: Work<'_>) -> Result<f64> {
        let mut least = f64::INFINITY;
        for piece in &self.0 {
            least = least.min(piece.distance(from, work)?);
        }
        Ok(least)
    }
}
