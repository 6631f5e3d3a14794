//! Which collections are closed, and the index by which their points are found source by source.

use std::sync::Arc;

use quire_catalog::{Collection, Index};
use quire_mql::time_series::TimeSeriesOptions;

/// Returns true if the points of a collection may be closed: every index of it must find the points of buckets
/// as well as a scan does. An index that answers an operator of its own must have all points, and so must one by which
/// points expire.
pub fn takes_buckets(collection: &Collection) -> bool {
    collection.is_time_series()
        && collection.clustered_index().is_some()
        && collection.indexes.iter().all(|index| serves_rows_only(index))
}

/// Returns true if an index need not contain the points of buckets.
pub(crate) fn serves_rows_only(index: &Index) -> bool {
    index.keys.kind().searches.is_none() && index.expire_after_seconds.is_none()
}

/// Returns the index that has the points of each source together, in the order of their times; `None` if the
/// collection has none.
pub(crate) fn source_index<'c>(
    collection: &'c Collection,
    series: &TimeSeriesOptions,
) -> Option<&'c Arc<Index>> {
    let Some(meta) = &series.meta_field else { return collection.clustered_index() };
    collection.ready_indexes().find(|index| {
        let keys = &index.keys;
        let by_source = match keys.fields() {
            [first, second, ..] => {
                first.path == *meta
                    && second.path == series.time_field
                    && !keys.is_descending(0)
                    && !keys.is_descending(1)
            }
            _ => false,
        };
        by_source && !keys.is_sparse() && keys.partial().is_none() && !keys.is_seen_in_views()
    })
}
