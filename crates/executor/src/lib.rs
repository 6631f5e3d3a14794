//! A plan on a read view to batches of documents.
//!
//! Read in this order: `views.rs` (where it reads), `unit.rs` (the unit of work that it belongs to),
//! `params.rs` (what it is given), `opening` (how a request becomes operators), `execution.rs` (how
//! they are pulled), `operators` and `scans` (the operators), `grouping` (`$group`), `joins` (stages that
//! read other collections), `modify` (writes
//! of many documents).

mod columns;
mod env;
mod examined;
mod execution;
mod grouping;
mod joins;
pub mod modify;
mod opening;
mod operators;
mod params;
mod record_set;
mod row;
mod scans;
mod table;
mod unit;
mod views;

pub use examined::{Counters, Examined};
pub use execution::Execution;
pub use opening::count::count;
pub use opening::distinct::distinct;
pub use opening::explain::{ServerStage, explain};
pub use opening::open::{open, open_fed};
pub use operators::feed::Feed;
pub use params::{BatchEnd, BatchLimits, ExecParams, STAGE_BYTES_MAX};
pub use unit::UnitOfWork;
pub use views::{FreshViews, OpenViews, Views};
