//! What `$geoWithin` and `$geoIntersects` ask about.

use std::f64::consts::{FRAC_PI_2, PI};

use quire_document::{Array, Value};
use quire_error::{Error, Result};
use s2::latlng::LatLng;
use s2::point::Point;

use crate::edges::{Edge, RELATION_UNITS, distance};
use crate::flat::Flat;
use crate::geojson::parse_geojson;
use crate::geometry::{Geometry, Piece};
use crate::polygon::{Polygon, any};
use crate::position::{ON_EDGE, Position, angle, number_pair};
use crate::stored::Stored;
use crate::work::{Work, each};

/// The region of a `$geoWithin`.
#[derive(Debug, Clone, PartialEq)]
pub struct Region(pub(crate) Shape);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Flat(Flat),
    /// A center and a radius in radians.
    Cap(Point, f64),
    /// One of these must contain a geometry.
    Polygons(Vec<Polygon>),
}

/// The geometry of a `$geoIntersects`.
#[derive(Debug, Clone, PartialEq)]
pub struct Intersecting(pub(crate) Geometry);

fn bad<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::bad_value(text))
}

impl Region {
    /// Parses the operand of `$geoWithin`.
    ///
    /// # Errors
    /// 2 BadValue for everything but one valid shape; the error of `work`.
    pub fn parse(operand: Value<'_>, work: Work<'_>) -> Result<Self> {
        let Value::Document(doc) = operand else { return bad("geometry must be an object") };
        let mut shape = None;
        for (name, value) in doc.fields() {
            let parsed = match name {
                "$geometry" => within_geometry(value, work)?,
                "$box" => Shape::Flat(parse_box(value)?),
                "$polygon" => Shape::Flat(parse_polygon(value)?),
                "$center" => {
                    let (center, radius) = parse_circle(name, value)?;
                    Shape::Flat(Flat::Circle(center, radius))
                }
                "$centerSphere" => {
                    let (center, radius) = parse_circle(name, value)?;
                    Shape::Cap(center.checked()?.point(), radius)
                }
                "$uniqueDocs" => continue,
                other => return bad(format!("unknown geo specifier: {other}")),
            };
            if shape.replace(parsed).is_some() {
                return bad("$geoWithin takes one shape");
            }
        }
        shape
            .map(Region)
            .map_or_else(|| bad("$geoWithin needs a shape: $geometry or a legacy one"), Ok)
    }

    /// Returns true if the region contains the value, wholly.
    ///
    /// # Errors
    /// That of `work`.
    pub fn contains(&self, stored: &Stored, work: Work<'_>) -> Result<bool> {
        if let Shape::Flat(flat) = &self.0 {
            each(flat.corners(), 1, work)?;
            return Ok(stored.flat().is_some_and(|point| flat.has(point)));
        }
        let Some(geometry) = stored.on_sphere() else { return Ok(false) };
        for piece in &geometry.0 {
            if !self.has_piece(piece, work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_piece(&self, piece: &Piece, work: Work<'_>) -> Result<bool> {
        work(4)?;
        match &self.0 {
            Shape::Flat(_) => Ok(false),
            Shape::Cap(center, radius) => is_in_cap(piece, center, *radius, work),
            Shape::Polygons(polygons) => any(polygons, |polygon| piece.is_in(polygon, work)),
        }
    }

    /// Returns the smallest box around a flat region, by the corners with the smallest and the largest
    /// coordinates; `None` for another one.
    pub fn bounding_box(&self) -> Option<(Position, Position)> {
        let Shape::Flat(flat) = &self.0 else { return None };
        Some(flat.bounding_box())
    }

    /// Returns the center and the radius in radians of a circle on the sphere; `None` for another region.
    pub fn cap(&self) -> Option<(Position, f64)> {
        match &self.0 {
            Shape::Cap(center, radius) => Some((position_of(center), *radius)),
            Shape::Flat(_) | Shape::Polygons(_) => None,
        }
    }
}

impl Intersecting {
    /// Parses the operand of `$geoIntersects`.
    ///
    /// # Errors
    /// 2 BadValue for everything but one valid geometry; the error of `work`.
    pub fn parse(operand: Value<'_>, work: Work<'_>) -> Result<Self> {
        let Value::Document(doc) = operand else { return bad("geometry must be an object") };
        let mut fields = doc.fields();
        match (fields.next(), fields.next()) {
            (Some(("$geometry", value)), None) => any_geometry(value, work).map(Intersecting),
            // As in MongoDB, a circle meets nothing.
            (Some((name @ "$centerSphere", value)), None) => {
                parse_circle(name, value)?;
                Ok(Intersecting(Geometry(Vec::new())))
            }
            (Some((other, _)), _) => bad(format!("unknown geo specifier: {other}")),
            (None, _) => bad("$geoIntersects needs a $geometry"),
        }
    }

    /// Returns true if the value and the geometry have a point in common.
    ///
    /// # Errors
    /// That of `work`.
    pub fn meets(&self, stored: &Stored, work: Work<'_>) -> Result<bool> {
        stored.on_sphere().map_or(Ok(false), |geometry| geometry.meets(&self.0, work))
    }
}

/// Parses GeoJSON, or a legacy pair on the sphere.
fn any_geometry(value: Value<'_>, work: Work<'_>) -> Result<Geometry> {
    let has_type =
        value.as_document().is_some_and(|doc| doc.contains("type") || doc.contains("coordinates"));
    if has_type {
        return Ok(parse_geojson(value, work)?);
    }
    match number_pair(value, matches!(value, Value::Document(_))) {
        Some(pair) => Ok(Geometry(vec![Piece::point(pair.checked()?)])),
        None => bad("$geometry must be GeoJSON or a pair of numbers"),
    }
}

fn within_geometry(value: Value<'_>, work: Work<'_>) -> Result<Shape> {
    const NOT_AN_AREA: &str = "$geoWithin not supported with provided geometry: it takes polygons";
    let kinds = ["Polygon", "MultiPolygon", "GeometryCollection"];
    let kind = value.as_document().and_then(|doc| doc.get("type")?.as_str());
    if !kind.is_some_and(|kind| kinds.contains(&kind)) {
        return bad(NOT_AN_AREA);
    }
    let pieces = parse_geojson(value, work)?.0.into_iter();
    let polygons = pieces.filter_map(|piece| match piece {
        Piece::Polygon(polygon) => Some(polygon),
        Piece::Point(..) | Piece::Line(_) => None,
    });
    let polygons: Vec<Polygon> = polygons.collect();
    if polygons.is_empty() { bad(NOT_AN_AREA) } else { Ok(Shape::Polygons(polygons)) }
}

fn pair(value: Value<'_>) -> Result<Position> {
    let pair = number_pair(value, true);
    match pair.filter(|pair| pair.x.is_finite() && pair.y.is_finite()) {
        Some(pair) => Ok(pair),
        None => bad("Point must be an array or object of two finite numbers"),
    }
}

/// Returns the values of an array, or of a document as in `{bottomLeft: ..., topRight: ...}`.
fn values(value: Value<'_>) -> Result<Vec<Value<'_>>> {
    match value {
        Value::Array(array) => Ok(Array::to_vec(array)),
        Value::Document(doc) => Ok(doc.fields().map(|(_, value)| value).collect()),
        _ => bad("a shape of coordinates must be an array or an object"),
    }
}

fn parse_box(value: Value<'_>) -> Result<Flat> {
    let corners = values(value)?;
    let [one, other, ..] = corners[..] else { return bad("$box needs two corners") };
    let (one, other) = (pair(one)?, pair(other)?);
    let low = Position { x: one.x.min(other.x), y: one.y.min(other.y) };
    let high = Position { x: one.x.max(other.x), y: one.y.max(other.y) };
    Ok(Flat::Box(low, high))
}

fn parse_polygon(value: Value<'_>) -> Result<Flat> {
    let corners = values(value)?.into_iter().map(pair).collect::<Result<Vec<_>>>()?;
    if corners.len() < 3 {
        return bad("Polygon must have at least 3 points");
    }
    Ok(Flat::Polygon(corners))
}

fn parse_circle(name: &str, value: Value<'_>) -> Result<(Position, f64)> {
    let parts = values(value)?;
    let [center, radius] = parts[..] else {
        return bad(format!("{name} needs a center and a radius"));
    };
    let center = pair(center)?;
    match radius.to_f64() {
        Some(radius) if radius >= 0.0 => Ok((center, radius)),
        _ => bad("radius must be a non-negative number"),
    }
}

fn position_of(point: &Point) -> Position {
    let place = LatLng::from(*point);
    Position { x: place.lng.deg(), y: place.lat.deg() }
}

/// Returns true if a cap contains a piece. `radius` is in radians.
fn is_in_cap(piece: &Piece, center: &Point, radius: f64, work: Work<'_>) -> Result<bool> {
    let is_out = |edge: &Edge| {
        work(RELATION_UNITS)?;
        Ok(!is_edge_in_cap(edge, center, radius))
    };
    match piece {
        Piece::Point(_, point) => Ok(angle(center, point) <= radius + ON_EDGE),
        Piece::Line(line) => Ok(!any(line.edges().iter(), is_out)?),
        Piece::Polygon(polygon) => {
            if any(polygon.edges(), is_out)? {
                return Ok(false);
            }
            let opposite = Point(center.0 * -1.0);
            // Everything outside of the cap is outside of the polygon, or inside of it.
            Ok(radius >= PI || !polygon.has(&opposite, work)?)
        }
    }
}

fn is_edge_in_cap(edge: &Edge, center: &Point, radius: f64) -> bool {
    let is_in = |point: &Point| angle(center, point) <= radius + ON_EDGE;
    if radius <= FRAC_PI_2 {
        // Such a cap is convex.
        return is_in(&edge.0) && is_in(&edge.1);
    }
    let opposite = Point(center.0 * -1.0);
    PI - distance(&opposite, edge) <= radius + ON_EDGE
}
