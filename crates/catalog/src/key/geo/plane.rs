//! The plane of a 2d index: a square of coordinates, divided into squares whose numbers are the keys.

use quire_error::{Error, Result};
use quire_geometry::{NearCenter, Position};

use crate::IndexSpec;
use crate::key::{Interval, Intervals, KeySpec};

/// The name in a key pattern.
pub(super) const NAME: &str = "2d";
/// The number of squares by which a region is covered, about.
const SQUARES_MAX: usize = 32;

/// The square of the plane that an index covers, and its division.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plane {
    pub low: f64,
    pub high: f64,
    /// The number of halvings of each coordinate.
    bits: u32,
}

impl Plane {
    pub fn of(spec: &IndexSpec) -> Self {
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

    pub fn number(&self, position: Position) -> i64 {
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
            NearCenter::Radians(center) | NearCenter::Meters(center) => {
                (*center, reach(*center, center_radians(to)))
            }
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
    pub fn boxed(&self, low: Position, high: Position) -> Intervals {
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
                whole.push((first, last));
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
        whole.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(whole.len());
        for (first, last) in whole {
            match merged.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        let interval = |(first, last)| Intervals::of(Interval::new(first, true, last, true));
        Intervals::union_of(merged.into_iter().map(interval))
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
