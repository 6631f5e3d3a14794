//! Jobs of users: commands of Quire's own that create, show and run them, and what a run does.
//!
//! A job is a document of `admin.system.jobs` (`definition.rs`). While it is active, the table of jobs
//! has a row for it too (`table.rs`) with its position. A run writes through a transaction with the
//! rights of the job's owner, and the commit of that transaction also stores the new position
//! (`run/transaction.rs`), so that every run has its effect exactly once. A job that runs in parallel has
//! several rows (`lanes.rs`).

pub mod create_job;
mod cron;
mod definition;
pub mod drop_job;
mod lanes;
pub mod list_jobs;
pub mod pause_job;
mod run;
pub mod run_job;
mod schedule;
mod slots;
mod table;
pub mod update_job;

pub use run::{drop_left_results, step};
pub use table::KIND;
