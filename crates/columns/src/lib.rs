//! Packs the points of a time-series collection as columns, and reads them again.
//!
//! A bucket has points with the same meta value, sorted by time. [`pack`] writes it, [`Bucket`] reads
//! it: documents byte for byte, or single fields as typed columns, without building documents. The
//! format is in `docs/format.md` ("Buckets of points"). [`BsonColumn`] reads the columns of MongoDB's own buckets, for dumps
//! of MongoDB. Nothing here does I/O.

mod bytes;
mod limits;

mod blocks;
mod doubles;
mod integers;
mod texts;

mod layout;
mod stream;

mod bounds;
mod gather;
mod pack;

mod bucket;
mod header;
mod points;
mod typed;

mod bson_column;
mod mongo_bucket;

pub use bounds::Bounds;
pub use bson_column::{BsonColumn, Budget};
pub use bucket::Bucket;
pub use limits::{BOUND_BYTES_MAX, BUCKET_BYTES_MAX, BUCKET_POINTS_MAX};
pub use mongo_bucket::{UNPACK_STEPS_MAX, Unpacked, unpack};
pub use pack::pack;
pub use points::Points;
pub use typed::Column;
