//! Writes of points of a time-series collection that are in buckets.
//!
//! A statement writes records. Before it searches, the buckets with points that match its filter are reopened, so that its
//! search need not read buckets; a delete whose filter takes whole buckets drops them. A statement that writes one point searches
//! buckets, too, and reopens only that of the point it found. Meanwhile nothing of the collection is closed.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::{BucketEntry, PackedBucket, SeriesWrites, Span, drop_buckets};
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::{BucketScan, planned};
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::env::Scope;
use crate::modify::statement::Statement;
use crate::operators::filtering::Matcher;
use crate::views::Views;

/// The most buckets that a commit drops.
const BUCKETS_MAX: usize = 100;

/// Returns the gate for a statement that writes a collection, if that is a time series.
pub(super) fn gate_of(
    unit: &dyn UnitOfWork,
    collection: Option<&Collection>,
) -> Option<SeriesWrites> {
    let series = collection.filter(|collection| collection.is_time_series())?;
    Some(unit.store().series_writes(series))
}

/// Runs the work of a statement while no points are closed of the collection to which the gate belongs.
pub(super) fn keeping_records<T>(
    gate: Option<SeriesWrites>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match gate {
        Some(gate) => gate.run(work),
        None => work(),
    }
}

/// The buckets that a statement may write.
struct Affected {
    scan: BucketScan,
    of_meta: Option<Matcher>,
}

impl Affected {
    /// Returns the buckets of a statement; `None` if the collection never had any.
    fn of(statement: &Statement, collection: &Arc<Collection>) -> Option<Self> {
        collection.buckets?;
        let condition = planned(statement.filter()?.root().clone());
        let scan = BucketScan::new(collection, &condition, statement.collation.is_none())?;
        let compile = |condition: &quire_mql::filter::Node| {
            Matcher::new(Filter::from_node(condition.without_implied()))
        };
        let of_meta = scan.of_meta.as_ref().map(compile);
        Some(Affected { scan, of_meta })
    }

    fn times(&self) -> Span {
        let (first, last) = self.scan.times;
        Span { first, last }
    }

    /// Returns true if the source of a bucket passes.
    fn has_source(&mut self, entry: &BucketEntry, statement: &Statement) -> Result<bool> {
        let Some(of_meta) = &mut self.of_meta else { return Ok(true) };
        let series = self.scan.collection.options.time_series();
        let field = series.and_then(|series| series.meta_field.as_deref());
        let source = DocBuf::build(|writer| {
            if let (Some(field), Some(meta)) = (field, &entry.meta) {
                writer.append(field, meta);
            }
        });
        let variables = statement.env.variable_values();
        let scope = Scope { env: &statement.env, variables: &variables };
        of_meta.matches(source.as_doc(), scope)
    }
}

/// Makes records of the points that a statement of many documents writes: reopens the buckets that have a point which matches
/// its filter.
///
/// # Errors
/// The errors of the planner, of the filter, of reading and of the commits.
pub(super) fn make_records(
    unit: &dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
) -> Result<()> {
    let views = unit.views()?;
    let found = views.view().catalog().lookup(namespace).filter(|found| found.buckets.is_some());
    let Some(collection) = found.cloned() else { return Ok(()) };
    let Some(mut affected) = Affected::of(statement, &collection) else { return Ok(()) };
    // A statement that cannot be planned reopens nothing.
    statement.open(views.view(), true)?;
    drop(views);
    let (times, interrupt) = (affected.times(), Arc::clone(&statement.env.params.interrupt));
    let is_wanted = &mut |bucket: &PackedBucket| {
        if !affected.has_source(&bucket.entry, statement)? {
            return Ok(false);
        }
        for point in bucket.points(bucket.within(times)?)? {
            if statement.matches(Doc::from_valid_bytes(&point))? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    unit.store().reopen_buckets(&collection, times, &interrupt, is_wanted)?;
    Ok(())
}

/// Drops the buckets all of whose points match the filter of a delete, if the filter takes whole buckets. Returns the number
/// of their points, and the last commit.
///
/// # Errors
/// The errors of the planner, of the filter, of reading and of the commits.
pub(super) fn drop_matching(
    unit: &mut dyn UnitOfWork,
    collection: Option<&Arc<Collection>>,
    statement: &Statement,
) -> Result<(u64, Option<Committed>)> {
    let affected = collection.and_then(|collection| Affected::of(statement, collection));
    let Some(mut affected) = affected.filter(|affected| affected.scan.takes_whole_buckets()) else {
        return Ok((0, None));
    };
    let (times, interrupt) = (affected.times(), Arc::clone(&statement.env.params.interrupt));
    let id = affected.scan.collection.id;
    // A statement that cannot be planned must not have deleted anything.
    statement.open(unit.views()?.view(), true)?;
    let (mut dropped, mut last, mut more) = (0, None, true);
    while more {
        let namespace = affected.scan.collection.namespace.clone();
        let ((points, has_more), committed) = unit.write_with(&interrupt, |writer| {
            let found = writer.collection(&namespace).filter(|found| found.id == id);
            let Some(collection) = found else { return Ok((0, false)) };
            let is_wanted = &mut |entry: &BucketEntry| affected.has_source(entry, statement);
            drop_buckets(writer, &collection, (times, BUCKETS_MAX), is_wanted)
        })?;
        dropped += points;
        last = committed.or(last);
        more = has_more && points > 0;
    }
    Ok((dropped, last))
}
