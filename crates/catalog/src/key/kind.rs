//! The registry of index kinds. A kind is one file in this folder and one row of [`KINDS`].

use quire_document::Doc;
use quire_error::Result;

use super::{
    Arena, Bounds, GeneratedKeys, KeyField, KeySpec, Predicate, hashed, ordinary, wildcard,
};
use crate::IndexSpec;

/// Every kind of index that is built, in the order in which a key pattern is compared with them.
pub const KINDS: &[&Kind] = &[&ordinary::KIND, &hashed::KIND, &wildcard::KIND];

/// Returns true if a change of a document changes the top-level field of this name.
pub type Differs<'d> = dyn Fn(&str) -> bool + 'd;

/// Adds the keys of a document to the last argument.
pub type Generate = for<'a> fn(&KeySpec, Doc<'a>, &'a Arena, &mut GeneratedKeys<'a>) -> Result<()>;

/// What one kind of index decides.
#[derive(Debug)]
pub struct Kind {
    /// The name that MongoDB's messages give the kind; empty for the ordinary one.
    pub name: &'static str,
    /// One sentence on what the kind is for.
    pub doc: &'static str,
    /// Returns true if a key pattern asks for this kind.
    pub fits: fn(Doc<'_>) -> bool,
    /// Checks a specification whose key pattern `fits`: the pattern, then the options with it.
    pub check: fn(&IndexSpec) -> Result<()>,
    /// Returns the fields of each key.
    pub fields: fn(&IndexSpec) -> Vec<KeyField>,
    /// Adds the keys of a document; the partial filter accepts it.
    pub generate: Generate,
    /// Returns true if keys can change when top-level fields do; the closure says which do.
    pub is_touched: fn(&KeySpec, &Differs<'_>) -> bool,
    /// Returns the intervals of values of a field that can hold matches of a predicate, strings
    /// as they are in documents; `None` if the index cannot find all matches.
    pub bounds: fn(&KeySpec, usize, &Predicate<'_>) -> Option<Bounds>,
    /// The index knows which components of its paths are arrays, and explain prints them.
    pub tracks_arrays: bool,
}

impl Kind {
    /// Returns the kind that a key pattern asks for; `None` if it is not built.
    pub fn of(pattern: Doc<'_>) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| (kind.fits)(pattern))
    }
}
