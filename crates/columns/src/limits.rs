//! The limits of a bucket. A reader refuses what exceeds them, so they bound its memory.

/// The most points of a bucket.
pub const BUCKET_POINTS_MAX: usize = 1 << 16;

/// The largest sum of the BSON lengths of a bucket's points, in bytes.
pub const BUCKET_BYTES_MAX: usize = 64 << 20;

/// The longest smallest or largest value that a bucket keeps of a field, in bytes of BSON.
pub const BOUND_BYTES_MAX: usize = 64;

/// The most columns of a bucket.
pub(crate) const COLUMNS_MAX: usize = 4096;

/// The most layouts of a bucket.
pub(crate) const LAYOUTS_MAX: usize = 1024;

/// The most levels of documents and arrays whose fields get columns.
pub(crate) const LEVELS_MAX: usize = 8;

/// The most elements of an array that get a column each.
pub(crate) const ARRAY_COLUMNS_MAX: usize = 16;

/// The most entries of a dictionary of integers.
pub(crate) const INTEGERS_MAX: usize = 256;
