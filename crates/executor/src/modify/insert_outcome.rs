//! What an insert of documents, or of buckets, has done.

use quire_error::Error;
use quire_storage::Committed;

/// The result of an insert.
#[derive(Debug, Default)]
pub struct InsertOutcome {
    /// The number of inserted documents.
    pub inserted: u64,
    /// The errors with the positions of their documents, in ascending order. An ordered insert ends
    /// with its first error.
    pub errors: Vec<(usize, Error)>,
    /// The last commit.
    pub committed: Option<Committed>,
}
