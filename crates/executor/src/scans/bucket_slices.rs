//! Points of buckets in the order of their times. The buckets of many sources overlap, so the scan goes through time in
//! slices: it finds the buckets with points in a slice, unpacks these points, sorts them, and returns them. A slice is
//! as long as is estimated to give a bounded number of points; so memory does not grow with the number of sources,
//! and a bucket that is longer than a slice is unpacked once for each.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bytes::Bytes;
use quire_collections::{BucketEntry, RecordId, Span};
use quire_error::Result;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::Filling;
use crate::row::Row;
use crate::scans::wanted_buckets::{Unpacked, Wanted};

/// The fewest and the most points that a slice is made for.
const POINTS_MIN: u64 = 1 << 4;
const POINTS_MAX: u64 = 1 << 16;
/// The entries of the first page of the directory, and of a later one.
const PAGE_ROWS_FIRST: usize = 8;
const PAGE_ROWS_MAX: usize = 256;

/// The place of a point: its time, and what orders points of the same time.
type Place = (i64, u64);

/// A point that was unpacked.
struct Unreturned {
    place: Place,
    point: Bytes,
    /// True if it passed the conditions on points.
    is_tested: bool,
}

/// A scan by time.
pub(super) struct Slices {
    backward: bool,
    /// The times that no slice had yet; `None` before the first.
    left: Option<Span>,
    /// The slice whose points are being returned; `None` if there is none.
    slice: Option<Span>,
    /// The points of the slice that were not returned yet.
    points: VecDeque<Unreturned>,
    /// True if the points of the slice must be unpacked again.
    is_dropped: bool,
    /// The last point that was returned or failed the filter.
    last: Option<Place>,
    /// The number of points for which the last slice was made.
    made_for: u64,
    /// The number of points that are still wanted; `None` for all.
    rows_left: Option<u64>,
}

impl Slices {
    /// Returns a scan of at most `rows_max` points.
    pub fn new(backward: bool, rows_max: Option<u64>) -> Self {
        Slices {
            backward,
            rows_left: rows_max,
            left: None,
            slice: None,
            points: VecDeque::new(),
            is_dropped: false,
            last: None,
            made_for: 0,
        }
    }

    /// Drops the points that were unpacked ahead. The next call unpacks the rest of the slice again.
    pub fn rest(&mut self) {
        self.is_dropped |= !self.points.is_empty();
        self.points = VecDeque::new();
    }

    pub fn next(
        &mut self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
        filling: &mut Filling<'_>,
    ) -> Result<bool> {
        while !filling.is_full() {
            if self.rows_left == Some(0) {
                return Ok(false);
            }
            if std::mem::take(&mut self.is_dropped) {
                self.unpack(wanted, run, true)?;
            }
            match self.points.pop_front() {
                Some(Unreturned { place, point, is_tested }) => {
                    self.last = Some(place);
                    wanted.stats.docs_examined += u64::from(!is_tested);
                    if wanted.matches(&point, is_tested, run)? {
                        wanted.stats.returned += 1;
                        self.rows_left = self.rows_left.map(|left| left - 1);
                        filling.push(Row::of_document(RecordId(place.1), point));
                    }
                }
                None => {
                    if !self.next_slice(wanted, run)? {
                        return Ok(false);
                    }
                    self.unpack(wanted, run, false)?;
                }
            }
        }
        Ok(true)
    }

    /// Finds the next slice. Returns false if there is none.
    fn next_slice(&mut self, wanted: &mut Wanted, run: &mut Run<'_>) -> Result<bool> {
        run.pause()?;
        self.slice = None;
        let left = *self.left.get_or_insert_with(|| wanted.times());
        if left.is_empty() {
            return Ok(false);
        }
        // Each slice unpacks whole buckets, so a long scan makes few.
        let rows = self.rows_left.unwrap_or(u64::MAX).min(run.wanted as u64);
        let points = rows.max(self.made_for * 2).clamp(POINTS_MIN, POINTS_MAX);
        self.made_for = points;
        let Some(slice) = self.find(wanted, run, left, points)? else {
            self.left = Some(Span { first: i64::MAX, last: i64::MIN });
            return Ok(false);
        };
        self.slice = Some(slice);
        let nothing = Span { first: i64::MAX, last: i64::MIN };
        self.left = Some(match self.backward {
            false => slice.last.checked_add(1).map_or(nothing, |first| Span { first, ..left }),
            true => slice.first.checked_sub(1).map_or(nothing, |last| Span { last, ..left }),
        });
        Ok(true)
    }

    /// Returns the first part of the times that are left with about `points` points; `None` if no bucket has any.
    fn find(
        &self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
        left: Span,
        points: u64,
    ) -> Result<Option<Span>> {
        let span_ms = wanted.span_ms(run)?;
        let direction = if self.backward { Direction::Reverse } else { Direction::Forward };
        let Some(mut cursor) = wanted.cursor(run, left, direction)? else { return Ok(None) };
        let (mut found, mut page, mut more) = (Vec::new(), Vec::new(), true);
        let mut rows = PAGE_ROWS_FIRST;
        while more {
            run.env.check_interrupt()?;
            page.clear();
            more = cursor.next_page(&run.view(), rows, &mut page)?;
            rows = (rows * 2).min(PAGE_ROWS_MAX);
            let reached = page.last().map(|entry: &BucketEntry| entry.min_ms);
            for entry in page.drain(..) {
                if wanted.may_match(&entry, run, left)? {
                    found.push(entry);
                } else {
                    wanted.stats.buckets_skipped += 1;
                }
            }
            // All buckets with points in this part were found.
            let known = match (more, reached, self.backward) {
                (false, ..) => left,
                (true, None, _) => continue,
                // Another bucket may begin at the same time.
                (true, Some(min), false) => {
                    Span { last: left.last.min(min.saturating_sub(1)), ..left }
                }
                // A bucket that begins before ends before its span does.
                (true, Some(min), true) => {
                    Span { first: left.first.max(min.saturating_add(span_ms)), ..left }
                }
            };
            let is_enough = !known.is_empty() && estimate(&found, known) >= points;
            if is_enough || !more && estimate(&found, known) > 0 {
                return Ok(Some(self.shortened(&found, known, points)));
            }
        }
        Ok(None)
    }

    /// Returns the longest beginning of a span that has at most about `points` points.
    fn shortened(&self, found: &[BucketEntry], span: Span, points: u64) -> Span {
        let part = |end: i64| match self.backward {
            false => Span { last: end, ..span },
            true => Span { first: end, ..span },
        };
        // `fits` is the end of a part that is short enough, or of the shortest one.
        let (mut fits, mut exceeds) = match self.backward {
            false => (span.first, span.last),
            true => (span.last, span.first),
        };
        if estimate(found, span) <= points {
            return span;
        }
        while fits.abs_diff(exceeds) > 1 {
            let middle = ((i128::from(fits) + i128::from(exceeds)) / 2) as i64;
            match estimate(found, part(middle)) <= points {
                true => fits = middle,
                false => exceeds = middle,
            }
        }
        part(fits)
    }

    /// Unpacks the points of the slice after the last one. `again` is true if they were unpacked and dropped before.
    fn unpack(&mut self, wanted: &mut Wanted, run: &mut Run<'_>, again: bool) -> Result<()> {
        let Some(slice) = self.slice else { return Ok(()) };
        let mut points: Vec<Unreturned> = Vec::new();
        let Some(mut cursor) = wanted.cursor(run, slice, Direction::Forward)? else {
            return Ok(());
        };
        let (mut page, mut more) = (Vec::new(), true);
        while more {
            run.env.check_interrupt()?;
            page.clear();
            more = cursor.next_page(&run.view(), PAGE_ROWS_MAX, &mut page)?;
            for entry in &page {
                if wanted.may_match(entry, run, slice)? {
                    self.add(wanted, run, (entry, slice, again), &mut points)?;
                }
            }
        }
        points.sort_by(|a, b| self.order(a.place, b.place));
        self.points = points.into();
        Ok(())
    }

    /// Adds the points of a bucket that belong to the slice and come after the last one.
    fn add(
        &self,
        wanted: &mut Wanted,
        run: &Run<'_>,
        (entry, slice, again): (&BucketEntry, Span, bool),
        points: &mut Vec<Unreturned>,
    ) -> Result<()> {
        let Some(bucket) = wanted.open(run, entry)? else { return Ok(()) };
        let at = bucket.within(slice)?;
        let count = at.len() as u64;
        let times = bucket.columns.times()?;
        let Unpacked { points: unpacked, is_tested } = wanted.unpack(&bucket, at, run)?;
        if is_tested && !again {
            wanted.stats.docs_examined += count;
        }
        for (at, point) in unpacked {
            let time = times.get(at).copied().unwrap_or(entry.min_ms);
            let place = (time, bucket.point_id(at).0);
            if self.last.is_none_or(|last| self.order(last, place) == Ordering::Less) {
                points.push(Unreturned { place, point, is_tested });
            }
        }
        Ok(())
    }

    fn order(&self, a: Place, b: Place) -> Ordering {
        if self.backward { b.cmp(&a) } else { a.cmp(&b) }
    }
}

/// Estimates how many points of these buckets have times in a span: each bucket's points have equal distances.
fn estimate(found: &[BucketEntry], span: Span) -> u64 {
    let share = |entry: &BucketEntry| {
        let (first, last) = (span.first.max(entry.min_ms), span.last.min(entry.max_ms));
        if first > last {
            return 0;
        }
        let of = u128::from(entry.max_ms.abs_diff(entry.min_ms)) + 1;
        let length = u128::from(last.abs_diff(first)) + 1;
        (u128::from(entry.points) * length).div_ceil(of) as u64
    };
    found.iter().map(share).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(min_ms: i64, max_ms: i64, points: u32) -> BucketEntry {
        BucketEntry { number: 1, min_ms, max_ms, points, bytes: 0, meta: None }
    }

    #[test]
    fn a_slice_is_as_long_as_its_points_allow() {
        let found = [bucket(0, 999, 1000), bucket(500, 1499, 1000)];
        let whole = Span { first: 0, last: 1499 };
        let forward = Slices::new(false, None);
        assert_eq!(forward.shortened(&found, whole, 5000), whole);
        assert_eq!(forward.shortened(&found, whole, 100), Span { first: 0, last: 99 });
        assert_eq!(forward.shortened(&found, whole, 700), Span { first: 0, last: 599 });
        let backward = Slices::new(true, None);
        assert_eq!(backward.shortened(&found, whole, 100), Span { first: 1400, last: 1499 });
    }

    #[test]
    fn one_millisecond_is_a_slice_however_many_points_it_has() {
        let found = [bucket(5, 5, 1000), bucket(5, 5, 1000)];
        for backward in [false, true] {
            let slice = Slices::new(backward, None).shortened(&found, Span::ALL, 100);
            assert!(!slice.is_empty());
        }
        let one = Span { first: 5, last: 5 };
        assert_eq!(Slices::new(false, None).shortened(&found, one, 100), one);
    }
}
