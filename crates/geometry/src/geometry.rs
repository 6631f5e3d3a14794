//! A geometry on the sphere, and the relations of two.

use s2::cellid::CellID;
use s2::point::Point;

use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::{Position, angle};

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
    pub fn meets(&self, other: &Piece) -> bool {
        match (self, other) {
            (Piece::Point(_, one), Piece::Point(_, other)) => {
                CellID::from(*one) == CellID::from(*other)
            }
            (Piece::Point(_, point), Piece::Line(line))
            | (Piece::Line(line), Piece::Point(_, point)) => line.has(point),
            (Piece::Point(_, point), Piece::Polygon(polygon))
            | (Piece::Polygon(polygon), Piece::Point(_, point)) => polygon.has(point),
            (Piece::Line(one), Piece::Line(other)) => one.meets(other),
            (Piece::Line(line), Piece::Polygon(polygon))
            | (Piece::Polygon(polygon), Piece::Line(line)) => polygon.meets_line(line),
            (Piece::Polygon(one), Piece::Polygon(other)) => one.meets_polygon(other),
        }
    }

    /// Returns true if the polygon contains this.
    pub fn is_in(&self, polygon: &Polygon) -> bool {
        match self {
            Piece::Point(_, point) => polygon.has(point),
            Piece::Line(line) => polygon.has_line(line),
            Piece::Polygon(other) => polygon.has_polygon(other),
        }
    }

    /// Returns the angle between a point and this, in radians.
    pub fn distance(&self, from: &Point) -> f64 {
        match self {
            Piece::Point(_, point) => angle(from, point),
            Piece::Line(line) => line.distance(from),
            Piece::Polygon(polygon) => polygon.distance(from),
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
    pub fn meets(&self, other: &Geometry) -> bool {
        self.0.iter().any(|one| other.0.iter().any(|other| one.meets(other)))
    }

    /// Returns the angle between a point and the geometry, in radians.
    pub(crate) fn distance(&self, from: &Point) -> f64 {
        self.0.iter().map(|piece| piece.distance(from)).fold(f64::INFINITY, f64::min)
    }
}
