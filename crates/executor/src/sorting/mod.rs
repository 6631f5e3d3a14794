//! Sorting rows: by bytes whose order is that of the sort, in memory or, beyond that, in runs on disk.
//!
//! Reading order: `batch` (rows with their keys), `order` (the order of many keys), `sorter`, `taker` (keys
//! made by the threads that read).

pub(crate) mod batch;
mod order;
pub(crate) mod sorter;
pub(crate) mod taker;
