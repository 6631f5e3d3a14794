//! What a document stores: a geometry of GeoJSON, or a legacy pair.

use quire_document::Value;
use quire_error::{Error, Result};

use crate::geojson::{is_geojson, parse_geojson};
use crate::geometry::{Geometry, Piece};
use crate::position::{Position, number_pair};

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
