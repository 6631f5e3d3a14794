//! A position: a longitude and a latitude, or two flat coordinates.

use quire_document::Value;
use s2::latlng::LatLng;
use s2::point::Point;

use crate::work::{Fault, invalid};

/// The angle within which a point counts as being on an edge, in radians: half the diagonal of the
/// smallest cell, about 6 mm.
pub(crate) const ON_EDGE: f64 = 1e-9;

/// Two coordinates. `x` is a longitude and `y` a latitude, in degrees, if they are on the sphere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// The first coordinate.
    pub x: f64,
    /// The second coordinate.
    pub y: f64,
}

impl Position {
    /// Returns true for a longitude from -180 to 180 and a latitude from -90 to 90.
    pub fn is_on_sphere(self) -> bool {
        (-180.0..=180.0).contains(&self.x) && (-90.0..=90.0).contains(&self.y)
    }

    /// Returns the point of the unit sphere; its place must be on the sphere.
    pub(crate) fn point(self) -> Point {
        Point::from(LatLng::from_degrees(self.y, self.x))
    }

    /// Fails unless the position is on the sphere.
    pub(crate) fn checked(self) -> Result<Self, Fault> {
        if self.is_on_sphere() {
            return Ok(self);
        }
        invalid(format!("longitude/latitude is out of bounds, lng: {} lat: {}", self.x, self.y))
    }
}

/// Returns the two numbers with which an array or a document begins; `None` if it does not. With
/// `alone` there may be no third value.
pub fn number_pair(value: Value<'_>, alone: bool) -> Option<Position> {
    let mut values = match value {
        Value::Array(array) => array.iter().take(3).collect::<Vec<_>>(),
        Value::Document(doc) => doc.fields().map(|(_, value)| value).take(3).collect(),
        _ => return None,
    }
    .into_iter();
    let (x, y) = (values.next()?.to_f64()?, values.next()?.to_f64()?);
    (!alone || values.next().is_none()).then_some(Position { x, y })
}

/// Returns the angle between two points of the unit sphere, in radians.
pub(crate) fn angle(a: &Point, b: &Point) -> f64 {
    a.distance(b).rad()
}

/// Returns true if the ends of an edge are opposite points of the sphere.
pub(crate) fn are_opposite((a, b): &(Point, Point)) -> bool {
    a.0.dot(&b.0) < -1.0 + 1e-15
}
