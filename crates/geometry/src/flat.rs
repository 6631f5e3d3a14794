//! Shapes in the plane, of legacy coordinates: they contain points only. Their boundaries belong to them.

use crate::position::Position;

/// A flat shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Flat {
    /// The corners with the smallest and the largest coordinates.
    Box(Position, Position),
    Polygon(Vec<Position>),
    /// A center and a radius.
    Circle(Position, f64),
}

impl Flat {
    /// Returns the corners of the smallest box around the shape.
    pub fn bounding_box(&self) -> (Position, Position) {
        match self {
            Flat::Box(low, high) => (*low, *high),
            Flat::Circle(at, radius) => (
                Position { x: at.x - radius, y: at.y - radius },
                Position { x: at.x + radius, y: at.y + radius },
            ),
            Flat::Polygon(corners) => {
                let all = |pick: fn(f64, f64) -> f64, start: f64| Position {
                    x: corners.iter().map(|corner| corner.x).fold(start, pick),
                    y: corners.iter().map(|corner| corner.y).fold(start, pick),
                };
                (all(f64::min, f64::INFINITY), all(f64::max, f64::NEG_INFINITY))
            }
        }
    }

    /// Returns the number of corners that a test of a point looks at.
    pub fn corners(&self) -> usize {
        match self {
            Flat::Box(..) | Flat::Circle(..) => 1,
            Flat::Polygon(corners) => corners.len(),
        }
    }

    pub fn has(&self, point: Position) -> bool {
        match self {
            Flat::Box(low, high) => {
                (low.x..=high.x).contains(&point.x) && (low.y..=high.y).contains(&point.y)
            }
            Flat::Circle(center, radius) => distance(*center, point) <= *radius,
            Flat::Polygon(corners) => is_on_edge(corners, point) || is_inside(corners, point),
        }
    }
}

/// Returns the distance of two points in the plane.
pub(crate) fn distance(one: Position, other: Position) -> f64 {
    (one.x - other.x).hypot(one.y - other.y)
}

/// Returns true if the point is a corner, or on an edge along an axis. As in MongoDB, a point on
/// another edge may be outside.
fn is_on_edge(corners: &[Position], point: Position) -> bool {
    let next = corners.iter().cycle().skip(1);
    let between = |a: f64, b: f64, at: f64| (a.min(b)..=a.max(b)).contains(&at);
    corners.iter().zip(next).any(|(a, b)| {
        *a == point
            || (a.x == b.x && point.x == a.x && between(a.y, b.y, point.y))
            || (a.y == b.y && point.y == a.y && between(a.x, b.x, point.x))
    })
}

/// Counts the edges to the right of the point: it is inside if their number is odd (the even-odd
/// rule).
fn is_inside(corners: &[Position], point: Position) -> bool {
    let next = corners.iter().cycle().skip(1);
    let crossed = corners.iter().zip(next).filter(|(a, b)| {
        let (low, high) = (a.y.min(b.y), a.y.max(b.y));
        if !(point.y > low && point.y <= high && point.x <= a.x.max(b.x)) {
            return false;
        }
        let at = (point.y - a.y) * (b.x - a.x) / (b.y - a.y) + a.x;
        a.x == b.x || point.x <= at
    });
    crossed.count() % 2 == 1
}
