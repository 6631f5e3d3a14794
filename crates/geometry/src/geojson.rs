//! Parses GeoJSON (RFC 7946, with MongoDB's coordinate reference systems).

use quire_document::{Array, Doc, Value};
use quire_error::{Error, Result};
use s2::point::Point;

use crate::geometry::{Geometry, Piece};
use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::{Position, number_pair};
use crate::ring::Ring;

/// The reference system in which the inside of a polygon is to the left of its ring.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
/// The names of the usual reference system.
const USUAL: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

fn bad<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::bad_value(text))
}

/// Returns true for a document with a `type` that names a kind of geometry, or with `type` and
/// `coordinates`.
pub(crate) fn is_geojson(value: Value<'_>) -> bool {
    value.as_document().is_some_and(|doc| matches!(doc.get("type"), Some(Value::String(_))))
}

/// Parses a geometry.
///
/// # Errors
/// 2 BadValue for anything that is not valid GeoJSON.
pub fn parse_geojson(value: Value<'_>) -> Result<Geometry> {
    let Value::Document(doc) = value else { return bad("geometry must be an object") };
    let Some(Value::String(kind)) = doc.get("type") else {
        return bad("unknown GeoJSON type: the field 'type' must be a string");
    };
    if kind == "GeometryCollection" {
        return parse_collection(doc).map(Geometry);
    }
    parse_pieces(kind, doc).map(Geometry)
}

fn parse_collection(doc: Doc<'_>) -> Result<Vec<Piece>> {
    let Some(Value::Array(members)) = doc.get("geometries") else {
        return bad("GeometryCollection geometries must be an array");
    };
    let mut pieces = Vec::new();
    for member in members.iter() {
        let Value::Document(member) = member else {
            return bad("Element of \"geometries\" must be an object");
        };
        match member.get("type") {
            Some(Value::String("GeometryCollection")) => {
                return bad("GeometryCollections cannot be nested");
            }
            Some(Value::String(kind)) => pieces.extend(parse_pieces(kind, member)?),
            _ => return bad("unknown GeoJSON type: the field 'type' must be a string"),
        }
    }
    if pieces.is_empty() {
        return bad("GeometryCollection geometries must have at least 1 element");
    }
    Ok(pieces)
}

/// Parses a geometry that is no collection.
fn parse_pieces(kind: &str, doc: Doc<'_>) -> Result<Vec<Piece>> {
    let is_strict = is_strict_winding(doc)?;
    if is_strict && kind != "Polygon" {
        return bad("Strict winding order CRS is only supported by Polygon geometries");
    }
    let coordinates = doc.get("coordinates");
    let array = || match coordinates {
        Some(Value::Array(array)) => Ok(array),
        _ => bad(format!("{kind} coordinates must be an array")),
    };
    Ok(match kind {
        "Point" => vec![Piece::point(position(coordinates.unwrap_or(Value::Null))?)],
        "LineString" => vec![Piece::Line(line(array()?)?)],
        "Polygon" if is_strict => vec![Piece::Polygon(big_polygon(array()?)?)],
        "Polygon" => vec![Piece::Polygon(polygon(array()?)?)],
        "MultiPoint" => members(kind, array()?, |value| position(value).map(Piece::point))?,
        "MultiLineString" => members(kind, array()?, |value| match value {
            Value::Array(points) => line(points).map(Piece::Line),
            _ => bad("LineString coordinates must be an array of coordinates"),
        })?,
        "MultiPolygon" => members(kind, array()?, |value| match value {
            Value::Array(rings) => polygon(rings).map(Piece::Polygon),
            _ => bad("Polygon coordinates must be an array"),
        })?,
        other => return bad(format!("unknown GeoJSON type: {other}")),
    })
}

fn members(
    kind: &str,
    array: Array<'_>,
    parse: impl Fn(Value<'_>) -> Result<Piece>,
) -> Result<Vec<Piece>> {
    let pieces = array.iter().map(parse).collect::<Result<Vec<_>>>()?;
    if pieces.is_empty() {
        return bad(format!("{kind} coordinates must have at least 1 element"));
    }
    Ok(pieces)
}

/// Returns true if the reference system asks for strict winding.
fn is_strict_winding(doc: Doc<'_>) -> Result<bool> {
    let Some(system) = doc.get("crs") else { return Ok(false) };
    let Value::Document(system) = system else { return bad("GeoJSON CRS must be an object") };
    if !matches!(system.get("type"), Some(Value::String("name"))) {
        return bad("GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(Value::Document(properties)) = system.get("properties") else {
        return bad("CRS must have field \"properties\" which is an object");
    };
    match properties.get("name") {
        Some(Value::String(STRICT_WINDING)) => Ok(true),
        Some(Value::String(name)) if USUAL.contains(&name) => Ok(false),
        Some(Value::String(name)) => bad(format!("Unknown CRS name: {name}")),
        _ => bad("In CRS, \"properties.name\" must be a string"),
    }
}

/// Parses the coordinates of a point.
pub(crate) fn position(value: Value<'_>) -> Result<Position> {
    let Some(position) = number_pair(value, false) else {
        return bad("Point must be an array or object, whose first two elements are numbers");
    };
    position.checked()
}

fn points(array: Array<'_>) -> Result<Vec<Point>> {
    array.iter().map(|value| position(value).map(Position::point)).collect()
}

fn line(array: Array<'_>) -> Result<Line> {
    Line::new(points(array)?).or_else(bad)
}

fn ring(value: Value<'_>) -> Result<Ring> {
    let Value::Array(array) = value else {
        return bad("Polygon coordinates must be an array of arrays of coordinates");
    };
    let points = points(array)?;
    if points.is_empty() {
        return bad("Loop has no vertices");
    }
    if points.first() != points.last() {
        return bad("Loop is not closed, first vertex does not equal last vertex");
    }
    if points.len() < 4 {
        return bad("Loop must have at least 3 different vertices");
    }
    Ring::new(points).or_else(|fault| bad(format!("Loop is not valid: {fault}")))
}

fn polygon(rings: Array<'_>) -> Result<Polygon> {
    let mut rings = rings.iter().map(|value| ring(value).map(Ring::normalized));
    let Some(outer) = rings.next() else { return bad("Polygon has no loops.") };
    let holes = rings.collect::<Result<Vec<_>>>()?;
    Polygon::new(outer?, holes).or_else(bad)
}

fn big_polygon(rings: Array<'_>) -> Result<Polygon> {
    match rings.count() {
        1 => ring(rings.get(0).unwrap_or(Value::Null)).map(Polygon::big),
        _ => bad("Only one simple loop is allowed in a big polygon"),
    }
}
