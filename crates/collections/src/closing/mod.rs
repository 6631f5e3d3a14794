//! Moves points of time-series collections between records and buckets: `pass` closes points of one source after the
//! other, `reopening` gives points back before a statement writes them, `dropping` deletes whole buckets.

mod dropping;
mod pass;
mod reopening;

pub use dropping::drop_buckets;
pub use pass::{ClosePolicy, Closed, Closing};

pub(crate) use dropping::{expire_buckets, has_expired_bucket};
