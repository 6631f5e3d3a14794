//! Runs plans: reads batches of documents on a view, and writes many documents.
//!
//! Read in this order: `views.rs` (the views that a plan reads on), `unit.rs` (the unit of work of
//! a statement), `params.rs` (limits and options of a run), `opening` (from a request to an open
//! plan), `execution.rs` (batches of an open plan), `build.rs` (from a plan's nodes to operators),
//! `operators` and `scans` (the operators), `columns.rs` and `grouping` (`$group`), `joins` (stages
//! that read other collections), `modify` (writes of many documents), `mongo_buckets` (the
//! buckets of a time-series collection, as MongoDB shows them).

mod build;
mod chunks;
mod columns;
mod distinct_values;
mod env;
mod examined;
mod execution;
mod grouping;
mod holding;
mod joins;
pub mod modify;
mod mongo_buckets;
mod opening;
mod operators;
mod params;
mod recent_values;
mod record_set;
mod row;
mod scans;
mod sorting;
mod statistics;
mod steady;
mod table;
mod taking;
mod unit;
mod views;

pub use examined::{Counters, Examined};
pub use execution::Execution;
pub use mongo_buckets::{BucketFeed, of_buckets, open_buckets};
pub use opening::count::count;
pub use opening::distinct::{distinct, distinct_of};
pub use opening::explain::{ServerStage, explain};
pub use opening::open::{open, open_fed};
pub use operators::chain::check_size;
pub use operators::feed::Feed;
pub use params::{Awaits, BatchEnd, BatchLimits, ExecParams, Follows, STAGE_BYTES_MAX, ServerRows};
pub use unit::UnitOfWork;
pub use views::{FreshViews, OpenViews, Views};
