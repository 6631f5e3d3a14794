//! Buckets of time-series collections: points that were closed, packed as columns (docs/time-series.md,
//! docs/format.md, "Buckets of a collection").
//!
//! `layout` has the keys, `bucket` reads and packs one, `cursor` finds them by time or by meta value, `sources` finds
//! the meta values, `source` says which
//! collections have some, `mongo_bucket` unpacks buckets of MongoDB, `restored` remembers them. `write/buckets.rs` writes them, for `closing`.

mod bucket;
mod cursor;
mod entry;
pub(crate) mod layout;
mod mongo_bucket;
mod restored;
mod source;
mod sources;

pub use bucket::{FieldColumn, PackedBucket};
pub use cursor::BucketCursor;
pub use entry::BucketEntry;
pub use layout::Span;
pub use mongo_bucket::MongoBucket;
pub use restored::RestoredBucket;
pub use source::takes_buckets;
pub use sources::{Source, SourceCursor};

pub(crate) use bucket::{is_long, meta_key, pack_points, stays_row};
pub(crate) use source::{serves_rows_only, source_index};
