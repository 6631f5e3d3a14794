//! The registry of index kinds. A kind is one file in this folder and one row of [`KINDS`].

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quire_document::{Doc, Value};
use quire_error::Result;

use super::{
    Arena, Bounds, GeneratedKeys, Intervals, KeyField, KeySpec, Predicate, Searches, geo, hashed,
    ordinary, text, wildcard,
};
use crate::{IndexSpec, Multikey, MultikeyPaths};

/// All index kinds, in the order in which a key pattern is matched against them.
pub const KINDS: &[&Kind] = &[
    &ordinary::KIND,
    &hashed::KIND,
    &text::KIND,
    &geo::KIND,
    &geo::flat::KIND,
    &wildcard::KIND,
    #[cfg(test)]
    &super::toy_tests::KIND,
];

/// Names of MongoDB's index kinds that are not built. A key pattern may contain them.
const NOT_BUILT: &[&str] = &[];

/// Returns true if a change of a document changes the top-level field of this name.
pub type Differs<'d> = dyn Fn(&str) -> bool + 'd;

/// Adds the keys of a document to the last argument.
pub type Generate = for<'a> fn(&KeySpec, Doc<'a>, &'a Arena, &mut GeneratedKeys<'a>) -> Result<()>;

/// The functions and facts of one index kind.
#[derive(Debug)]
pub struct Kind {
    /// The name of the kind in MongoDB's messages; empty for the ordinary index.
    pub name: &'static str,
    /// The purpose of the kind, in one sentence.
    pub doc: &'static str,
    /// Returns true if a key pattern is one of this kind.
    pub fits: fn(Doc<'_>) -> bool,
    /// Completes a specification whose key pattern `fits`, before it is checked: writes the key pattern
    /// and the options in the form in which they are stored. The document is the specification as it
    /// was written.
    pub complete: fn(&mut IndexSpec, Doc<'_>) -> Result<()>,
    /// Checks a specification whose key pattern `fits`: first the pattern, then the options
    /// together with it.
    pub check: fn(&IndexSpec) -> Result<()>,
    /// Returns the fields of each key.
    pub fields: fn(&IndexSpec) -> Vec<KeyField>,
    /// Adds the keys of a document that the partial filter accepts.
    pub generate: Generate,
    /// Returns true if a change of top-level fields can change keys; the closure tells which fields
    /// differ.
    pub is_touched: fn(&KeySpec, &Differs<'_>) -> bool,
    /// Returns the intervals of values of a field that can hold matches of a predicate, strings
    /// as they are in documents; `None` if the index cannot find all matches.
    pub bounds: fn(&KeySpec, usize, &Predicate<'_>) -> Option<Bounds>,
    /// True if the index knows which components of its paths are arrays, so that explain prints
    /// them.
    pub tracks_arrays: bool,
    /// True if the index holds only documents that have a value in a field of `Part::Hash`, so that a
    /// plan needs a condition on such a field.
    pub needs_hash: bool,
    /// True if explain shows the bounds of a scan, and the direction in which the index is stored.
    pub shows_bounds: bool,
    /// True if the index can have a collation.
    pub collates: bool,
    /// True if a collection can have one index of the kind only.
    pub is_alone: bool,
    /// The operator of whole documents that the index answers; `None` if it answers conditions on
    /// paths only.
    pub searches: Option<&'static Searches>,
    /// The options that only this kind has.
    pub options: &'static [KindOption],
    /// Returns true if two specifications with the same key pattern give the same keys.
    pub same_keys: fn(&IndexSpec, &IndexSpec) -> bool,
    /// Returns the data that the kind derives from a specification, besides the fields of the keys.
    pub state: fn(&IndexSpec) -> Option<State>,
    /// How queries see the index; `None` if they use it directly.
    pub views: Option<&'static Views>,
}

/// Data that a kind derives from a specification. Only the kind knows its type.
pub type State = Arc<dyn Any + Send + Sync>;

/// An option of one index kind. Its value is kept in [`IndexSpec::kind_options`].
#[derive(Debug)]
pub struct KindOption {
    /// The option's name.
    pub name: &'static str,
    /// Checks the value of the option in a specification.
    pub check: fn(Doc<'_>, Value<'_>) -> Result<()>,
}

/// The views of an index that queries see as one index for each path. Queries cannot scan such an
/// index as a whole or between `min` and `max`.
pub struct Views {
    /// Returns the views that may answer predicates on these paths. The last argument tells which
    /// paths are arrays.
    pub of_paths: fn(&KeySpec, &BTreeSet<String>, &Multikey) -> Vec<PathView>,
    /// Returns the view for the current facts about arrays; `None` if its keys now have other
    /// paths.
    pub refresh: fn(&KeySpec, &Multikey) -> Option<PathView>,
    /// Returns true if the view is the index of a path.
    pub is_of_path: fn(&KeySpec) -> bool,
    /// Sets the bounds of the path field, after the bounds of the values are known.
    pub bound_paths: fn(&KeySpec, &mut [Intervals]),
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Views")
    }
}

/// An index seen as the index of one path, or of only its regular fields.
#[derive(Debug, Clone)]
pub struct PathView {
    /// The key specification of the view.
    pub keys: Arc<KeySpec>,
    /// For each field, the components of its path that are arrays.
    pub multikey: MultikeyPaths,
}

impl Kind {
    /// Returns the kind of a key pattern; `None` if it is not built.
    pub fn of(pattern: Doc<'_>) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| (kind.fits)(pattern))
    }

    /// Returns true for the name of an index kind, built or not.
    pub(crate) fn is_named(name: &str) -> bool {
        NOT_BUILT.contains(&name) || KINDS.iter().any(|kind| kind.name == name)
    }

    /// Returns the option with this name, of any kind.
    pub(crate) fn option(name: &str) -> Option<&'static KindOption> {
        KINDS.iter().flat_map(|kind| kind.options).find(|option| option.name == name)
    }
}
