//! The durable table of jobs: long work that goes on by itself, a bounded step at a time.
//!
//! A job has an identity (its kind and a name within the kind), parameters that never change, and a
//! position. [`Store::step_job`] runs one step: what the step writes and the new position are one
//! commit, so after a crash the job goes on behind its last effect, and no effect happens twice.
//! What a kind does is known above this crate, by the runner; the work of the kinds that need only
//! documents is here (`expire.rs`, `reap.rs`, `derive.rs`, `build_pattern.rs`).

mod build_pattern;
mod derive;
mod expire;
mod pattern_lag;
mod reap;
mod step;
mod table;

pub use build_pattern::{build_pattern, build_pattern_step};
pub use derive::derive_step;
pub use expire::{ExpireFailure, Expired, Expiring, expire_documents, expire_step};
pub use pattern_lag::PatternLag;
pub use reap::{IsAlive, reap_job, reap_step};
pub use step::{Progress, Rest, STEP_ROWS_MAX, Stepped};
