//! `system.buckets.X`, the buckets of the time-series collection `X` as tools look at them: made of its points, in the
//! uncompressed form of MongoDB's version 1 (`quire_executor::BucketFeed`). A dump of them restores into a MongoDB.

use crate::frame::context::Context;
use crate::read::fed_view::{as_pipeline, counted};
use crate::read::find_request::Batching;
use quire_catalog::Collection;
use quire_catalog::time_series::BUCKETS;
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter};
use quire_error::Result;
use quire_executor::{
    BucketFeed, Examined, Execution, OpenViews, ServerStage, Views, distinct_of, of_buckets,
    open_buckets,
};
use quire_planner::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, ReadRequest, Verbosity,
};
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

/// Returns the values that a distinct finds, and what it examined.
///
/// # Errors
/// Those of reading the points and of the filter.
pub fn distinct(
    cx: &Context<'_>,
    request: &DistinctRequest,
    series: &Arc<Collection>,
    views: &mut OpenViews<'_>,
) -> Result<(ArrayBuf, Examined)> {
    let pipeline = as_pipeline(ReadRequest::Distinct(request), &request.namespace)?;
    let execution = open(cx, &pipeline, series, views)?;
    distinct_of(&request.key, execution, views, &cx.interrupt)
}

/// Explains a request: the stage that makes the buckets, and the pipeline above it.
///
/// # Errors
/// Those of [`open`], and of running the request if `verbosity` asks for that.
pub fn explain(
    cx: &Context<'_>,
    what: ReadRequest<'_>,
    verbosity: Verbosity,
    series: &Arc<Collection>,
    views: &mut OpenViews<'_>,
) -> Result<DocBuf> {
    let request = match what {
        ReadRequest::Aggregate(pipeline) => pipeline.clone(),
        what => as_pipeline(what, what.target().0)?,
    };
    let params = cx.exec_params();
    let feed = BucketFeed::open(&cx.service.store, series, views, params.clone())?;
    let options = series.options.time_series();
    let stage = DocBuf::build(|stage| {
        let mut inner = stage.document("$_internalPackBuckets");
        inner.append("of", series.namespace.collection());
        if let Some(options) = options {
            inner.append_all(options.document().as_doc());
        }
    });
    let first = ServerStage { stage, documents: Box::new(feed) };
    let request = of_buckets(&request);
    quire_executor::explain(ReadRequest::Aggregate(&request), Some(first), verbosity, views, params)
}

/// Opens a pipeline over the buckets of a collection.
///
/// # Errors
/// Those of [`open_buckets`].
pub fn open(
    cx: &Context<'_>,
    request: &AggregateRequest,
    series: &Collection,
    views: &dyn Views,
) -> Result<Execution> {
    open_buckets(&cx.service.store, request, series, views, cx.exec_params())
}
