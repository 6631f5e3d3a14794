//! Cells: the squares of the sphere by which indexes find geometries. A geometry is indexed under a few
//! cells that cover it; a search reads the cells that cover its region, and their ancestors.

use std::collections::VecDeque;

use quire_error::Result;
use s2::cap::Cap;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::point::Point;
use s2::region::{Region as S2Region, RegionCoverer};
use s2::s1::Angle;

use crate::edges::{Edges, touches};
use crate::geometry::{Geometry, Piece};
use crate::near::NearCenter;
use crate::position::angle;
use crate::region::{Intersecting, Region, Shape};
use crate::work::Work;

/// The level of the smallest cells that cover lines and polygons: about a meter.
const FINEST_LEVEL: u8 = 23;
/// The most cells under which a geometry is indexed, and which cover a region, about.
const CELLS_MAX: usize = 20;

/// The ids of cells from the first to the last, both included.
pub type CellRange = (u64, u64);

/// How much of a cell belongs to a piece.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Share {
    None,
    Some,
    All,
}

/// Returns how much of a cell belongs to a line or a polygon.
fn share(piece: &Piece, cell: &Cell, work: Work<'_>) -> Result<Share> {
    let [a, b, c, d] = cell.vertices();
    let sides = Edges::new(vec![(a, b), (b, c), (c, d), (d, a)]);
    // Where no edge touches the sides, each ring or line is wholly inside of the cell or outside.
    let is_inside = |point: Option<&Point>| point.is_some_and(|point| cell.contains_point(point));
    let (touched, has_edges) = match piece {
        Piece::Point(_, point) => (false, cell.contains_point(point)),
        Piece::Line(line) => {
            (line.edges().any_pair(&sides, work, touches)?, is_inside(line.points().next()))
        }
        Piece::Polygon(polygon) => {
            let mut rings = polygon.rings();
            let touched = polygon.any_pair(&sides, work, touches)?;
            (touched, rings.any(|ring| is_inside(ring.vertices().next())))
        }
    };
    Ok(match piece {
        _ if touched || has_edges => Share::Some,
        Piece::Polygon(polygon) if polygon.has(&a, work)? => Share::All,
        _ => Share::None,
    })
}

/// Returns a cap around a line or a polygon.
fn bound_of(piece: &Piece) -> Cap {
    let line = match piece {
        Piece::Point(_, point) => return Cap::from(point),
        Piece::Polygon(polygon) => {
            return polygon.outer().bound().map_or_else(Cap::full, |(at, radius)| cap(&at, radius));
        }
        Piece::Line(line) => line,
    };
    let sum = line.points().fold(Point::from_coords(0.0, 0.0, 0.0).0, |sum, point| sum + point.0);
    if sum.norm() < 1e-9 {
        return Cap::full();
    }
    let center = Point(sum.normalize());
    let farthest = line.points().map(|point| angle(&center, point)).fold(0.0, f64::max);
    if farthest < 1.5 { cap(&center, farthest + 1e-8) } else { Cap::full() }
}

fn cap(center: &Point, radius: f64) -> Cap {
    Cap::from_center_angle(center, &Angle::from(s2::s1::Rad(radius)))
}

fn coverer() -> RegionCoverer {
    RegionCoverer { min_level: 0, max_level: FINEST_LEVEL, level_mod: 1, max_cells: CELLS_MAX }
}

/// Returns the cells under which a geometry is indexed, each once, in ascending order.
///
/// # Errors
/// That of `work`.
pub fn cells_of(geometry: &Geometry, work: Work<'_>) -> Result<Vec<u64>> {
    let mut cells = Vec::new();
    for piece in &geometry.0 {
        cells.extend(cover(piece, work)?.into_iter().map(|cell| cell.0));
    }
    cells.sort_unstable();
    cells.dedup();
    Ok(cells)
}

/// Returns cells that cover a piece: the smallest one around a point, so that a unique index tells points
/// apart. Of other pieces, the largest cells are divided first, until there are about
/// `CELLS_MAX` of them or they are the smallest ones.
fn cover(piece: &Piece, work: Work<'_>) -> Result<Vec<CellID>> {
    if let Piece::Point(_, point) = piece {
        work(16)?;
        return Ok(vec![CellID::from(*point)]);
    }
    let mut whole = Vec::new();
    let mut open = VecDeque::new();
    let add = |id: CellID, open: &mut VecDeque<CellID>, whole: &mut Vec<CellID>| {
        match share(piece, &Cell::from(id), work)? {
            Share::None => {}
            Share::Some if id.level() < u64::from(FINEST_LEVEL) => open.push_back(id),
            Share::Some | Share::All => whole.push(id),
        }
        Ok::<(), quire_error::Error>(())
    };
    for id in bound_of(piece).cell_union_bound() {
        let id = id.parent(id.level().min(u64::from(FINEST_LEVEL)));
        add(id, &mut open, &mut whole)?;
    }
    while let Some(id) = open.pop_front() {
        let (mut inside, mut divided) = (Vec::new(), VecDeque::new());
        for child in id.children() {
            add(child, &mut divided, &mut inside)?;
        }
        if whole.len() + open.len() + inside.len() + divided.len() > CELLS_MAX {
            whole.push(id);
            continue;
        }
        whole.extend(inside);
        open.extend(divided);
    }
    whole.sort_unstable();
    whole.dedup();
    Ok(whole)
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
            // The smallest cells have odd ids, so neighbours are two apart. The ids are the bits of
            // signed longs, so a range ends at the highest bit.
            Some(last) if low <= last.1.saturating_add(2) && (low ^ last.1) >> 63 == 0 => {
                last.1 = last.1.max(high);
            }
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// Returns the ranges of cells in which an index has all that may be in the region; `None` for a flat
/// region, which says nothing about the sphere.
///
/// # Errors
/// That of `work`.
pub fn ranges_within(region: &Region, work: Work<'_>) -> Result<Option<Vec<CellRange>>> {
    match &region.0 {
        Shape::Flat(_) => Ok(None),
        Shape::Cap(center, radius) => {
            let bound = cap(center, (radius + 1e-8).min(std::f64::consts::PI));
            Ok(Some(ranges(coverer().covering(&bound).0)))
        }
        Shape::Polygons(polygons) => {
            let mut cells = Vec::new();
            for polygon in polygons {
                cells.extend(cover(&Piece::Polygon(polygon.clone()), work)?);
            }
            Ok(Some(ranges(cells)))
        }
    }
}

/// Returns the ranges of cells in which an index has all that may meet the geometry.
///
/// # Errors
/// That of `work`.
pub fn ranges_of(what: &Intersecting, work: Work<'_>) -> Result<Vec<CellRange>> {
    let mut cells = Vec::new();
    for piece in &what.0.0 {
        cells.extend(cover(piece, work)?);
    }
    Ok(ranges(cells))
}

impl NearCenter {
    /// Returns the ranges of cells in which an index has all whose distance is at most `to`; `None` for
    /// a flat center.
    pub fn ranges(&self, to: f64) -> Option<Vec<CellRange>> {
        let bound = cap(&self.point()?, (self.radians(to) + 1e-8).min(std::f64::consts::PI));
        Some(ranges(coverer().covering(&bound).0))
    }
}
