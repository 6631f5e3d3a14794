//! What a document stores: a geometry of GeoJSON, or a legacy pair.

use std::borrow::Cow;

use quire_document::Value;

use crate::geojson::{is_geojson, parse_geojson};
use crate::geometry::{Geometry, Piece};
use crate::position::{Position, number_pair};
use crate::work::{Fault, Work, invalid};

/// A value of a document that is a geometry.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// A geometry of GeoJSON, on the sphere.
    Sphere(Geometry),
    /// A legacy pair, which is on the sphere too if it is a longitude and a latitude.
    Flat(Position),
}

impl Stored {
    /// Parses a value of a document.
    ///
    /// # Errors
    /// `Fault::Invalid` for everything that is no geometry; `Fault::Ended` if `work` fails.
    pub fn parse(value: Value<'_>, work: Work<'_>) -> Result<Self, Fault> {
        if is_geojson(value) {
            return parse_geojson(value, work).map(Stored::Sphere);
        }
        let pair = number_pair(value, false);
        match pair.filter(|pair| pair.x.is_finite() && pair.y.is_finite()) {
            Some(pair) => Ok(Stored::Flat(pair)),
            None => invalid("Point must only contain numeric elements, as an array or object"),
        }
    }

    /// Returns true if the geometry has a polygon with strict winding, which no index can have.
    pub fn has_big_polygon(&self) -> bool {
        matches!(self, Stored::Sphere(geometry) if geometry.has_big_polygon())
    }

    /// Returns the geometry on the sphere; `None` for a pair that is not there.
    pub fn on_sphere(&self) -> Option<Cow<'_, Geometry>> {
        match self {
            Stored::Sphere(geometry) => Some(Cow::Borrowed(geometry)),
            Stored::Flat(pair) if pair.is_on_sphere() => {
                Some(Cow::Owned(Geometry(vec![Piece::point(*pair)])))
            }
            Stored::Flat(_) => None,
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
