//! What `$near`, `$nearSphere` and `$geoNear` ask: the distance from a center.

use quire_document::Value;
use quire_error::{Error, Result};
use s2::point::Point;

use crate::flat;
use crate::geojson::{is_strict_winding, position};
use crate::position::{Position, number_pair};
use crate::stored::Stored;
use crate::work::Work;

/// The radius of the sphere by which angles become meters.
pub const EARTH_RADIUS_METERS: f64 = 6_378_100.0;

/// The center of a search, and the unit of its distances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NearCenter {
    /// A point of GeoJSON: distances on the sphere, in meters.
    Meters(Position),
    /// A legacy pair on the sphere: distances in radians.
    Radians(Position),
    /// A legacy pair in the plane.
    Flat(Position),
}

/// A search for what is near a center.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// The center of the search.
    pub center: NearCenter,
    /// The least distance, in the unit of the center.
    pub min: f64,
    /// The greatest distance, in the unit of the center.
    pub max: f64,
}

fn bad<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::bad_value(text))
}

impl NearCenter {
    /// Parses a center of GeoJSON.
    ///
    /// # Errors
    /// 2 BadValue for everything but a point on the sphere.
    pub fn of_geometry(value: Value<'_>) -> Result<Self> {
        geometry(value).map(NearCenter::Meters)
    }

    /// Returns the distance of a value; `None` if it has none from such a center.
    ///
    /// # Errors
    /// That of `work`.
    pub fn distance(&self, stored: &Stored, work: Work<'_>) -> Result<Option<f64>> {
        let meters = |center: &Position| {
            let Some(geometry) = stored.on_sphere() else { return Ok(None) };
            let angle = geometry.distance(&center.point(), work)?;
            Ok(Some(angle * EARTH_RADIUS_METERS))
        };
        match self {
            NearCenter::Flat(center) => {
                Ok(stored.flat().map(|point| flat::distance(*center, point)))
            }
            NearCenter::Meters(center) => meters(center),
            // MongoDB divides the distance in meters, which gives the same last digits.
            NearCenter::Radians(center) => {
                Ok(meters(center)?.map(|meters| meters / EARTH_RADIUS_METERS))
            }
        }
    }

    /// Returns the center as a point of the sphere; `None` for a flat one.
    pub(crate) fn point(&self) -> Option<Point> {
        match self {
            NearCenter::Flat(_) => None,
            NearCenter::Radians(center) | NearCenter::Meters(center) => Some(center.point()),
        }
    }

    /// Returns a distance of this center's unit as an angle, in radians; 180 degrees at most.
    pub(crate) fn radians(&self, distance: f64) -> f64 {
        let angle = match self {
            NearCenter::Meters(_) => distance / EARTH_RADIUS_METERS,
            NearCenter::Radians(_) | NearCenter::Flat(_) => distance,
        };
        angle.min(std::f64::consts::PI)
    }
}

impl Near {
    /// Parses the operands of `$near` (or `$nearSphere` if `is_sphere`), and the `$minDistance` and
    /// `$maxDistance` beside it, which legacy forms have.
    ///
    /// # Errors
    /// 2 BadValue for an invalid center or distance.
    pub fn parse(name: &str, operand: Value<'_>, beside: [Option<Value<'_>>; 2]) -> Result<Self> {
        let legacy = |pair: Position| match name {
            "$nearSphere" => Ok(NearCenter::Radians(pair.checked()?)),
            _ => Ok::<_, Error>(NearCenter::Flat(pair)),
        };
        let [mut min, mut max] = beside;
        let center = match operand {
            Value::Document(doc)
                if doc.first().is_some_and(|first| first.key().starts_with('$')) =>
            {
                let mut center = None;
                for (field, value) in doc.fields() {
                    match field {
                        "$geometry" => center = Some(geometry(value)?),
                        "$minDistance" => min = Some(value),
                        "$maxDistance" => max = Some(value),
                        other => {
                            return bad(format!("invalid argument in geo near query: {other}"));
                        }
                    }
                }
                match center {
                    Some(center) => NearCenter::Meters(center),
                    None => return bad("$near requires a point, given in $geometry"),
                }
            }
            Value::Document(doc) if doc.get("type").is_some_and(|kind| kind.as_str().is_some()) => {
                NearCenter::Meters(geometry(operand)?)
            }
            Value::Array(array) if array.count() > 2 && min.is_none() && max.is_none() => {
                // [x, y, maxDistance], an old form.
                let third = array.get(2).unwrap_or(Value::Null);
                if name == "$near" {
                    max = Some(third);
                }
                legacy(finite(operand)?)?
            }
            _ => legacy(finite(operand)?)?,
        };
        let is_legacy = !matches!(center, NearCenter::Meters(_));
        Ok(Near {
            center,
            min: bound("$minDistance", min, is_legacy)?.unwrap_or(0.0),
            max: bound("$maxDistance", max, is_legacy)?.unwrap_or(f64::INFINITY),
        })
    }

    /// Returns the distance of a value if it is within the bounds.
    ///
    /// # Errors
    /// That of `work`.
    pub fn distance(&self, stored: &Stored, work: Work<'_>) -> Result<Option<f64>> {
        let distance = self.center.distance(stored, work)?;
        Ok(distance.filter(|distance| (self.min..=self.max).contains(distance)))
    }
}

fn finite(value: Value<'_>) -> Result<Position> {
    match number_pair(value, false).filter(|pair| pair.x.is_finite() && pair.y.is_finite()) {
        Some(pair) => Ok(pair),
        None => bad("geo near query needs a point: two finite numbers"),
    }
}

/// Parses the center in `$geometry`: a point of GeoJSON, of which the type may be missing.
fn geometry(value: Value<'_>) -> Result<Position> {
    let Value::Document(doc) = value else { return bad("$near requires a point") };
    if is_strict_winding(doc)? {
        return bad("Strict winding order is only supported by polygon");
    }
    match (doc.get("type"), doc.get("coordinates")) {
        (None | Some(Value::String("Point")), Some(coordinates)) => Ok(position(coordinates)?),
        (None, None) => Ok(finite(value)?.checked()?),
        _ => bad("$near requires a point"),
    }
}

/// Parses a distance. Those of legacy forms have errors of their own.
fn bound(name: &str, value: Option<Value<'_>>, is_legacy: bool) -> Result<Option<f64>> {
    let Some(value) = value else { return Ok(None) };
    let (number, sign) = match name {
        "$minDistance" => (16893, 16894),
        _ => (16895, 16896),
    };
    let refused = |code: i32, text: String| match is_legacy {
        true => Err(Error::location(code, text)),
        false => bad(text),
    };
    match value.to_f64() {
        Some(distance) if distance >= 0.0 && distance.is_finite() => Ok(Some(distance)),
        Some(_) => refused(sign, format!("{name} must be non-negative")),
        None => refused(number, format!("{name} must be a number")),
    }
}
