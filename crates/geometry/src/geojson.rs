//! Parses GeoJSON (RFC 7946, with MongoDB's coordinate reference systems).

use quire_document::{Array, Doc, Value};
use s2::point::Point;

use crate::geometry::{Geometry, Piece};
use crate::line::Line;
use crate::polygon::Polygon;
use crate::position::{Position, number_pair};
use crate::ring::Ring;
use crate::work::{Fault, Work, each, invalid};

/// The reference system in which the inside of a polygon is to the left of its ring.
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
/// The names of the usual reference system.
const USUAL: [&str; 2] = ["urn:ogc:def:crs:OGC:1.3:CRS84", "EPSG:4326"];

/// The units of work for parsing a pair of coordinates.
const POSITION_UNITS: u32 = 16;

type Result<T> = std::result::Result<T, Fault>;

/// Returns true for a document with a `type` that names a kind of geometry, or with `type` and
/// `coordinates`.
pub(crate) fn is_geojson(value: Value<'_>) -> bool {
    value.as_document().is_some_and(|doc| matches!(doc.get("type"), Some(Value::String(_))))
}

/// Parses a geometry.
///
/// # Errors
/// `Fault::Invalid` for anything that is not valid GeoJSON; `Fault::Ended` if `work` fails.
pub fn parse_geojson(value: Value<'_>, work: Work<'_>) -> Result<Geometry> {
    let Value::Document(doc) = value else { return invalid("geometry must be an object") };
    let Some(Value::String(kind)) = doc.get("type") else {
        return invalid("unknown GeoJSON type: the field 'type' must be a string");
    };
    if kind == "GeometryCollection" {
        return parse_collection(doc, work).map(Geometry);
    }
    parse_pieces(kind, doc, work).map(Geometry)
}

fn parse_collection(doc: Doc<'_>, work: Work<'_>) -> Result<Vec<Piece>> {
    let Some(Value::Array(members)) = doc.get("geometries") else {
        return invalid("GeometryCollection geometries must be an array");
    };
    let mut pieces = Vec::new();
    for member in members.iter() {
        let Value::Document(member) = member else {
            return invalid("Element of \"geometries\" must be an object");
        };
        match member.get("type") {
            Some(Value::String("GeometryCollection")) => {
                return invalid("GeometryCollections cannot be nested");
            }
            Some(Value::String(kind)) => pieces.extend(parse_pieces(kind, member, work)?),
            _ => return invalid("unknown GeoJSON type: the field 'type' must be a string"),
        }
    }
    if pieces.is_empty() {
        return invalid("GeometryCollection geometries must have at least 1 element");
    }
    Ok(pieces)
}

/// Parses a geometry that is no collection.
fn parse_pieces(kind: &str, doc: Doc<'_>, work: Work<'_>) -> Result<Vec<Piece>> {
    work(POSITION_UNITS)?;
    let is_strict = is_strict_winding(doc)?;
    if is_strict && kind != "Polygon" {
        return invalid("Strict winding order CRS is only supported by Polygon geometries");
    }
    let coordinates = doc.get("coordinates");
    let array = || match coordinates {
        Some(Value::Array(array)) => Ok(array),
        _ => invalid(format!("{kind} coordinates must be an array")),
    };
    Ok(match kind {
        "Point" => vec![Piece::point(position(coordinates.unwrap_or(Value::Null))?)],
        "LineString" => vec![Piece::Line(line(array()?, work)?)],
        "Polygon" if is_strict => vec![Piece::Polygon(big_polygon(array()?, work)?)],
        "Polygon" => vec![Piece::Polygon(polygon(array()?, work)?)],
        "MultiPoint" => members(kind, array()?, |value| {
            work(POSITION_UNITS)?;
            position(value).map(Piece::point)
        })?,
        "MultiLineString" => members(kind, array()?, |value| match value {
            Value::Array(points) => line(points, work).map(Piece::Line),
            _ => invalid("LineString coordinates must be an array of coordinates"),
        })?,
        "MultiPolygon" => members(kind, array()?, |value| match value {
            Value::Array(rings) => polygon(rings, work).map(Piece::Polygon),
            _ => invalid("Polygon coordinates must be an array"),
        })?,
        other => return invalid(format!("unknown GeoJSON type: {other}")),
    })
}

fn members(
    kind: &str,
    array: Array<'_>,
    parse: impl Fn(Value<'_>) -> Result<Piece>,
) -> Result<Vec<Piece>> {
    let pieces = array.iter().map(parse).collect::<Result<Vec<_>>>()?;
    if pieces.is_empty() {
        return invalid(format!("{kind} coordinates must have at least 1 element"));
    }
    Ok(pieces)
}

/// Returns true if the reference system asks for strict winding.
pub(crate) fn is_strict_winding(doc: Doc<'_>) -> Result<bool> {
    let Some(system) = doc.get("crs") else { return Ok(false) };
    let Value::Document(system) = system else { return invalid("GeoJSON CRS must be an object") };
    if !matches!(system.get("type"), Some(Value::String("name"))) {
        return invalid("GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(Value::Document(properties)) = system.get("properties") else {
        return invalid("CRS must have field \"properties\" which is an object");
    };
    match properties.get("name") {
        Some(Value::String(STRICT_WINDING)) => Ok(true),
        Some(Value::String(name)) if USUAL.contains(&name) => Ok(false),
        Some(Value::String(name)) => invalid(format!("Unknown CRS name: {name}")),
        _ => invalid("In CRS, \"properties.name\" must be a string"),
    }
}

/// Parses the coordinates of a point.
pub(crate) fn position(value: Value<'_>) -> Result<Position> {
    let Some(position) = number_pair(value, false) else {
        return invalid("Point must be an array or object, whose first two elements are numbers");
    };
    position.checked()
}

fn points(array: Array<'_>, work: Work<'_>) -> Result<Vec<Point>> {
    let parse = |value| {
        work(POSITION_UNITS)?;
        position(value).map(Position::point)
    };
    array.iter().map(parse).collect()
}

fn line(array: Array<'_>, work: Work<'_>) -> Result<Line> {
    let points = points(array, work)?;
    each(points.len(), POSITION_UNITS, work)?;
    Line::new(points)
}

fn ring(value: Value<'_>, work: Work<'_>) -> Result<Ring> {
    let Value::Array(array) = value else {
        return invalid("Polygon coordinates must be an array of arrays of coordinates");
    };
    let points = points(array, work)?;
    if points.is_empty() {
        return invalid("Loop has no vertices");
    }
    if points.first() != points.last() {
        return invalid("Loop is not closed, first vertex does not equal last vertex");
    }
    if points.len() < 4 {
        return invalid("Loop must have at least 3 different vertices");
    }
    Ring::new(points, work).map_err(|fault| fault.within("Loop is not valid: "))
}

fn polygon(rings: Array<'_>, work: Work<'_>) -> Result<Polygon> {
    let mut rings = rings.iter().map(|value| Ok(ring(value, work)?.normalized(work)?));
    let Some(outer) = rings.next() else { return invalid("Polygon has no loops.") };
    let holes = rings.collect::<Result<Vec<_>>>()?;
    Polygon::new(outer?, holes, work)
}

fn big_polygon(rings: Array<'_>, work: Work<'_>) -> Result<Polygon> {
    match rings.count() {
        1 => ring(rings.get(0).unwrap_or(Value::Null), work).map(Polygon::big),
        _ => invalid("Only one simple loop is allowed in a big polygon"),
    }
}
