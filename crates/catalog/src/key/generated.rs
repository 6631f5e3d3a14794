//! The keys of one document in one index, not yet encoded.

use std::collections::BTreeSet;

use quire_document::Value;
use quire_document::path::KeyArrays;
use smallvec::{SmallVec, smallvec};

/// Memory for values of keys that are not part of the document.
pub type Arena = bumpalo::Bump;

/// The keys of one document in one index: `fields` values each, in document order. A key may
/// occur more than once.
#[derive(Debug, Default)]
pub struct GeneratedKeys<'a> {
    /// The values of all keys, one key after the other; a missing value (`None`) sorts as null.
    /// Most indexes have one or two values for a document.
    pub values: SmallVec<[Option<Value<'a>>; 2]>,
    /// The number of values in each key.
    pub fields: usize,
    /// For each field, the components of its path that are arrays.
    pub multikey: KeyArrays,
    /// In a wildcard index, the paths of arrays, with marks on those that contain arrays.
    pub arrays: BTreeSet<&'a str>,
}

impl<'a> GeneratedKeys<'a> {
    /// Returns an empty set of keys with `fields` values each.
    pub(super) fn new(fields: usize) -> Self {
        GeneratedKeys {
            values: SmallVec::new(),
            fields,
            multikey: smallvec![0; fields],
            arrays: BTreeSet::new(),
        }
    }

    /// Returns the keys.
    pub fn keys(&self) -> impl Iterator<Item = &[Option<Value<'a>>]> {
        self.values.chunks_exact(self.fields.max(1))
    }
}
