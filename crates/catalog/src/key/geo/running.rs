//! Runs a `$near`: reads the index in rings around the center, each wider than the one before.
//!
//! All documents with a key within a radius are read before one of them is given, so those within the
//! radius come out nearest first; what lies beyond it waits for the next ring. A ring that finds little
//! is followed by a wider one, of twice the radius at most, or four times if it finds nothing; a ring that
//! finds much by a narrower one.
//! So few documents wait at a time, wherever they lie.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::Arc;

use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_geometry::{EARTH_RADIUS_METERS, NearCenter};
use quire_mql::filter::NearQuery;

use super::intervals;
use super::plane::Plane;
use crate::key::{FoundKey, Intervals, SearchScan, Searching, Step};

/// The keys of one read.
const KEYS_MAX: usize = 1000;
/// The radius of the first ring on the sphere, in meters.
const FIRST_METERS: f64 = 500.0;
/// A ring that finds fewer documents is followed by a wider one.
const FEW: usize = 300;
/// A ring that finds more documents is followed by a narrower one.
const MANY: usize = 600;
/// A ring is at least this part of its radius wide.
const PARTS_MAX: f64 = 1024.0;
/// About the bytes of a document that waits, besides its geometry.
const ENTRY_BYTES: usize = 96;

/// A planned `$near`.
#[derive(Debug)]
pub(super) struct NearMethod {
    pub search: Arc<NearQuery>,
    /// The bounds of all fields but the geometries'.
    pub bounds: Vec<Intervals>,
    /// The position of the geometries' field.
    pub field: usize,
    /// The squares of a 2d index; `None` for the cells of the sphere.
    pub plane: Option<Plane>,
}

impl NearMethod {
    /// Returns the intervals of the geometries' field that have all whose distance is at most `to`.
    pub fn within(&self, to: f64) -> Intervals {
        let center = &self.search.near().center;
        match (&self.plane, center.ranges(to)) {
            (Some(plane), _) => plane.near(center, to),
            (None, Some(ranges)) => intervals(&ranges),
            (None, None) => Intervals::all(),
        }
    }
}

/// A running `$near`.
pub(super) struct Rings {
    method: NearMethod,
    /// Everything within this distance has been read, or is being read by the open scan.
    radius: f64,
    /// The width of the last ring.
    width: f64,
    /// The intervals that earlier rings have read.
    read: Intervals,
    /// The number of the open scan; `None` between rings.
    scan: Option<usize>,
    scans: usize,
    /// The records of this ring whose documents are not read yet.
    met: VecDeque<u64>,
    /// The records of all rings.
    seen: HashSet<u64>,
    /// The documents that were found and not given yet.
    waiting: BinaryHeap<Waiting>,
    waiting_bytes: usize,
    found_in_ring: usize,
}

/// A document that waits to be given.
struct Waiting {
    distance: f64,
    record: u64,
    metadata: DocBuf,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The greatest is the nearest, and among equal distances the older record.
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.record.cmp(&self.record))
    }
}

impl Rings {
    pub fn new(method: NearMethod) -> Self {
        Rings {
            method,
            radius: -1.0,
            width: 0.0,
            read: Intervals::none(),
            scan: None,
            scans: 0,
            met: VecDeque::new(),
            seen: HashSet::new(),
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            found_in_ring: 0,
        }
    }

    /// Returns the greatest distance that a result can have.
    fn farthest(&self) -> f64 {
        let near = self.method.search.near();
        let everywhere = match near.center {
            NearCenter::Meters(_) => std::f64::consts::PI * EARTH_RADIUS_METERS,
            NearCenter::Radians(_) => std::f64::consts::PI,
            NearCenter::Flat(center) => {
                self.method.plane.map_or(f64::INFINITY, |plane| plane.farthest(center))
            }
        };
        near.max.min(everywhere)
    }

    /// Returns the radius of the next ring; `None` if there is nothing beyond the last one.
    fn next_radius(&self) -> Option<f64> {
        let farthest = self.farthest();
        if self.radius >= farthest {
            return None;
        }
        let near = self.method.search.near();
        if self.radius < 0.0 {
            let first = match near.center {
                NearCenter::Meters(_) => FIRST_METERS,
                NearCenter::Radians(_) => FIRST_METERS / EARTH_RADIUS_METERS,
                NearCenter::Flat(_) => self.method.plane.map_or(1.0, |plane| plane.first_radius()),
            };
            return Some(first.max(near.min * 1.25).min(farthest));
        }
        let width = match self.found_in_ring {
            0 => self.radius * 3.0,
            1..FEW => (self.width * 2.0).min(self.radius),
            FEW..=MANY => self.width,
            _ => self.width / 2.0,
        };
        let width = width.max(self.radius / PARTS_MAX);
        Some((self.radius + width).min(farthest))
    }

    /// Returns the next ring's scan: what it has beyond the rings before.
    fn next_ring(&mut self) -> Option<SearchScan> {
        let radius = self.next_radius()?;
        let all = self.method.within(radius);
        let new = all.intersect(&self.read.complement());
        self.read = self.read.clone().union(all);
        self.width = radius - self.radius.max(0.0);
        self.radius = radius;
        self.found_in_ring = 0;
        let mut bounds = self.method.bounds.clone();
        if let Some(field) = bounds.get_mut(self.method.field) {
            *field = new;
        }
        Some(SearchScan { bounds, backward: false })
    }

    /// Returns the nearest document that waits, if no document that is not read yet can be nearer.
    fn nearest(&mut self) -> Option<Waiting> {
        let is_sure = self.waiting.peek().is_some_and(|first| first.distance <= self.radius);
        let first = is_sure.then(|| self.waiting.pop()).flatten()?;
        self.waiting_bytes -= ENTRY_BYTES + first.metadata.as_bytes().len();
        Some(first)
    }
}

impl Searching for Rings {
    fn step(&mut self) -> Result<Step> {
        loop {
            if let Some(record) = self.met.pop_front() {
                return Ok(Step::Document(record));
            }
            if let Some(scan) = self.scan {
                return Ok(Step::Keys { scan, max: KEYS_MAX });
            }
            if let Some(Waiting { record, metadata, .. }) = self.nearest() {
                return Ok(Step::Row { record, metadata });
            }
            let Some(ring) = self.next_ring() else { return Ok(Step::End) };
            if ring.bounds.iter().any(|intervals| intervals.0.is_empty()) {
                continue;
            }
            self.scan = Some(self.scans);
            self.scans += 1;
            return Ok(Step::Open(ring));
        }
    }

    fn key(&mut self, _: usize, key: &FoundKey<'_>) -> Result<()> {
        if self.seen.insert(key.record) {
            self.met.push_back(key.record);
        }
        Ok(())
    }

    fn ended(&mut self, scan: usize) {
        if self.scan == Some(scan) {
            self.scan = None;
        }
    }

    fn document(&mut self, record: u64, doc: Option<Doc<'_>>) -> Result<()> {
        let Some(doc) = doc else { return Ok(()) };
        let Some((distance, geometry)) = self.method.search.nearest(doc)? else { return Ok(()) };
        self.found_in_ring += 1;
        let metadata = NearQuery::metadata(distance, geometry);
        self.waiting_bytes += ENTRY_BYTES + metadata.as_bytes().len();
        self.waiting.push(Waiting { distance, record, metadata });
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.waiting_bytes + (self.seen.len() + self.met.len()) * 16
    }
}
