//! UNPACK_TS_BUCKET: the points of the buckets of a time-series collection, bucket by bucket, in the order of their
//! times, or source by source.
//!
//! Conditions on the meta field and on the time are tested for a bucket as a whole, so most buckets of other sources
//! and times are not unpacked. In the order of the times the scan goes slice by slice (`bucket_slices.rs`), because the
//! buckets of many sources overlap.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use quire_collections::{BucketCursor, BucketEntry, FieldColumn, PackedBucket, RecordId};
use quire_error::Result;
use quire_mql::filter::{Filter, Node as Condition};
use quire_planner::explain::NodeStats;
use quire_planner::{BucketScan, PointOrder};
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::{Filling, Operator, Passed, make_and_drop};
use crate::row::Row;
use crate::scans::bucket_slices::Slices;
use crate::scans::bucket_sources::Sources;
use crate::scans::wanted_buckets::{Unpacked, Wanted};
use crate::taking::{FieldColumns, Given, Scratch, Taker};

/// The entries of a page of the directory.
const PAGE_ROWS: usize = 256;

/// A scan of buckets.
pub(crate) struct Buckets {
    wanted: Wanted,
    order: Order,
}

enum Order {
    /// Bucket by bucket.
    Any(Walk),
    /// Slice by slice, in the order of the time.
    ByTime(Slices),
    /// Source by source, and for each in the order of the time.
    BySource(Sources),
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
    /// The points from `next` on with their positions, without some that do not match.
    points: VecDeque<(usize, RecordId, Bytes)>,
    /// True if the points passed the conditions on points.
    is_tested: bool,
    /// True if the points must be unpacked again.
    is_dropped: bool,
}

impl Buckets {
    pub fn new(scan: &BucketScan, compile: impl Fn(&Condition) -> Filter) -> Self {
        let wanted = Wanted::new(scan, compile);
        let order = match scan.order {
            PointOrder::Any => Order::Any(Walk::default()),
            PointOrder::Time { backward } => Order::ByTime(Slices::new(backward, None)),
            PointOrder::Sources { backward, newest_first } => {
                let only = wanted.source.clone();
                Order::BySource(Sources::new((backward, newest_first), scan.each, only))
            }
        };
        Buckets { wanted, order }
    }
}

impl Walk {
    /// Makes sure that there is a current bucket or that the walk is done.
    fn advance(&mut self, wanted: &mut Wanted, run: &mut Run<'_>) -> Result<()> {
        while self.current.is_none() && !self.is_done {
            let Some(entry) = self.next_entry(wanted, run)? else { return Ok(()) };
            let Some(bucket) = wanted.open(run, &entry)? else { continue };
            let at = bucket.within(wanted.times())?;
            self.current = Some(Current::of(wanted, run, (&bucket, entry), at)?);
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
            if current.is_dropped {
                let Some(bucket) = wanted.open(run, &current.entry)? else {
                    self.current = None;
                    continue;
                };
                let at = current.next..current.end;
                *current = Current::of(wanted, run, (&bucket, current.entry.clone()), at)?;
            }
            match current.points.pop_front() {
                None => {
                    wanted.stats.docs_examined += (current.end - current.next) as u64;
                    self.current = None;
                }
                Some((at, id, point)) => {
                    wanted.stats.docs_examined += (at + 1 - current.next) as u64;
                    current.next = at + 1;
                    if wanted.matches(&point, current.is_tested, run)? {
                        wanted.stats.returned += 1;
                        filling.push(Row::of_document(id, point));
                    }
                }
            }
        }
        Ok(true)
    }

    /// Gives the columns of the next buckets, up to one whose points are needed, which becomes the current bucket.
    fn feed(
        &mut self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
        (taker, fields): (&dyn Taker, &[String]),
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        let mut scratch = Scratch::default();
        while self.current.is_none() && !self.is_done {
            let Some(entry) = self.next_entry(wanted, run)? else { break };
            run.env.check_interrupt()?;
            let Some(bucket) = wanted.open(run, &entry)? else { continue };
            let at = bucket.within(wanted.times())?;
            let passing = wanted.passing(&bucket, at.clone(), run)?;
            let decides = passing.is_some() || wanted.scan.takes_whole_buckets();
            let rows = passing.as_ref().map_or(at.len(), Vec::len);
            if decides && rows == 0 {
                wanted.stats.docs_examined += at.len() as u64;
                continue;
            }
            let columns = bucket.field_columns(fields)?;
            let taken = columns.filter(|_| decides).and_then(|columns| {
                let values = |column| match &passing {
                    Some(passing) => FieldColumn::picked(column, passing),
                    None => FieldColumn::rows(column, at.clone()),
                };
                let columns = columns.iter().map(values).collect();
                taker.take_columns(FieldColumns { rows, columns }, &mut scratch, run.scope())
            });
            match taken {
                Some(taken) => {
                    wanted.stats.docs_examined += at.len() as u64;
                    wanted.stats.returned += rows as u64;
                    give(Given::Taken(taken))?;
                }
                None => self.current = Some(Current::of(wanted, run, (&bucket, entry), at)?),
            }
        }
        Ok(())
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
        wanted: &mut Wanted,
        run: &Run<'_>,
        (bucket, entry): (&PackedBucket, BucketEntry),
        at: Range<usize>,
    ) -> Result<Self> {
        let (next, end) = (at.start, at.end);
        let Unpacked { points, is_tested } = wanted.unpack(bucket, at, run)?;
        let with_id = |(at, point)| (at, bucket.point_id(at), point);
        let points = points.into_iter().map(with_id).collect();
        Ok(Current { entry, next, end, points, is_tested, is_dropped: false })
    }
}

impl Operator for Buckets {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        let more = match &mut self.order {
            Order::Any(walk) => walk.next(&mut self.wanted, run, &mut filling)?,
            Order::ByTime(slices) => slices.next(&mut self.wanted, run, &mut filling)?,
            Order::BySource(sources) => sources.next(&mut self.wanted, run, &mut filling)?,
        };
        self.wanted.stats.is_eof = !more;
        Ok(more)
    }

    /// Reads columns in place of points, if no condition needs points and `taker` only fields.
    fn feed(
        &mut self,
        run: &mut Run<'_>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        let Order::Any(walk) = &mut self.order else { return Ok(()) };
        if self.wanted.reads_columns()
            && let Some(fields) = taker.fields()
        {
            walk.feed(&mut self.wanted, run, (taker, fields), give)?;
        }
        Ok(())
    }

    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        let counted = match &mut self.order {
            Order::Any(walk) => walk.pass(&mut self.wanted, run, max)?,
            Order::ByTime(_) | Order::BySource(_) => None,
        };
        match counted {
            Some(passed) => Ok(passed),
            None => make_and_drop(self, run, max),
        }
    }

    fn counts(&self) -> bool {
        self.wanted.scan.takes_whole_buckets() && self.wanted.scan.each.is_none()
    }

    fn rest(&mut self) {
        match &mut self.order {
            Order::Any(walk) => {
                if let Some(current) = &mut walk.current {
                    current.is_dropped |= !current.points.is_empty();
                    current.points = VecDeque::new();
                }
            }
            Order::ByTime(slices) => slices.rest(),
            Order::BySource(sources) => sources.rest(),
        }
    }

    fn stats(&self) -> NodeStats {
        self.wanted.stats.clone()
    }
}
