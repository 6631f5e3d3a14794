//! A delete on `system.buckets.X`: finds buckets, and deletes the points that are in them from the time-series collection `X`.

use crate::frame::context::Context;
use crate::write::delete_statement::DeleteStatement;
use quire_catalog::Collection;
use quire_collections::{Effect, Keep};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::modify::{DeleteOutcome, DeleteRequest, delete};
use quire_executor::{UnitOfWork, open_buckets};
use quire_mql::collation::AskedCollation;
use quire_planner::AggregateRequest;
use quire_session::Unit;
use std::sync::Arc;

/// The most points that a statement deletes by their buckets: it holds their `_id`s. A delete on `X` has no such limit.
const POINTS_MAX: usize = 1_000_000;

/// Runs a statement that has begun. The number of deleted documents is that of the buckets.
///
/// # Errors
/// 2 BadValue for a hint; those of reading the buckets and of deleting points; 146 ExceededMemoryLimit for more than a million points.
pub fn delete_buckets(
    cx: &Context<'_>,
    series: &Arc<Collection>,
    statement: &DeleteStatement<'_>,
    let_vars: Doc<'_>,
    unit: &mut Unit,
) -> Result<DeleteOutcome> {
    if statement.hint.is_some() {
        return Err(Error::bad_value(
            "a delete of buckets of a time-series collection takes no hint",
        ));
    }
    let retried = unit.statements().first().copied().filter(|_| statement.one);
    let mut outcome = DeleteOutcome::default();
    for points in found(cx, series, statement, let_vars, unit)? {
        let request = DeleteRequest {
            namespace: series.namespace.clone(),
            filter: points.as_doc(),
            one: false,
            hint: None,
            collation: AskedCollation::Own(None),
            let_vars: Doc::empty(),
        };
        let deleted = delete(unit, &request, &cx.exec_params())?;
        outcome.deleted += 1;
        outcome.committed = deleted.committed.or(outcome.committed);
    }
    if let Some(retried) = retried.filter(|_| outcome.deleted > 0) {
        let unit: &mut dyn UnitOfWork = unit;
        let ((), committed) = unit.write_with(&cx.interrupt, |writer| {
            writer.remember_alone(retried, Effect::Delete, Keep::Nothing);
            Ok(())
        })?;
        outcome.committed = committed.or(outcome.committed);
    }
    Ok(outcome)
}

/// Returns, for each bucket that the statement finds, a filter that finds its points.
fn found(
    cx: &Context<'_>,
    series: &Arc<Collection>,
    statement: &DeleteStatement<'_>,
    let_vars: Doc<'_>,
    unit: &Unit,
) -> Result<Vec<DocBuf>> {
    let mut pipeline = vec![doc! { "$match": statement.filter }];
    if statement.one {
        pipeline.push(doc! { "$limit": 1 });
    }
    let request = AggregateRequest {
        namespace: format!("{}.$buckets", series.namespace.db()),
        pipeline,
        let_vars: let_vars.to_owned(),
        collation: AskedCollation::parse(statement.collation)?,
        ..AggregateRequest::default()
    };
    let mut views = unit.views()?;
    let store = &cx.service.store;
    let mut execution = open_buckets(store, &request, series, &views, cx.exec_params())?;
    let (mut filters, mut count) = (Vec::new(), 0);
    while let Some(bucket) = execution.next_document(&mut views, &cx.interrupt)? {
        let (filter, points) = points_of(series, bucket.as_doc());
        count += points;
        if count > POINTS_MAX {
            let text = format!("a delete of buckets with more than {POINTS_MAX} points");
            return Err(Error::new(ErrorCode::ExceededMemoryLimit, text));
        }
        filters.push(filter);
    }
    Ok(filters)
}

/// Returns a filter that finds the points of a bucket, and how many these are. Times alone are not enough: points of the next
/// bucket can have the same.
fn points_of(series: &Collection, bucket: Doc<'_>) -> (DocBuf, usize) {
    let options = series.options.time_series();
    let time_field = options.map_or("", |options| options.time_field.as_str());
    let values = |field: &str| -> Vec<Value<'_>> {
        let data = bucket.get("data").and_then(|data| data.as_document());
        let column = data.and_then(|data| data.get(field)?.as_document());
        column.into_iter().flat_map(|column| column.fields().map(|(_, value)| value)).collect()
    };
    let (times, ids) = (values(time_field), values("_id"));
    let span =
        |way: &str| bucket.get("control")?.as_document()?.get(way)?.as_document()?.get(time_field);
    let filter = DocBuf::build(|filter| {
        if let Some(meta_field) = options.and_then(|options| options.meta_field.as_deref()) {
            let mut of_meta = filter.document(meta_field);
            match bucket.get("meta") {
                Some(meta) => of_meta.append("$eq", meta),
                None => of_meta.append("$exists", false),
            };
        }
        {
            let mut of_time = filter.document(time_field);
            of_time.append_some("$gte", span("min"));
            of_time.append_some("$lte", span("max"));
        }
        let ids: ArrayBuf = ids.iter().copied().collect();
        filter.document("_id").append("$in", ids.as_array());
    });
    (filter, times.len())
}
