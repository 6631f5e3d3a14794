//! What a scan of buckets reads and tests: which buckets may have wanted points, and which points are wanted.

use std::ops::Range;

use bytes::Bytes;
use quire_collections::{BucketCursor, BucketEntry, PackedBucket, Source, Span};
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::filter::{Filter, Node as Condition};
use quire_planner::BucketScan;
use quire_planner::explain::NodeStats;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::scans::bucket_bounds::Ranges;
use crate::scans::column_filter::ColumnFilter;
use crate::scans::index_scan::treats_equals_alike;
use crate::table::Table;

/// What the scans of buckets in all orders share.
pub(crate) struct Wanted {
    pub table: Table,
    pub scan: Box<BucketScan>,
    of_meta: Option<Matcher>,
    /// Those of the conditions on the meta field that have one answer for all buckets of a source, whose meta values are
    /// equal and may be of different types.
    of_source: Option<Matcher>,
    rest: Option<Matcher>,
    /// The same conditions as `rest`, if columns suffice for them.
    columns: Option<ColumnFilter>,
    ranges: Ranges,
    /// The meta value whose buckets are read; `None` for all.
    pub source: Option<Source>,
    pub stats: NodeStats,
}

impl Wanted {
    pub fn new(scan: &BucketScan, compile: impl Fn(&Condition) -> Filter) -> Self {
        let matcher =
            |condition: &Option<_>| condition.as_ref().map(|it| Matcher::new(compile(it)));
        let of_meta = scan.of_meta.iter().flat_map(Condition::conjuncts);
        let of_source: Vec<Condition> =
            of_meta.filter(|it| treats_equals_alike(it)).cloned().collect();
        let of_source = (!of_source.is_empty()).then(|| Condition::all(of_source));
        Wanted {
            table: Table::new(&scan.collection),
            of_meta: matcher(&scan.of_meta),
            of_source: matcher(&of_source),
            rest: matcher(&scan.rest),
            columns: scan.rest.as_ref().and_then(ColumnFilter::new),
            ranges: Ranges::new(scan.rest.as_ref()),
            source: scan.meta.as_ref().map(|meta| Source::of(Some(meta.as_value()))),
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
        Ok(Some(match &self.source {
            Some(source) => source.buckets(buckets, begins, direction),
            None => BucketCursor::by_time(buckets, begins, direction),
        }))
    }

    /// Returns true if points of the bucket may be wanted.
    pub fn may_match(&mut self, entry: &BucketEntry, run: &Run<'_>, times: Span) -> Result<bool> {
        let may = entry.max_ms >= times.first && entry.min_ms <= times.last;
        Ok(may && meta_passes(self.of_meta.as_mut(), &self.scan, entry, run)?)
    }

    /// Returns false if no bucket of the same source as this one has wanted points.
    pub fn source_may_match(&mut self, entry: &BucketEntry, run: &Run<'_>) -> Result<bool> {
        meta_passes(self.of_source.as_mut(), &self.scan, entry, run)
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

    /// Returns true if no condition on points needs more than columns.
    pub fn reads_columns(&self) -> bool {
        self.rest.is_none() || self.columns.is_some()
    }

    /// Returns the positions of the points in `at` that pass the conditions on points; `None` if there are no such
    /// conditions, or if the points are needed for them.
    pub fn passing(
        &mut self,
        bucket: &PackedBucket,
        at: Range<usize>,
        run: &Run<'_>,
    ) -> Result<Option<Vec<usize>>> {
        match &mut self.columns {
            Some(columns) => columns.passing(bucket, at, run.scope()),
            None => Ok(None),
        }
    }

    /// Returns points of a bucket with their positions. If columns suffice for the conditions on points, they are those
    /// that pass.
    pub fn unpack(
        &mut self,
        bucket: &PackedBucket,
        at: Range<usize>,
        run: &Run<'_>,
    ) -> Result<Unpacked> {
        match self.passing(bucket, at.clone(), run)? {
            Some(passing) => {
                let points = self.build(bucket, passing.iter().copied())?;
                Ok(Unpacked { points: passing.into_iter().zip(points).collect(), is_tested: true })
            }
            None => {
                let points = self.build(bucket, at.clone())?;
                Ok(Unpacked { points: at.zip(points).collect(), is_tested: false })
            }
        }
    }

    /// Returns points of a bucket, with the fields that are read.
    fn build(
        &self,
        bucket: &PackedBucket,
        at: impl ExactSizeIterator<Item = usize> + Clone,
    ) -> Result<Vec<Bytes>> {
        if let Some(fields) = &self.scan.fields
            && let Some(points) = bucket.narrow_points(at.clone(), fields)?
        {
            return Ok(points);
        }
        bucket.points(at)
    }

    /// Returns true if a point passes the conditions on points, which may have been tested before.
    pub fn matches(&mut self, point: &Bytes, is_tested: bool, run: &Run<'_>) -> Result<bool> {
        self.stats.bytes_read += point.len() as u64;
        if is_tested {
            return Ok(true);
        }
        match &mut self.rest {
            Some(rest) => rest.matches(Doc::from_valid_bytes(point), run.scope()),
            None => Ok(true),
        }
    }
}

/// Returns true if the meta value of a bucket passes conditions.
fn meta_passes(
    conditions: Option<&mut Matcher>,
    scan: &BucketScan,
    entry: &BucketEntry,
    run: &Run<'_>,
) -> Result<bool> {
    let Some(conditions) = conditions else { return Ok(true) };
    let series = scan.collection.options.time_series();
    let field = series.and_then(|series| series.meta_field.as_deref());
    let source = DocBuf::build(|writer| {
        if let (Some(field), Some(meta)) = (field, &entry.meta) {
            writer.append(field, meta);
        }
    });
    conditions.matches(source.as_doc(), run.scope())
}

/// Points of a bucket with their positions.
pub(crate) struct Unpacked {
    pub points: Vec<(usize, Bytes)>,
    /// True if they passed the conditions on points.
    pub is_tested: bool,
}
