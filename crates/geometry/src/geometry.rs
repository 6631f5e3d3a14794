//! What a document stores: a geometry of GeoJSON, or a legacy pair; and the relations of geometries.

use quire_document::Value;
use quire_error::{Error, Result};
use s2::cellid::CellID;
use s2::point::Point;

use crate::geojson::{is_geojson, parse_geojson};
use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::{Position, angle, number_pair};

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

/// A value of a document that is a geometry.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// GeoJSON.
    Sphere(Geometry),
    /// A legacy pair, which is on the sphere too if it is a longitude and a latitude.
    Flat(Position),
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

impl Stored {
    /// Parses a value of a document.
    ///
    /// # Errors
    /// 2 BadValue for everything that is no geometry.
    pub fn parse(value: Value<'_>) -> Result<Self> {
        if is_geojson(value) {
            return parse_geojson(value).map(Stored::Sphere);
        }
        let pair = number_pair(value, false);
        let pair = pair.filter(|pair| pair.x.is_finite() && pair.y.is_finite());
        pair.map(Stored::Flat).ok_or_else(|| {
            Error::bad_value("Point must only contain numeric elements, as an array or object")
        })
    }

    /// Returns the geometry on the sphere; `None` for a pair that is not there.
    pub fn on_sphere(&self) -> Option<Geometry> {
        match self {
            Stored::Sphere(geometry) => Some(geometry.clone()),
            Stored::Flat(pair) => pair.is_on_sphere().then(|| Geometry(vec![Piece::point(*pair)])),
        }
    }

    /// Returns the flat point; `None` for a geometry that is more than a point.
    pub fn flat(&self) -> Option<Position> {
        match self {
            Stored::Sphere(geometry) => geometry.as_point(),
            Stored::Flat(pair) => Some(*pair),
        }
    }
}
