//! The registry of index kinds. A kind is one file in this folder and one row of [`KINDS`].

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quire_document::{Doc, Value};
use quire_error::Result;

use super::{
    Arena, Bounds, GeneratedKeys, Intervals, KeyField, KeySpec, Predicate, hashed, ordinary,
    wildcard,
};
use crate::{IndexSpec, Multikey, MultikeyPaths};

/// Every kind of index that is built, in the order in which a key pattern is compared with them.
pub const KINDS: &[&Kind] = &[&ordinary::KIND, &hashed::KIND, &wildcard::KIND];

/// The names of the index kinds of MongoDB that are not built. A key pattern may name them.
const NOT_BUILT: &[&str] = &["text", "2d", "2dsphere"];

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
    /// The options that only this kind has.
    pub options: &'static [KindOption],
    /// Returns true if two specifications with one key pattern ask for the same keys.
    pub same_keys: fn(&IndexSpec, &IndexSpec) -> bool,
    /// Returns what the kind keeps of a specification besides the fields of the keys.
    pub state: fn(&IndexSpec) -> Option<State>,
    /// How queries see the index; `None` if they see it as it is.
    pub views: Option<&'static Views>,
}

/// What a kind keeps of a specification, of a type that only the kind knows.
pub type State = Arc<dyn Any + Send + Sync>;

/// An option of one kind of index. Its value is kept in [`IndexSpec::kind_options`].
#[derive(Debug)]
pub struct KindOption {
    /// The option's name.
    pub name: &'static str,
    /// Checks the value that stands in a specification.
    pub check: fn(Doc<'_>, Value<'_>) -> Result<()>,
}

/// How queries see an index that is, to them, one index for each path. They do not scan it whole or
/// between `min` and `max`.
pub struct Views {
    /// Returns the views that may answer predicates on these paths. The last argument tells which
    /// paths are arrays.
    pub of_paths: fn(&KeySpec, &BTreeSet<String>, &Multikey) -> Vec<PathView>,
    /// Returns the same view over the facts as they are now; `None` if its keys stand elsewhere by now.
    pub again: fn(&KeySpec, &Multikey) -> Option<PathView>,
    /// Returns true if the view is that of a path.
    pub is_of_path: fn(&KeySpec) -> bool,
    /// Sets the bounds of the field that holds paths, once those of the values are known.
    pub bound_paths: fn(&KeySpec, &mut [Intervals]),
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Views")
    }
}

/// An index as the index of one path, or of its regular fields alone.
#[derive(Debug, Clone)]
pub struct PathView {
    /// What the keys hold.
    pub keys: Arc<KeySpec>,
    /// For each field the components of its path that are arrays.
    pub multikey: MultikeyPaths,
}

impl Kind {
    /// Returns the kind that a key pattern asks for; `None` if it is not built.
    pub fn of(pattern: Doc<'_>) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| (kind.fits)(pattern))
    }

    /// Returns true for the name of a kind of index, also of one that is not built.
    pub(crate) fn is_named(name: &str) -> bool {
        NOT_BUILT.contains(&name) || KINDS.iter().any(|kind| kind.name == name)
    }

    /// Returns the option of this name that one of the kinds has.
    pub(crate) fn option(name: &str) -> Option<&'static KindOption> {
        KINDS.iter().flat_map(|kind| kind.options).find(|option| option.name == name)
    }
}
