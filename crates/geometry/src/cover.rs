//! Cells: the squares of the sphere by which indexes find geometries. A geometry is indexed under a few
//! cells that cover it; a search reads the cells that cover its region, and their ancestors.

use s2::cap::Cap;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::cellunion::CellUnion;
use s2::point::Point;
use s2::region::{Region as S2Region, RegionCoverer};
use s2::s1::Angle;

use crate::edges::{Edge, any_pair, touches};
use crate::geometry::{Geometry, Piece};
use crate::near::NearCenter;
use crate::position::angle;
use crate::region::{Intersecting, Region, Shape};

/// The level of the smallest cells in an index: about a meter.
pub const FINEST_LEVEL: u8 = 23;
/// The most cells under which a geometry is indexed, and which cover a region, about.
const CELLS_MAX: usize = 20;

/// The ids of cells from the first to the last, both included.
pub type CellRange = (u64, u64);

/// Edges and the vertices of what they bound, as a region of crate `s2`.
struct Outline {
    piece: Piece,
    edges: Vec<Edge>,
    bound: Cap,
}

impl Outline {
    fn new(piece: Piece) -> Self {
        let edges = match &piece {
            Piece::Point(_, point) => vec![(*point, *point)],
            Piece::Line(line) => line.edges().to_vec(),
            Piece::Polygon(polygon) => polygon.edges(),
        };
        let bound = bound_of(&piece, &edges);
        Outline { piece, edges, bound }
    }
}

fn bound_of(piece: &Piece, edges: &[Edge]) -> Cap {
    if let Piece::Polygon(polygon) = piece {
        return match polygon.outer().bound() {
            Some((center, radius)) => cap(&center, radius),
            None => Cap::full(),
        };
    }
    let sum = edges.iter().fold(Point::from_coords(0.0, 0.0, 0.0).0, |sum, (a, b)| sum + a.0 + b.0);
    if sum.norm() < 1e-9 {
        return Cap::full();
    }
    let center = Point(sum.normalize());
    let farthest =
        edges.iter().flat_map(|(a, b)| [a, b]).map(|v| angle(&center, v)).fold(0.0, f64::max);
    if farthest < 1.5 { cap(&center, farthest + 1e-8) } else { Cap::full() }
}

fn cap(center: &Point, radius: f64) -> Cap {
    Cap::from_center_angle(center, &Angle::from(s2::s1::Rad(radius)))
}

impl S2Region for Outline {
    fn cap_bound(&self) -> Cap {
        self.bound.clone()
    }

    fn contains_cell(&self, cell: &Cell) -> bool {
        let Piece::Polygon(polygon) = &self.piece else { return false };
        cell.vertices().iter().all(|vertex| polygon.has(vertex))
            && !any_pair(&self.edges, &sides(cell), touches)
            && !polygon.vertices().any(|vertex| cell.contains_point(vertex))
    }

    fn intersects_cell(&self, cell: &Cell) -> bool {
        if !self.bound.intersects_cell(cell) {
            return false;
        }
        let inside = match &self.piece {
            Piece::Polygon(polygon) => cell.vertices().iter().any(|vertex| polygon.has(vertex)),
            Piece::Point(..) | Piece::Line(_) => false,
        };
        inside
            || self.edges.iter().any(|(a, b)| cell.contains_point(a) || cell.contains_point(b))
            || any_pair(&self.edges, &sides(cell), touches)
    }

    fn cell_union_bound(&self) -> Vec<CellID> {
        self.bound.cell_union_bound()
    }
}

fn sides(cell: &Cell) -> [Edge; 4] {
    let [a, b, c, d] = cell.vertices();
    [(a, b), (b, c), (c, d), (d, a)]
}

fn coverer() -> RegionCoverer {
    RegionCoverer { min_level: 0, max_level: FINEST_LEVEL, level_mod: 1, max_cells: CELLS_MAX }
}

/// Returns the cells under which a geometry is indexed, each once, in ascending order.
pub fn cells_of(geometry: &Geometry) -> Vec<u64> {
    let mut cells: Vec<u64> =
        geometry.0.iter().flat_map(|piece| cover(piece).0).map(|cell| cell.0).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

fn cover(piece: &Piece) -> CellUnion {
    match piece {
        Piece::Point(_, point) => {
            CellUnion(vec![CellID::from(*point).parent(u64::from(FINEST_LEVEL))])
        }
        other => coverer().covering(&Outline::new(other.clone())),
    }
}

/// Returns the ids that the cells of a matching geometry can have: those of the covering cells and
/// what is in them, and of the larger cells around them.
fn ranges(cells: impl IntoIterator<Item = CellID>) -> Vec<CellRange> {
    let mut ranges = Vec::new();
    for cell in cells {
        ranges.push((cell.range_min().0, cell.range_max().0));
        ranges.extend((0..cell.level()).map(|level| cell.parent(level).0).map(|id| (id, id)));
    }
    ranges.sort_unstable();
    let mut merged: Vec<CellRange> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// Returns the ranges of cells in which an index has all that may be in the region; `None` for a flat
/// region, which says nothing about the sphere.
pub fn ranges_within(region: &Region) -> Option<Vec<CellRange>> {
    match &region.0 {
        Shape::Flat(_) => None,
        Shape::Cap(center, radius) => {
            let bound = cap(center, (radius + 1e-8).min(std::f64::consts::PI));
            Some(ranges(coverer().covering(&bound).0))
        }
        Shape::Polygons(polygons) => {
            let pieces = polygons.iter().cloned().map(Piece::Polygon);
            Some(ranges(pieces.flat_map(|piece| cover(&piece).0)))
        }
    }
}

/// Returns the ranges of cells in which an index has all that may meet the geometry, or, for a search
/// near a center, all at distances between `from` and `to`.
pub fn ranges_of(what: &Intersecting) -> Vec<CellRange> {
    ranges(what.0.0.iter().flat_map(|piece| cover(piece).0))
}

impl NearCenter {
    /// Returns the ranges of cells in which an index has all whose distance is at most `to`; `None` for
    /// a flat center.
    pub fn ranges(&self, to: f64) -> Option<Vec<CellRange>> {
        let bound = cap(&self.point()?, (self.radians(to) + 1e-8).min(std::f64::consts::PI));
        Some(ranges(coverer().covering(&bound).0))
    }
}
