//! The 2d index: one key for each pair of coordinates, a square of the plane, before the values of other
//! fields.
//!
//! A square is a number in which the bits of the two coordinates take turns (a Z-order curve), so that
//! squares in a larger square have neighbouring numbers.

use quire_document::path::{Leaf, Path};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_geometry::{NearCenter, Position, Region};
use quire_mql::filter::{GeoRelation, GeoTest, Test};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::plane::{NAME, Plane};
use super::{FieldValues, fields, ordered, product, search};
use crate::IndexSpec;
use crate::index_pattern::plugin_of;
use crate::key::{
    Arena, Bounds, GeneratedKeys, Intervals, KeySpec, Kind, Part, Predicate, State, Tightness,
    ordinary,
};

/// The registry row of this kind.
pub(in crate::key) const KIND: Kind = Kind {
    name: NAME,
    doc: "Keys with the squares of the plane that contain coordinates, for `$geoWithin` and `$near`.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete,
    check,
    fields: |spec| fields(spec, NAME),
    generate,
    is_touched: ordinary::is_touched,
    bounds,
    tracks_arrays: false,
    needs_hash: true,
    shows_bounds: true,
    collates: false,
    is_alone: false,
    searches: Some(&search::OF_PLANE),
    options: &[],
    same_keys: |one, other| Plane::of(one) == Plane::of(other),
    state,
    views: None,
};

fn invalid<T>(text: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

fn check_bits(value: Value<'_>) -> Result<()> {
    match value.exact_i64() {
        Some(1..=32) => Ok(()),
        _ => invalid("bits for hash must be > 0 and <= 32"),
    }
}

/// Writes the bounds of the plane as doubles.
fn complete(spec: &mut IndexSpec, _: Doc<'_>) -> Result<()> {
    let options = spec.extra.as_doc();
    let given = |name: &'static str| Some((name, options.get(name)?));
    let bound = |name: &'static str| {
        let (_, value) = given(name)?;
        Some((name, value.to_f64().map_or(value, Value::Double)))
    };
    let first = [given("bits"), bound("min"), bound("max")];
    spec.extra = ordered(options, first.into_iter().flatten().collect());
    Ok(())
}

fn check(spec: &IndexSpec) -> Result<()> {
    let mut directions =
        spec.key.as_doc().fields().map(|(_, direction)| direction.as_str() == Some(NAME));
    if directions.next() != Some(true) {
        return Err(Error::location(16801, "2d has to be first in index"));
    }
    if directions.any(|is_second| is_second) {
        return Err(Error::location(16800, "can't have 2 geo fields"));
    }
    spec.extra.as_doc().get("bits").map_or(Ok(()), check_bits)?;
    let plane = Plane::of(spec);
    if plane.low >= plane.high {
        return invalid(format!(
            "region for hash must be valid and have positive area, but [{}, {}] was specified",
            plane.low, plane.high
        ));
    }
    Ok(())
}

fn state(spec: &IndexSpec) -> Option<State> {
    Some(Arc::new(Plane::of(spec)))
}

/// Returns the pairs of coordinates of a field. Strings, numbers and the like are no pairs.
///
/// # Errors
/// 16804, 13068 and 13026 for an array or a document that is no pair, 13027 for a pair outside of the
/// index.
fn positions(path: &Path, plane: &Plane, doc: Doc<'_>) -> Result<Vec<Position>> {
    let mut found = Vec::new();
    let visited = path.visit(doc, Leaf::Whole, |at| {
        match at.value.map_or(Ok(()), |value| add_positions(value, plane, &mut found)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(found),
    }
}

/// Adds the pair that a value is, or the pairs in an array.
fn add_positions(value: Value<'_>, plane: &Plane, found: &mut Vec<Position>) -> Result<()> {
    let no_pair =
        || Error::location(16804, "location object expected, location array not in correct format");
    let mut parts = match value {
        Value::Array(array) => array.iter().take(2).collect::<Vec<_>>(),
        Value::Document(doc) => doc.fields().take(2).map(|(_, part)| part).collect(),
        _ => return Ok(()),
    }
    .into_iter();
    let Some(first) = parts.next() else { return Ok(()) };
    let Some(x) = first.to_f64() else {
        let Value::Array(array) = value else { return Err(no_pair()) };
        return array.iter().try_for_each(|part| match part {
            Value::Array(_) | Value::Document(_) => add_positions(part, plane, found),
            _ => Err(no_pair()),
        });
    };
    let Some(second) = parts.next() else {
        return Err(Error::location(13068, "geo field only has 1 element"));
    };
    let Some(y) = second.to_f64() else {
        let text = "geo values must be 'legacy coordinate pairs' for 2d indexes";
        return Err(Error::location(13026, text));
    };
    let is_in = |coordinate: f64| (plane.low..=plane.high).contains(&coordinate);
    if !is_in(x) || !is_in(y) {
        let text = format!("point not in interval of [ {}, {} ]", plane.low, plane.high);
        return Err(Error::location(13027, text));
    }
    found.push(Position { x, y });
    Ok(())
}

fn generate<'a>(
    spec: &KeySpec,
    doc: Doc<'a>,
    _: &'a Arena,
    keys: &mut GeneratedKeys<'a>,
) -> Result<()> {
    let Some(plane) = Plane::in_keys(spec) else { return Ok(()) };
    let mut of_fields = Vec::with_capacity(spec.fields.len());
    for (field, path) in spec.fields.iter().zip(&spec.paths) {
        of_fields.push(match field.part {
            Part::Hash => {
                let found = positions(path, &plane, doc)?;
                if found.is_empty() {
                    return Ok(());
                }
                let mut numbers: Vec<i64> = found.iter().map(|at| plane.number(*at)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                FieldValues::places(path, numbers)
            }
            _ => FieldValues::plain(path, doc)?,
        });
    }
    product(&of_fields, keys)
}

fn bounds(spec: &KeySpec, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    let plane = Plane::in_keys(spec)?;
    if spec.fields.get(field)?.part != Part::Hash {
        return ordinary::field_bounds(spec, field, predicate);
    }
    let Predicate { test: Test::Open(test), negated: false, .. } = predicate else { return None };
    let GeoRelation::Within(region) = test.as_any().downcast_ref::<GeoTest>()?.relation() else {
        return None;
    };
    Some((of_region(&plane, region)?, Tightness::InexactFetch))
}

fn of_region(plane: &Plane, region: &Region) -> Option<Intervals> {
    if let Some((center, radians)) = region.cap() {
        return Some(plane.near(&NearCenter::Radians(center), radians));
    }
    let (low, high) = region.bounding_box()?;
    Some(plane.boxed(low, high))
}
