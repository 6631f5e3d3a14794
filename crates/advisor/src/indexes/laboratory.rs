//! The laboratory of the advice about indexes: a place with copies of collections in which indexes are
//! really built and commands really run. This crate knows no engine; `commands` implements the trait
//! over the engine in memory.

use crate::indexes::definition::{ExistingIndex, IndexDefinition};
use crate::indexes::measured::Measured;
use crate::scaled::SampleSize;
use quire_document::Doc;

/// The share of what fits into the laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyShare {
    /// A small part, beside the whole, shows how costs grow with the number of documents.
    Fourth,
    /// As much as fits.
    Whole,
}

/// An index that the laboratory was asked to build.
#[derive(Clone, Debug)]
pub struct BuiltIndex {
    /// Its bytes in the copy, or why it cannot be built.
    pub bytes: Result<u64, String>,
    /// The greatest number of keys that a document has in it.
    pub most_keys: u64,
}

/// A copy of a collection in the laboratory.
#[derive(Clone, Debug)]
pub struct LaboratoryCopy {
    /// The documents of the copy and of the collection.
    pub size: SampleSize,
    /// The indexes that were asked for, in order.
    pub built: Vec<BuiltIndex>,
    /// The greatest number of keys that a document has in an index that the collection has.
    pub most_keys: u64,
}

/// A place where indexes are tried.
pub trait Laboratory {
    /// The error of a laboratory.
    type Error;

    /// Returns the indexes of a collection, with `_id`; an empty list if it does not exist.
    ///
    /// # Errors
    /// Those of the laboratory.
    fn indexes(&mut self, collection: &str) -> Result<Vec<ExistingIndex>, Self::Error>;

    /// Makes a new copy of a collection, with its own indexes and with these. Earlier copies are gone.
    /// `others` are collections that the commands read too.
    ///
    /// # Errors
    /// Those of the laboratory, but not those of an index that cannot be built.
    fn copy(
        &mut self,
        collection: &str,
        others: &[String],
        share: CopyShare,
        indexes: &[IndexDefinition],
    ) -> Result<LaboratoryCopy, Self::Error>;

    /// Drops all indexes of the copy except `_id` and those with these names, and builds the given ones
    /// in their order.
    ///
    /// # Errors
    /// Those of the laboratory, and those of an index that cannot be built.
    fn rebuild(
        &mut self,
        collection: &str,
        names: &[&str],
        indexes: &[IndexDefinition],
    ) -> Result<(), Self::Error>;

    /// Hides all indexes of the copy from the planner except `_id` and those with these names.
    ///
    /// # Errors
    /// Those of the laboratory.
    fn show(&mut self, collection: &str, names: &[&str]) -> Result<(), Self::Error>;

    /// Runs a command on the copies. `None` if the laboratory cannot run it, with nothing written.
    ///
    /// # Errors
    /// Those of the laboratory, but not those of the command.
    fn run(&mut self, command: Doc<'_>) -> Result<Option<Measured>, Self::Error>;

    /// Passes each document of the copy to `each`.
    ///
    /// # Errors
    /// Those of the laboratory.
    fn read(&mut self, collection: &str, each: &mut dyn FnMut(Doc<'_>)) -> Result<(), Self::Error>;
}
