//! The points of a time-series collection as buckets in the uncompressed form of MongoDB's version 1, for those who read
//! `system.buckets.X`. `feed` reads the points in the order of source and time, `document` makes a bucket of them, `shape` says
//! when another one begins because of a type.

mod document;
mod feed;
mod shape;

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::Store;
use quire_document::DocBuf;
use quire_error::{Error, Result};
use quire_planner::AggregateRequest;

pub use self::feed::BucketFeed;
use crate::execution::Execution;
use crate::opening::open::open_fed;
use crate::params::ExecParams;
use crate::views::Views;

/// Opens a pipeline over the buckets of a time-series collection.
///
/// # Errors
/// 10557301 for a `$rankFusion` or a `$scoreFusion`; 115 CommandNotSupported in a transaction and for a snapshot read, whose
/// state the buckets do not have; the errors of the stages, and of planning the read of the points.
pub fn open_buckets(
    store: &Arc<Store>,
    request: &AggregateRequest,
    series: &Collection,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    let is_fusion = |stage: &DocBuf| {
        let first = stage.as_doc().first();
        first.is_some_and(|first| matches!(first.key(), "$rankFusion" | "$scoreFusion"))
    };
    if request.pipeline.iter().any(is_fusion) {
        let text = "$rankFusion and $scoreFusion cannot read buckets of a time-series collection";
        return Err(Error::location(10_557_301, text));
    }
    let feed = BucketFeed::open(store, series, views, params.clone())?;
    open_fed(&of_buckets(request), Box::new(feed), views, params)
}

/// Returns a request whose documents are buckets. Its hint would name an index of a collection that does not exist.
pub fn of_buckets(request: &AggregateRequest) -> AggregateRequest {
    AggregateRequest { fed_by: Some("the buckets"), hint: None, ..request.clone() }
}
