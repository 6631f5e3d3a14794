//! `system.buckets.X`, the buckets of the time-series collection `X` as tools look at them: made of its points, in the
//! uncompressed form of MongoDB's version 1. A dump of them restores into a MongoDB. `feed` reads the points in the order
//! of source and time, `document` makes a bucket of them.

mod document;
mod feed;

use crate::frame::context::Context;
use crate::read::fed_view::{as_pipeline, counted};
use crate::read::find_request::Batching;
use feed::BucketFeed;
use quire_catalog::Collection;
use quire_catalog::time_series::BUCKETS;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{Execution, OpenViews, Views, open_fed};
use quire_planner::{AggregateRequest, CountRequest, FindRequest, ReadRequest};
use quire_session::PlanSource;
use std::sync::Arc;

/// Returns the time-series collection whose buckets a request reads, if it reads some.
pub fn series_of(namespace: &str, views: &dyn Views) -> Option<Arc<Collection>> {
    // Each read asks this: a search for a character by its pattern takes several times as long.
    let dot = namespace.bytes().position(|byte| byte == b'.')?;
    let name = namespace.get(dot + 1..)?.strip_prefix(BUCKETS)?;
    let db = namespace.get(..dot)?;
    let view = views.view();
    let series = view.catalog().collection(db, name)?;
    series.is_time_series().then(|| Arc::clone(series))
}

/// Runs a find.
///
/// # Errors
/// Those of the pipeline that it becomes.
pub fn find(
    cx: &mut Context<'_>,
    body: Doc<'_>,
    (request, batching): (FindRequest, Batching),
    (series, views): (&Arc<Collection>, &mut OpenViews<'_>),
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    crate::read::on_view::check_batching(&batching, &request)?;
    let pipeline = as_pipeline(ReadRequest::Find(&request), &request.namespace)?;
    let execution = open(cx, &pipeline, series, views)?;
    let opening = batching.opening(request.namespace, body);
    cx.open_cursor(reply, opening, Box::new(PlanSource::new(execution, None)), views)
}

/// Returns the number of buckets that a count finds.
///
/// # Errors
/// Those of reading the points and of the filter.
pub fn count(
    cx: &Context<'_>,
    request: &CountRequest,
    series: &Arc<Collection>,
    views: &mut OpenViews<'_>,
) -> Result<u64> {
    let pipeline = as_pipeline(ReadRequest::Count(request), &request.namespace)?;
    let mut execution = open(cx, &pipeline, series, views)?;
    counted(&mut execution, views, &cx.interrupt)
}

/// Opens a pipeline over the buckets of a collection.
///
/// # Errors
/// 115 CommandNotSupported in a transaction and for a snapshot read, whose state the feed does not read; the errors of the
/// stages, and of planning the read of the points.
pub fn open(
    cx: &Context<'_>,
    request: &AggregateRequest,
    series: &Arc<Collection>,
    views: &dyn Views,
) -> Result<Execution> {
    if views.is_pinned() {
        let text = "the buckets of a time-series collection cannot be read in a transaction or at a point in time";
        return Err(Error::new(ErrorCode::CommandNotSupported, text));
    }
    let request = AggregateRequest { fed_by: Some("the buckets"), hint: None, ..request.clone() };
    let feed = BucketFeed::open(&cx.service.store, series, views, cx.exec_params())?;
    open_fed(&request, Box::new(feed), views, cx.exec_params())
}
