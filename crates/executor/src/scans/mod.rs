//! The leaves of an operator tree, which read a collection or an index. A long scan of a collection
//! uses several threads: `split_scan`, `scan_pieces`.

pub(crate) mod bucket_bounds;
pub(crate) mod bucket_scan;
mod bucket_slices;
mod bucket_sources;
pub(crate) mod collection_scan;
mod column_filter;
pub(crate) mod distinct_scan;
pub(crate) mod fast_count;
pub(crate) mod id_lookup;
pub(crate) mod index_bounds;
pub(crate) mod index_scan;
pub(crate) mod random_picks;
pub(crate) mod scan_pieces;
pub(crate) mod search;
pub(crate) mod split_scan;
pub(crate) mod tail_scan;
mod wanted_buckets;
