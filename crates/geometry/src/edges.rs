//! Edges on the sphere: the shortest ways between two points, and lists of them that find the edges
//! in a part of space.
//!
//! Neighbours in a line or a ring are near each other in space, too. So boxes around runs of
//! neighbours, boxes around runs of such boxes, and so on, are an R-tree that needs no sorting.

use std::ops::Range;

use quire_error::Result;
use s2::edge_crossings::{Crossing, crossing_sign, edge_or_vertex_crossing};
use s2::edgeutil::distance_from_segment;
use s2::point::Point;
use s2::r3::vector::Vector;

use crate::position::ON_EDGE;
use crate::work::Work;

/// The two ends of an edge.
pub(crate) type Edge = (Point, Point);

/// The number of edges or boxes in a box.
const RUN: usize = 8;
/// The units of work for the relation of two edges.
pub(crate) const RELATION_UNITS: u32 = 16;

/// The smallest box around edges, a little enlarged: its center and half of its widths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    center: Vector,
    half: Vector,
}

impl Extent {
    /// Returns the box around an edge. The arc lies between its chord and the chord moved outwards by
    /// as much as the middle of the arc is beyond the middle of the chord.
    pub fn of((a, b): &Edge) -> Self {
        let middle = (a.0 + b.0) * 0.5;
        let length = middle.norm();
        let (outwards, margin) = match length > 1e-9 {
            true => (middle * ((1.0 - length).max(0.0) / length), 2.0 * ON_EDGE),
            false => (Vector { x: 0.0, y: 0.0, z: 0.0 }, 1.0),
        };
        let axis = |one: f64, other: f64, outwards: f64| {
            let low = one.min(other) + outwards.min(0.0) - margin;
            let high = one.max(other) + outwards.max(0.0) + margin;
            ((low + high) / 2.0, (high - low) / 2.0)
        };
        let (x, y, z) = (
            axis(a.0.x, b.0.x, outwards.x),
            axis(a.0.y, b.0.y, outwards.y),
            axis(a.0.z, b.0.z, outwards.z),
        );
        Extent {
            center: Vector { x: x.0, y: y.0, z: z.0 },
            half: Vector { x: x.1, y: y.1, z: z.1 },
        }
    }

    /// Returns the box around all boxes; one that meets nothing if there are none.
    fn around(boxes: impl Iterator<Item = Extent>) -> Self {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for Extent { center, half } in boxes {
            let axes = [(center.x, half.x), (center.y, half.y), (center.z, half.z)];
            for (axis, (middle, half)) in axes.into_iter().enumerate() {
                low[axis] = low[axis].min(middle - half);
                high[axis] = high[axis].max(middle + half);
            }
        }
        let vector = |of: &dyn Fn(usize) -> f64| Vector { x: of(0), y: of(1), z: of(2) };
        Extent {
            center: vector(&|axis| (low[axis] + high[axis]) / 2.0),
            half: vector(&|axis| (high[axis] - low[axis]) / 2.0),
        }
    }

    fn meets(&self, other: &Extent) -> bool {
        let near = |one: f64, other: f64, half: f64| (one - other).abs() <= half;
        near(self.center.x, other.center.x, self.half.x + other.half.x)
            && near(self.center.y, other.center.y, self.half.y + other.half.y)
            && near(self.center.z, other.center.z, self.half.z + other.half.z)
    }

    /// Returns true if the box meets the plane through the origin with this normal.
    fn meets_plane(&self, normal: &Vector) -> bool {
        let half = normal.x.abs() * self.half.x
            + normal.y.abs() * self.half.y
            + normal.z.abs() * self.half.z;
        self.center.dot(normal).abs() <= half
    }
}

/// A list of edges, of which most neighbours share an end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edges {
    all: Vec<Edge>,
    /// Boxes around runs of edges, then around runs of those boxes, and so on up to one run.
    levels: Vec<Vec<Extent>>,
    whole: Extent,
}

impl Edges {
    pub fn new(all: Vec<Edge>) -> Self {
        let mut levels: Vec<Vec<Extent>> = Vec::new();
        if all.len() > RUN {
            let around = |run: &[Edge]| Extent::around(run.iter().map(Extent::of));
            let mut level: Vec<Extent> = all.chunks(RUN).map(around).collect();
            while level.len() > RUN {
                let around = |run: &[Extent]| Extent::around(run.iter().copied());
                let above = level.chunks(RUN).map(around).collect();
                levels.push(std::mem::replace(&mut level, above));
            }
            levels.push(level);
        }
        let whole = match levels.last() {
            Some(top) => Extent::around(top.iter().copied()),
            None => Extent::around(all.iter().map(Extent::of)),
        };
        Edges { all, levels, whole }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Edge> {
        self.all.iter()
    }

    /// Calls `visit` for each edge whose box passes `meets`, with its number, until it returns true.
    /// All boxes around an edge that `visit` needs must pass.
    fn search(
        &self,
        meets: &dyn Fn(&Extent) -> bool,
        work: Work<'_>,
        visit: &mut dyn FnMut(usize, &Edge) -> bool,
    ) -> Result<bool> {
        let top = self.levels.last().map_or(self.all.len(), Vec::len);
        let search = Search { edges: self, meets, work };
        search.run(self.levels.len(), 0..top, visit)
    }

    /// Returns true if `relate` holds for one of these edges and `edge`, of those near each other.
    pub fn any(
        &self,
        edge: &Edge,
        work: Work<'_>,
        mut relate: impl FnMut(&Edge, &Edge) -> bool,
    ) -> Result<bool> {
        let extent = Extent::of(edge);
        if !self.whole.meets(&extent) {
            return work(1).map(|()| false);
        }
        self.search(&|other| extent.meets(other), work, &mut |_, own| relate(own, edge))
    }

    /// Returns true if `relate` holds for one of these edges and one of `others`, of those near each
    /// other.
    pub fn any_pair(
        &self,
        others: &Edges,
        work: Work<'_>,
        mut relate: impl FnMut(&Edge, &Edge) -> bool,
    ) -> Result<bool> {
        if !self.whole.meets(&others.whole) {
            return Ok(false);
        }
        // The longer list is searched for each edge of the shorter one.
        let (short, long) = if self.len() < others.len() { (self, others) } else { (others, self) };
        for edge in short.iter() {
            if long.any(edge, work, |one, other| relate(one, other))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if two of these edges cross each other.
    pub fn cross_themselves(&self, work: Work<'_>) -> Result<bool> {
        for (number, edge) in self.all.iter().enumerate() {
            let extent = Extent::of(edge);
            let mut crossed = |at: usize, other: &Edge| at > number && crosses(edge, other);
            if self.search(&|other| extent.meets(other), work, &mut crossed)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of edges that the way between two points crosses, as S2 counts crossings at
    /// a vertex.
    pub fn crossings(&self, from: &Point, to: &Point, work: Work<'_>) -> Result<usize> {
        let (way, plane) = (Extent::of(&(*from, *to)), from.0.cross(&to.0));
        let mut count = 0;
        self.search(
            &|extent| extent.meets(&way) && extent.meets_plane(&plane),
            work,
            &mut |_, (a, b)| {
                count += usize::from(edge_or_vertex_crossing(from, to, a, b));
                false
            },
        )?;
        Ok(count)
    }

    /// Returns true if a point is on one of the edges.
    pub fn has(&self, point: &Point, work: Work<'_>) -> Result<bool> {
        self.any(&(*point, *point), work, |own, _| is_on(point, own))
    }

    /// Returns the angle between a point and the nearest point of the edges, in radians.
    pub fn distance(&self, point: &Point, work: Work<'_>) -> Result<f64> {
        let mut least = f64::INFINITY;
        for run in self.all.chunks(RUN) {
            crate::work::each(run.len(), RELATION_UNITS / 2, work)?;
            least = run.iter().map(|edge| distance(point, edge)).fold(least, f64::min);
        }
        Ok(least)
    }
}

/// A search of the boxes.
struct Search<'s> {
    edges: &'s Edges,
    meets: &'s dyn Fn(&Extent) -> bool,
    work: Work<'s>,
}

impl Search<'_> {
    /// Searches a run of the boxes below `level`; of the edges at level 0.
    fn run(
        &self,
        level: usize,
        run: Range<usize>,
        visit: &mut dyn FnMut(usize, &Edge) -> bool,
    ) -> Result<bool> {
        let Some(below) = level.checked_sub(1) else { return self.run_of_edges(run, visit) };
        (self.work)(1)?;
        let boxes = self.edges.levels.get(below).map_or(&[][..], Vec::as_slice);
        let boxes = boxes.get(run.start..run.end.min(boxes.len())).unwrap_or_default();
        for (number, extent) in run.zip(boxes) {
            let first = number * RUN;
            if (self.meets)(extent) && self.run(below, first..first + RUN, visit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_of_edges(
        &self,
        run: Range<usize>,
        visit: &mut dyn FnMut(usize, &Edge) -> bool,
    ) -> Result<bool> {
        (self.work)(8)?;
        let all = &self.edges.all;
        let edges = all.get(run.start..run.end.min(all.len())).unwrap_or_default();
        for (number, edge) in run.zip(edges) {
            if (self.meets)(&Extent::of(edge)) {
                (self.work)(RELATION_UNITS)?;
                if visit(number, edge) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns true if two edges cross at a point inside both.
pub(crate) fn crosses((a, b): &Edge, (c, d): &Edge) -> bool {
    crossing_sign(a, b, c, d) == Crossing::Cross
}

/// Returns true if two edges have a point in common.
pub(crate) fn touches(one: &Edge, other: &Edge) -> bool {
    crossing_sign(&one.0, &one.1, &other.0, &other.1) != Crossing::DoNotCross
        || is_on(&one.0, other)
        || is_on(&one.1, other)
        || is_on(&other.0, one)
        || is_on(&other.1, one)
}

/// Returns true if a point is on an edge.
fn is_on(point: &Point, edge: &Edge) -> bool {
    distance(point, edge) <= ON_EDGE
}

/// Returns the angle between a point and the nearest point of an edge, in radians.
pub(crate) fn distance(point: &Point, (a, b): &Edge) -> f64 {
    distance_from_segment(point, a, b).rad()
}

/// Returns the point in the middle of an edge.
pub(crate) fn middle((a, b): &Edge) -> Point {
    Point((a.0 + b.0).normalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use quire_document::testing::Generator;
    use std::cell::Cell;

    const FREE: Work<'_> = &|_| Ok(());

    fn place(random: &mut Generator, width: f64) -> Point {
        let mut shift = || (random.below(20_001) as f64 / 10_000.0 - 1.0) * width;
        Position { x: 20.0 + shift(), y: (80.0 + shift()).min(90.0) }.point()
    }

    /// Returns the edges of a random walk whose steps are `width` degrees at most.
    fn walk(random: &mut Generator, count: usize, width: f64) -> Edges {
        let mut at = Position { x: 20.0, y: 80.0 };
        let mut points = Vec::new();
        for _ in 0..=count {
            let mut shift = || (random.below(20_001) as f64 / 10_000.0 - 1.0) * width;
            at = Position { x: at.x + shift(), y: (at.y + shift()).clamp(-90.0, 90.0) };
            points.push(at.point());
        }
        Edges::new(points.windows(2).map(|pair| (pair[0], pair[1])).collect())
    }

    #[test]
    fn searches_find_what_comparing_all_pairs_finds() {
        let mut random = Generator::new(5);
        for round in 0..60 {
            let width = [0.001, 0.5, 20.0][round % 3];
            let counts = [1, 7, 8, 9, 64, 65, 300];
            let mut edges = || {
                let count = counts[random.below(counts.len() as u64) as usize];
                walk(&mut random, count, width)
            };
            let (one, other) = (edges(), edges());
            for relate in [crosses, touches] {
                let all = one.iter().any(|a| other.iter().any(|b| relate(a, b)));
                assert_eq!(one.any_pair(&other, FREE, relate).unwrap(), all, "round {round}");
            }
            let pairs = || {
                one.iter()
                    .enumerate()
                    .flat_map(|(at, a)| one.iter().skip(at + 1).map(move |b| (a, b)))
            };
            let all = pairs().any(|(a, b)| crosses(a, b));
            assert_eq!(one.cross_themselves(FREE).unwrap(), all, "round {round}");
            for _ in 0..20 {
                let (from, to) = (Point::origin(), place(&mut random, width * 2.0));
                let crossed = one.iter().filter(|(a, b)| edge_or_vertex_crossing(&from, &to, a, b));
                assert_eq!(one.crossings(&from, &to, FREE).unwrap(), crossed.count());
                let vertex = &one.all[random.below(one.len() as u64) as usize].0;
                assert!(one.has(vertex, FREE).unwrap());
                assert_eq!(one.has(&to, FREE).unwrap(), one.iter().any(|edge| is_on(&to, edge)));
            }
        }
    }

    /// A ring that is looked at whole for each point, or each pair of whose edges is compared, would
    /// take far more work.
    #[test]
    fn a_search_reads_few_of_many_edges() {
        let count = 100_000;
        let corner = |number: u32| {
            let angle = std::f64::consts::TAU * f64::from(number) / f64::from(count);
            Position { x: 10.0 * angle.cos(), y: 10.0 * angle.sin() }.point()
        };
        let ring: Vec<Edge> =
            (0..count).map(|number| (corner(number), corner((number + 1) % count))).collect();
        let (edges, done) = (Edges::new(ring), Cell::new(0_u64));
        let counting = |units: u32| {
            done.set(done.get() + u64::from(units));
            Ok(())
        };
        let inside = Position { x: 3.0, y: 4.0 }.point();
        assert_eq!(edges.crossings(&Point::origin(), &inside, &counting).unwrap() % 2, 1);
        assert!(done.take() < 10_000);
        assert!(!edges.cross_themselves(&counting).unwrap());
        assert!((100_000..100_000_000).contains(&done.take()));
    }
}
