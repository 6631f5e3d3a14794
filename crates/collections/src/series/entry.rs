//! What the directories of buckets say about one.

use quire_document::ValueBuf;

/// What the directory says about a bucket.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketEntry {
    /// The number of the bucket, which no other bucket of the collection has or had.
    pub number: u64,
    /// The time of its first point, in milliseconds since 1970.
    pub min_ms: i64,
    /// The time of its last point.
    pub max_ms: i64,
    /// The number of its points.
    pub points: u32,
    /// The sum of the lengths of its points as BSON.
    pub bytes: u32,
    /// The meta value of its points; `None` if they have none.
    pub meta: Option<ValueBuf>,
}
