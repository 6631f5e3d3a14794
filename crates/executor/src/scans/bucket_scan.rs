//! UNPACK_TS_BUCKET: the points of the buckets of a time-series collection, bucket by bucket or in the order of their
//! times.
//!
//! Conditions on the meta field and on the time are tested for a bucket as a whole, so most buckets of other sources
//! and times are not unpacked. In the order of the times the scan goes slice by slice (`bucket_slices.rs`), because the
//! buckets of many sources overlap.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use quire_collections::{BucketCursor, BucketEntry, PackedBucket, Span};
use quire_document::{Doc, DocBuf, ValueBuf};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::BucketScan;
use quire_planner::explain::NodeStats;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::operators::{Filling, Operator, Passed, make_and_drop};
use crate::row::Row;
use crate::scans::bucket_slices::Slices;
use crate::table::Table;

/// The entries of a page of the directory.
const PAGE_ROWS: usize = 256;

/// What a scan reads, and what it tests.
pub(crate) struct Wanted {
    pub table: Table,
    pub scan: Box<BucketScan>,
    of_meta: Option<Matcher>,
    rest: Option<Matcher>,
    pub stats: NodeStats,
}

/// A scan of buckets.
pub(crate) struct Buckets {
    wanted: Wanted,
    order: Order,
}

enum Order {
    /// Bucket by bucket.
    Any(Walk),
    /// By time.
    ByTime(Slices),
}

/// A walk over buckets in the order of the directory.
#[derive(Default)]
struct Walk {
    cursor: Option<BucketCursor>,
    entries: VecDeque<BucketEntry>,
    /// The bucket whose points are being returned.
    current: Option<Current>,
    is_done: bool,
}

/// A bucket, and how far its points were returned.
struct Current {
    entry: BucketEntry,
    /// The position of the next point, and the end of the wanted points.
    next: usize,
    end: usize,
    /// The points from `next` on; empty if they must be unpacked again.
    points: VecDeque<(Bytes, quire_collections::RecordId)>,
}

impl Wanted {
    fn new(scan: &BucketScan, compile: impl Fn(&quire_mql::filter::Node) -> Filter) -> Self {
        let matcher =
            |condition: &Option<_>| condition.as_ref().map(|it| Matcher::new(compile(it)));
        Wanted {
            table: Table::new(&scan.collection),
            of_meta: matcher(&scan.of_meta),
            rest: matcher(&scan.rest),
            scan: Box::new(scan.clone()),
            stats: NodeStats::default(),
        }
    }

    /// Returns the times of the wanted points.
    pub fn times(&self) -> Span {
        let (first, last) = self.scan.times;
        Span { first, last }
    }

    /// Returns the longest time between two points of a bucket, in milliseconds. Buckets of the past were not longer.
    pub fn span_ms(&mut self, run: &Run<'_>) -> Result<i64> {
        let series = self.table.resolve(run)?.options.time_series();
        Ok(series.map_or(0, |series| i64::from(series.buckets.span_seconds()) * 1000))
    }

    /// Returns a cursor over the buckets that may have points with times in `times`.
    pub fn cursor(
        &mut self,
        run: &Run<'_>,
        times: Span,
        direction: Direction,
    ) -> Result<Option<BucketCursor>> {
        let begins = Span { first: times.first.saturating_sub(self.span_ms(run)?), ..times };
        let collection = self.table.resolve(run)?;
        let Some(buckets) = collection.buckets else { return Ok(None) };
        let meta = self.scan.meta.as_ref().map(ValueBuf::as_value);
        Ok(Some(match meta {
            Some(meta) => BucketCursor::of_meta(buckets, Some(meta), begins, direction),
            None => BucketCursor::by_time(buckets, begins, direction),
        }))
    }

    /// Returns true if points of the bucket may be wanted. Counts a bucket that is skipped.
    pub fn may_match(&mut self, entry: &BucketEntry, run: &Run<'_>, times: Span) -> Result<bool> {
        let mut may = entry.max_ms >= times.first && entry.min_ms <= times.last;
        if let (true, Some(of_meta)) = (may, &mut self.of_meta) {
            let series = self.scan.collection.options.time_series();
            let field = series.and_then(|series| series.meta_field.as_deref());
            let source = DocBuf::build(|writer| {
                if let (Some(field), Some(meta)) = (field, &entry.meta) {
                    writer.append(field, meta);
                }
            });
            may = of_meta.matches(source.as_doc(), run.scope())?;
        }
        Ok(may)
    }

    /// Returns the bucket of an entry; `None` if it has expired since the entry was read.
    pub fn open(&mut self, run: &Run<'_>, entry: &BucketEntry) -> Result<Option<PackedBucket>> {
        let view = run.view();
        let bucket = view.bucket_if_there(self.table.resolve(run)?, entry)?;
        self.stats.buckets_read += u64::from(bucket.is_some());
        Ok(bucket)
    }

    /// Returns points of a bucket, with the fields that are read.
    pub fn unpack(&self, bucket: &PackedBucket, at: Range<usize>) -> Result<Vec<Bytes>> {
        if let Some(fields) = &self.scan.fields
            && let Some(points) = bucket.narrow_points(at.clone(), fields)?
        {
            return Ok(points);
        }
        bucket.points(at)
    }

    /// Returns true if a point passes the conditions on points.
    pub fn matches(&mut self, point: &Bytes, run: &Run<'_>) -> Result<bool> {
        self.stats.docs_examined += 1;
        self.stats.bytes_read += point.len() as u64;
        match &mut self.rest {
            Some(rest) => rest.matches(Doc::from_valid_bytes(point), run.scope()),
            None => Ok(true),
        }
    }
}

impl Buckets {
    pub fn new(scan: &BucketScan, compile: impl Fn(&quire_mql::filter::Node) -> Filter) -> Self {
        let order = match scan.by_time {
            None => Order::Any(Walk::default()),
            Some(backward) => Order::ByTime(Slices::new(backward)),
        };
        Buckets { wanted: Wanted::new(scan, compile), order }
    }
}

impl Walk {
    /// Makes sure that there is a current bucket or that the walk is done.
    fn advance(&mut self, wanted: &mut Wanted, run: &mut Run<'_>) -> Result<()> {
        while self.current.is_none() && !self.is_done {
            let Some(entry) = self.next_entry(wanted, run)? else { return Ok(()) };
            let Some(bucket) = wanted.open(run, &entry)? else { continue };
            let at = bucket.within(wanted.times())?;
            self.current = Some(Current::of(wanted, &bucket, entry, at)?);
        }
        Ok(())
    }

    /// Returns the next bucket that may have wanted points; `None` at the end.
    fn next_entry(
        &mut self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
    ) -> Result<Option<BucketEntry>> {
        let times = wanted.times();
        loop {
            while let Some(entry) = self.entries.pop_front() {
                if wanted.may_match(&entry, run, times)? {
                    return Ok(Some(entry));
                }
                wanted.stats.buckets_skipped += 1;
            }
            run.pause()?;
            if self.cursor.is_none() {
                self.cursor = wanted.cursor(run, times, Direction::Forward)?;
            }
            let Some(cursor) = &mut self.cursor else { break };
            let mut page = Vec::new();
            let more = cursor.next_page(&run.view(), PAGE_ROWS, &mut page)?;
            if page.is_empty() && !more {
                break;
            }
            self.entries.extend(page);
        }
        self.is_done = true;
        Ok(None)
    }

    fn next(
        &mut self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
        filling: &mut Filling<'_>,
    ) -> Result<bool> {
        while !filling.is_full() {
            self.advance(wanted, run)?;
            let Some(current) = &mut self.current else { return Ok(false) };
            if current.points.is_empty() && current.next < current.end {
                let Some(bucket) = wanted.open(run, &current.entry)? else {
                    self.current = None;
                    continue;
                };
                let at = current.next..current.end;
                *current = Current::of(wanted, &bucket, current.entry.clone(), at)?;
            }
            match current.points.pop_front() {
                None => self.current = None,
                Some((point, id)) => {
                    current.next += 1;
                    if wanted.matches(&point, run)? {
                        wanted.stats.returned += 1;
                        filling.push(Row::of_document(id, point));
                    }
                }
            }
        }
        Ok(true)
    }

    /// Counts the points of whole buckets, at most `max`. Returns `None` if points must be unpacked for it.
    fn pass(&mut self, wanted: &mut Wanted, run: &mut Run<'_>, max: u64) -> Result<Option<Passed>> {
        if self.current.is_some() || !wanted.scan.takes_whole_buckets() {
            return Ok(None);
        }
        let Some(entry) = self.next_entry(wanted, run)? else {
            return Ok(Some(Passed { rows: 0, more: false }));
        };
        let (times, points) = (wanted.times(), u64::from(entry.points));
        if entry.min_ms < times.first || entry.max_ms > times.last || points > max {
            self.entries.push_front(entry);
            return Ok(None);
        }
        wanted.stats.buckets_skipped += 1;
        wanted.stats.returned += points;
        Ok(Some(Passed { rows: points, more: true }))
    }
}

impl Current {
    fn of(
        wanted: &Wanted,
        bucket: &PackedBucket,
        entry: BucketEntry,
        at: Range<usize>,
    ) -> Result<Self> {
        let points = wanted.unpack(bucket, at.clone())?;
        let ids = at.clone().map(|at| bucket.point_id(at));
        let (next, end) = (at.start, at.end);
        Ok(Current { entry, next, end, points: points.into_iter().zip(ids).collect() })
    }
}

impl Operator for Buckets {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        let more = match &mut self.order {
            Order::Any(walk) => walk.next(&mut self.wanted, run, &mut filling)?,
            Order::ByTime(slices) => slices.next(&mut self.wanted, run, &mut filling)?,
        };
        self.wanted.stats.is_eof = !more;
        Ok(more)
    }

    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        let counted = match &mut self.order {
            Order::Any(walk) => walk.pass(&mut self.wanted, run, max)?,
            Order::ByTime(_) => None,
        };
        match counted {
            Some(passed) => Ok(passed),
            None => make_and_drop(self, run, max),
        }
    }

    fn counts(&self) -> bool {
        self.wanted.scan.takes_whole_buckets()
    }

    fn rest(&mut self) {
        match &mut self.order {
            Order::Any(walk) => {
                if let Some(current) = &mut walk.current {
                    current.points = VecDeque::new();
                }
            }
            Order::ByTime(slices) => slices.rest(),
        }
    }

    fn stats(&self) -> NodeStats {
        self.wanted.stats.clone()
    }
}
