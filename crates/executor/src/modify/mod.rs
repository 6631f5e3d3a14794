//! Writes: insert, update, delete and findAndModify, of one document or many.
//!
//! A statement writes through its [`UnitOfWork`](crate::UnitOfWork). It finds records as a read
//! does, by a plan on views that it releases, and reads each of them again in the storage
//! transaction that writes it. Outside a client's transaction many documents are written in chunks.
//! Each chunk is its own commit, so memory stays bounded and other writers make progress; a chunk
//! that meets a conflict runs again. A writer holds no lock and no snapshot while it waits.

mod chunk;
mod delete;
mod find_and_modify;
mod insert;
mod insert_buckets;
mod insert_outcome;
mod merge;
mod out;
mod points;
mod results;
mod statement;
mod time_series;
mod update;
mod upsert;

pub use chunk::insert_commits;
pub use delete::{DeleteOutcome, DeleteRequest, delete};
pub use find_and_modify::{
    FindAndModifyOutcome, FindAndModifyRequest, FoundChange, find_and_modify,
};
pub use insert::{InsertOptions, insert_many};
pub use insert_outcome::InsertOutcome;
pub use results::write_results;
pub use update::{UpdateOutcome, UpdateRequest, check_update, try_update, update};
pub use upsert::check_upsert_filter;

use quire_collections::Failure;

/// Returns true if a failed attempt lost a conflict with another writer.
fn is_conflict(failure: &Failure) -> bool {
    matches!(failure, Failure::Conflict(_))
}
