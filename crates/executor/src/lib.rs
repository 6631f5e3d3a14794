//! A plan on a read view to batches of documents.
//!
//! Read in this order: `views.rs` (where it reads), `params.rs` (what it is given), `find.rs`,
//! `aggregate.rs`, `count.rs`, `distinct.rs` (how a request is opened), `execution.rs` (how it is
//! continued), `build.rs` and `operator.rs` (its stages), then one file a stage. A long scan of a
//! collection uses several threads: `split_scan.rs`, `scan_pieces.rs`.

mod aggregate;
mod build;
mod chain;
mod collection_scan;
mod count;
mod distinct;
mod env;
mod examined;
mod execution;
mod explain;
mod fetch;
mod filtering;
mod find;
mod group;
mod group_runs;
mod group_table;
mod grouping;
mod helpers;
mod index_bounds;
mod index_scan;
mod metadata;
pub mod modify;
mod operator;
mod params;
mod projection;
mod random_picks;
mod record_set;
mod row;
mod sample;
mod scan_pieces;
mod simple;
mod sort;
mod spill;
mod split_scan;
mod statistics;
mod union;
mod views;

pub use aggregate::{open_aggregate, open_pipeline_over};
pub use count::count;
pub use distinct::distinct;
pub use examined::{Counters, Examined};
pub use execution::Execution;
pub use explain::{Explained, explain};
pub use find::open_find;
pub use params::{BatchEnd, BatchLimits, ExecParams, STAGE_BYTES_MAX};
pub use views::{FreshViews, PinnedView, Views};
