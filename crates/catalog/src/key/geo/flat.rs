//! The 2d index: one key for each pair of coordinates, a square of the plane, before the values of other
//! fields.
//!
//! A square is a number in which the bits of the two coordinates take turns (a Z-order curve), so that
//! squares in a larger square have neighbouring numbers.

use quire_document::path::{Leaf, Path};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_geometry::{NearCenter, Position, Region, number_pair};
use quire_mql::filter::{GeoRelation, GeoTest, Test};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::{FieldValues, fields, plain, product, search};
use crate::IndexSpec;
use crate::index_pattern::plugin_of;
use crate::key::{
    Arena, Bounds, GeneratedKeys, Interval, Intervals, KeySpec, Kind, Part, Predicate, State,
    Tightness, ordinary,
};

/// The name in a key pattern.
pub(super) const NAME: &str = "2d";
/// The number of squares by which a region is covered, about.
const SQUARES_MAX: usize = 32;

/// The registry row of this kind.
pub(in crate::key) const KIND: Kind = Kind {
    name: NAME,
    doc: "Keys with the squares of the plane that contain coordinates, for `$geoWithin` and `$near`.",
    fits: |pattern| plugin_of(pattern) == Some(NAME),
    complete: |_, _| Ok(()),
    check,
    fields: |spec| fields(spec, NAME),
    generate,
    is_touched: ordinary::is_touched,
    bounds,
    tracks_arrays: false,
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

/// The square of the plane that an index covers, and its division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plane {
    low: f64,
    high: f64,
    /// The number of halvings of each coordinate.
    bits: u32,
}

fn state(spec: &IndexSpec) -> Option<State> {
    Some(Arc::new(Plane::of(spec)))
}

impl Plane {
    fn of(spec: &IndexSpec) -> Self {
        let options = spec.extra.as_doc();
        let number = |name: &str| options.get(name).and_then(|value| value.to_f64());
        let bits = options.get("bits").and_then(|bits| bits.exact_i64());
        Plane {
            low: number("min").unwrap_or(-180.0),
            high: number("max").unwrap_or(180.0),
            bits: bits.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(26).clamp(1, 31),
        }
    }

    /// Returns the plane of a 2d index; `None` for another kind.
    pub fn in_keys(keys: &KeySpec) -> Option<Self> {
        keys.state.as_ref()?.downcast_ref().copied()
    }

    /// Returns the number of the square of one coordinate, which counts from `low`. Coordinates outside
    /// belong to the first or the last one.
    fn step(&self, coordinate: f64) -> u32 {
        let share = (coordinate - self.low) / (self.high - self.low);
        let steps = f64::from(1_u32 << self.bits);
        (share * steps).floor().clamp(0.0, steps - 1.0) as u32
    }

    fn number(&self, position: Position) -> i64 {
        interleave(self.step(position.x), self.step(position.y))
    }

    /// Fails with 16433 for a center outside of the plane.
    pub fn check(&self, center: Position) -> Result<()> {
        let is_in = |coordinate: f64| (self.low..=self.high).contains(&coordinate);
        if is_in(center.x) && is_in(center.y) {
            return Ok(());
        }
        let text = format!("point not in interval of [ {}, {} ]", self.low, self.high);
        Err(Error::location(16433, text))
    }

    /// Returns the radius of the first ring of a search.
    pub fn first_radius(&self) -> f64 {
        (self.high - self.low) / 4096.0
    }

    /// Returns the distance of the farthest point from a center.
    pub fn farthest(&self, center: Position) -> f64 {
        let far =
            |coordinate: f64| (coordinate - self.low).abs().max((self.high - coordinate).abs());
        far(center.x).hypot(far(center.y))
    }

    /// Returns the intervals of all whose distance from a center is at most `to`.
    pub fn near(&self, center: &NearCenter, to: f64) -> Intervals {
        let (center, reach) = match center {
            NearCenter::Flat(center) => (*center, (to, to)),
            NearCenter::Radians(center)
            | NearCenter::ByCosine(center)
            | NearCenter::Meters(center) => (*center, reach(*center, center_radians(to))),
        };
        let low = Position { x: center.x - reach.0, y: center.y - reach.1 };
        let high = Position { x: center.x + reach.0, y: center.y + reach.1 };
        // Beyond the date line the same places have other coordinates.
        if matches!(reach, (x, _) if x >= 180.0) || (low.x >= -180.0 && high.x <= 180.0) {
            return self.boxed(low, high);
        }
        let east = Position { x: low.x + 360.0, y: low.y };
        let west = Position { x: high.x - 360.0, y: high.y };
        let over_east = self.boxed(east, Position { x: 180.0, y: high.y });
        let over_west = self.boxed(Position { x: -180.0, y: low.y }, west);
        self.boxed(low, high).union(over_east).union(over_west)
    }

    /// Returns the intervals of the squares that meet a box.
    fn boxed(&self, low: Position, high: Position) -> Intervals {
        if low.x > high.x || low.y > high.y {
            return Intervals::none();
        }
        let low = (self.step(low.x), self.step(low.y));
        let high = (self.step(high.x), self.step(high.y));
        // The squares are divided, the largest first, until there are enough.
        let mut whole = Vec::new();
        let mut open = vec![(0_u32, 0_u32, self.bits)];
        while let Some((x, y, level)) = open.pop() {
            let size = (1_u64 << level) - 1;
            let (end_x, end_y) = (u64::from(x) + size, u64::from(y) + size);
            let outside =
                u64::from(low.0) > end_x || u64::from(low.1) > end_y || x > high.0 || y > high.1;
            if outside {
                continue;
            }
            let is_inside = low.0 <= x
                && low.1 <= y
                && end_x <= u64::from(high.0)
                && end_y <= u64::from(high.1);
            if is_inside || level == 0 || whole.len() + open.len() >= SQUARES_MAX {
                let first = interleave(x, y);
                let last = first + ((1_i64 << (2 * level)) - 1);
                whole.push(Intervals::of(Interval::new(first, true, last, true)));
                continue;
            }
            let half = 1 << (level - 1);
            open.extend([
                (x + half, y + half, level - 1),
                (x + half, y, level - 1),
                (x, y + half, level - 1),
                (x, y, level - 1),
            ]);
            // The largest are divided next.
            open.sort_by_key(|(_, _, level)| *level);
        }
        Intervals::union_of(whole)
    }
}

fn center_radians(distance: f64) -> f64 {
    distance.min(std::f64::consts::PI)
}

/// Returns how many degrees of longitude and of latitude a distance on the sphere reaches.
fn reach(center: Position, radians: f64) -> (f64, f64) {
    let latitude = radians.to_degrees() + 1e-6;
    if center.y.abs() + latitude >= 90.0 {
        return (360.0, latitude);
    }
    let width = (radians.sin() / center.y.to_radians().cos()).min(1.0).asin().to_degrees();
    (width + 1e-6, latitude)
}

/// Returns the number whose bits are those of `x` and `y` in turns.
fn interleave(x: u32, y: u32) -> i64 {
    let spread =
        |value: u32| (0..32).fold(0_u64, |all, bit| all | u64::from(value >> bit & 1) << (2 * bit));
    ((spread(x) << 1) | spread(y)).cast_signed()
}

/// Returns the pairs of coordinates of a field.
///
/// # Errors
/// 16804 for a value that is no pair, 13027 for one outside of the index.
fn positions(path: &Path, plane: &Plane, doc: Doc<'_>) -> Result<Vec<Position>> {
    let mut found = Vec::new();
    let mut take = |value: Value<'_>| -> Result<()> {
        let Some(position) = number_pair(value, false) else {
            let text = "location object expected, location array not in correct format";
            return Err(Error::location(16804, text));
        };
        let is_in = |coordinate: f64| (plane.low..=plane.high).contains(&coordinate);
        if !is_in(position.x) || !is_in(position.y) {
            return Err(Error::location(
                13027,
                format!("point not in interval of [ {}, {} ]", plane.low, plane.high),
            ));
        }
        found.push(position);
        Ok(())
    };
    let visited = path.visit(doc, Leaf::Whole, |at| {
        let added = match at.value {
            None | Some(Value::Null | Value::Undefined) => Ok(()),
            Some(Value::Array(array)) if number_pair(Value::Array(array), false).is_none() => {
                array.iter().try_for_each(&mut take)
            }
            Some(value) => take(value),
        };
        match added {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    });
    match visited {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(found),
    }
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
                let values = numbers.into_iter().map(|number| Some(Value::Int64(number))).collect();
                FieldValues { values, is_array: found.len() > 1 }
            }
            _ => plain(path, doc),
        });
    }
    product(&of_fields, keys)
}

fn bounds(spec: &KeySpec, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
    let plane = Plane::in_keys(spec)?;
    if spec.fields.get(field)?.part != Part::Hash {
        return None;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_squares_of_a_box_have_all_of_its_points_and_few_others() {
        let plane = Plane { low: -180.0, high: 180.0, bits: 26 };
        let (low, high) = (Position { x: -10.0, y: 3.0 }, Position { x: 20.0, y: 4.0 });
        let squares = plane.boxed(low, high);
        let has = |x: f64, y: f64| {
            let number = plane.number(Position { x, y });
            !squares.intersect(&Intervals::point(number)).0.is_empty()
        };
        for x in 0..=30 {
            for y in 0..=10 {
                assert!(has(-10.0 + f64::from(x), 3.0 + f64::from(y) / 10.0));
            }
        }
        let others =
            (-179..179).flat_map(|x| (-179..179).map(move |y| (f64::from(x), f64::from(y))));
        let wrong = others.filter(|(x, y)| has(*x, *y)).count();
        assert!(wrong < 600, "{wrong} of 128,000 points");
        assert!(squares.0.len() <= 2 * SQUARES_MAX);
    }
}
