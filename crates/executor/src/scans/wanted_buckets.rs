//! What a scan of buckets reads and tests: which buckets may have wanted points, and which points are wanted.

use std::ops::Range;

use bytes::Bytes;
use quire_collections::{BucketCursor, BucketEntry, PackedBucket, Span};
use quire_document::{Doc, DocBuf, ValueBuf};
use quire_error::Result;
use quire_mql::filter::{Filter, Node as Condition};
use quire_planner::BucketScan;
use quire_planner::explain::NodeStats;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::scans::bucket_bounds::Ranges;
use crate::table::Table;

/// A scan of buckets as both orders share it.
pub(crate) struct Wanted {
    pub table: Table,
    pub scan: Box<BucketScan>,
    of_meta: Option<Matcher>,
    rest: Option<Matcher>,
    ranges: Ranges,
    pub stats: NodeStats,
}

impl Wanted {
    pub fn new(scan: &BucketScan, compile: impl Fn(&Condition) -> Filter) -> Self {
        let matcher =
            |condition: &Option<_>| condition.as_ref().map(|it| Matcher::new(compile(it)));
        Wanted {
            table: Table::new(&scan.collection),
            of_meta: matcher(&scan.of_meta),
            rest: matcher(&scan.rest),
            ranges: Ranges::new(scan.rest.as_ref()),
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

    /// Returns the bucket of an entry; `None` if it has expired since the entry was read, or if no point of it can
    /// match.
    pub fn open(&mut self, run: &Run<'_>, entry: &BucketEntry) -> Result<Option<PackedBucket>> {
        let view = run.view();
        let Some(bucket) = view.bucket_if_there(self.table.resolve(run)?, entry)? else {
            return Ok(None);
        };
        if !self.ranges.may_match(&bucket) {
            self.stats.buckets_skipped += 1;
            return Ok(None);
        }
        self.stats.buckets_read += 1;
        Ok(Some(bucket))
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
