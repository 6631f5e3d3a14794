//! The key specification of an index: its kind, fields, directions and collation in one value. It
//! determines the keys of a document, their encoding, the keys that a predicate can match, the
//! values that a key can reproduce, and the changes of a document that affect its keys.
//!
//! Read in this order: this file, [`Kind`] (the functions of one index kind), `ordinary.rs` (the
//! ordinary index), [`Intervals`] and [`bounds`] (from predicates to ranges of key values).
//!
//! A *key value* is the value that a key has for one field. Bounds are intervals of key values. For
//! most fields it is the document's value; under a collation the key value of a string is its sort
//! key (`collated.rs`).

mod bounds;
mod collated;
mod generated;
mod geo;
mod hashed;
mod interval;
mod kind;
mod ordinary;
mod search;
mod text;
#[cfg(test)]
mod toy_tests;
mod wildcard;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use quire_document::key::{self, KeyError, KeyReader, TypeBits};
use quire_document::path::Path;
use quire_document::{Collator, Doc, DocBuf, Value, ValueBuf};
use quire_error::Result;
use quire_mql::collation::{Collation, as_collator};
use quire_mql::context::stoppable;
use quire_mql::filter::Test;
use quire_mql::{EvalContext, Shared};

use crate::{IndexSpec, Multikey, PartialFilter};
pub use bounds::{Bounds, Field, Tightness, bounds, wants_null};
pub use generated::{Arena, GeneratedKeys};
pub use interval::{Interval, Intervals};
pub use kind::{KINDS, Kind, KindOption, PathView, State, Views};
pub use search::{
    Answer, FoundKey, SearchMethod, SearchPlan, SearchScan, Searched, SearchedCollection, Searches,
    Searching, Step,
};

/// The key specification of an index.
#[derive(Clone)]
pub struct KeySpec {
    kind: &'static Kind,
    fields: Vec<KeyField>,
    /// The paths of `fields`, split into components.
    paths: Vec<Path>,
    sparse: bool,
    partial: Option<Arc<PartialFilter>>,
    collation: Option<Arc<Collation>>,
    /// The data of the kind, if it has any.
    state: Option<State>,
}

/// A field of each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField {
    /// The dotted path of the value in the document.
    pub path: String,
    /// True if the index has this field in descending order.
    pub descending: bool,
    /// What the key contains for the value.
    pub part: Part,
}

/// What a key contains for a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The value itself.
    Value,
    /// The hash of the value, a long.
    Hash,
    /// The path of the value, a string. The next field has the value.
    Path,
    /// A value that the kind computes of the document. No condition on a path bounds it.
    Computed,
}

/// A test of one path whose matches an index may find.
#[derive(Debug, Clone, Copy)]
pub struct Predicate<'p> {
    /// The test of the path's values.
    pub test: &'p Test,
    /// True if the test must fail.
    pub negated: bool,
    /// The path whose values are tested.
    pub path: &'p str,
    /// True if a component of the path may be an array in a document.
    pub multikey: bool,
    /// How the test compares strings; `None` for byte order.
    pub collation: Option<&'p Collation>,
}

impl KeySpec {
    /// Returns the key specification of an index specification.
    pub fn new(spec: &IndexSpec) -> Self {
        // Parsing and the decoding of the catalog refuse a kind that is not built.
        let kind = Kind::of(spec.key.as_doc()).expect("the index's kind is built");
        let fields = (kind.fields)(spec);
        let partial = spec.partial_filter.as_ref().map(|doc| {
            let filter = PartialFilter::parse(doc.as_doc(), spec.collation.as_ref());
            Arc::new(filter.unwrap_or_else(|_| PartialFilter::none()))
        });
        KeySpec {
            kind,
            paths: fields.iter().map(|field| Path::new(&field.path)).collect(),
            fields,
            sparse: spec.sparse.unwrap_or(false),
            partial,
            collation: spec.collation.clone(),
            state: (kind.state)(spec),
        }
    }

    /// Returns the kind.
    pub fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the fields of each key, in key order.
    pub fn fields(&self) -> &[KeyField] {
        &self.fields
    }

    /// Returns true if documents without any of the fields have no entry.
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Returns the filter of a partial index.
    pub fn partial(&self) -> Option<&Arc<PartialFilter>> {
        self.partial.as_ref()
    }

    /// Returns how the index compares strings; `None` for byte order.
    pub fn collation(&self) -> Option<&Collation> {
        self.collation.as_deref()
    }

    /// Returns the collation in the form that comparisons use.
    pub fn collator(&self) -> Option<&dyn Collator> {
        self.collation.as_deref().map(|collation| collation as &dyn Collator)
    }

    /// Returns the position of the field with this path.
    pub fn field(&self, path: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.path == path)
    }

    /// Returns true if queries see the index only through views of single paths.
    pub fn is_seen_in_views(&self) -> bool {
        self.kind.views.is_some()
    }

    /// Returns the views that may answer predicates on these paths; `None` if queries use the index
    /// directly. `facts` tell which paths are arrays.
    pub fn views(&self, paths: &BTreeSet<String>, facts: &Multikey) -> Option<Vec<PathView>> {
        self.kind.views.map(|views| (views.of_paths)(self, paths, facts))
    }

    /// Returns this view for the current facts about arrays; `None` if its keys now have other
    /// paths.
    pub fn refreshed_view(&self, facts: &Multikey) -> Option<PathView> {
        (self.kind.views?.refresh)(self, facts)
    }

    /// Returns true if this is the view of a path.
    pub fn views_path(&self) -> bool {
        self.kind.views.is_some_and(|views| (views.is_of_path)(self))
    }

    /// Sets the bounds of the path field, after the bounds of the values are known.
    pub fn bound_paths(&self, bounds: &mut [Intervals]) {
        if let Some(views) = self.kind.views {
            (views.bound_paths)(self, bounds);
        }
    }

    /// Returns the position of the path field. The field of the values follows it.
    pub fn path_field(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.part == Part::Path)
    }

    /// Returns false for the wildcard field of a view that has no path.
    pub fn is_shown(&self, field: usize) -> bool {
        self.path_field().is_none_or(|at| field != at + 1 || self.views_path())
    }

    /// Returns the key pattern as explain shows it: `written`, with the scanned path instead of a
    /// wildcard term.
    pub fn shown_pattern(&self, written: Doc<'_>) -> DocBuf {
        let Some(at) = self.path_field() else { return written.to_owned() };
        DocBuf::build(|out| {
            for (place, (path, direction)) in written.fields().enumerate() {
                if place != at {
                    out.append(path, direction);
                    continue;
                }
                out.append(&self.fields[at].path, direction);
                if self.is_shown(at + 1) {
                    out.append(&self.fields[at + 1].path, direction);
                }
            }
        })
    }

    /// Returns true if the strings of a field are sort keys of a collation.
    pub fn holds_sort_keys(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|field| self.collator_of(field).is_some())
    }

    /// Returns the collation of the strings in a field.
    fn collator_of(&self, field: &KeyField) -> Option<&dyn Collator> {
        self.collator().filter(|_| field.part != Part::Path)
    }

    /// Returns true if the index has a field in descending order.
    pub fn is_descending(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|field| field.descending)
    }

    /// Returns the keys of a document. In a sparse index a document without any of the fields has
    /// no key, and in a partial index a document that the filter rejects. `arena` holds the values
    /// that are not part of the document.
    ///
    /// # Errors
    /// 171 CannotIndexParallelArrays, and errors of the kind for values that it cannot index.
    pub fn generate<'a>(&self, doc: Doc<'a>, arena: &'a Arena) -> Result<GeneratedKeys<'a>> {
        let mut keys = GeneratedKeys::new(self.fields.len());
        if let Some(partial) = &self.partial {
            let shared = Shared::default().with_collator(as_collator(self.collation.as_ref()));
            let context = EvalContext::new(arena, doc, &shared);
            if !stoppable(|| partial.matches(doc, &context))? {
                return Ok(keys);
            }
        }
        (self.kind.generate)(self, doc, arena, &mut keys)?;
        Ok(keys)
    }

    /// Returns true if a change from `old` to `new` may change the keys. Returns false only if the
    /// top-level fields that the keys and the partial filter read have the same bytes.
    pub fn is_touched(&self, old: Doc<'_>, new: Doc<'_>) -> bool {
        let differs = |head: &str| match (old.find(head), new.find(head)) {
            (None, None) => false,
            (Some(a), Some(b)) => a.kind() != b.kind() || a.value_bytes() != b.value_bytes(),
            _ => true,
        };
        (self.kind.is_touched)(self, &differs)
            || self.partial.as_ref().is_some_and(|partial| match partial.heads() {
                Some(heads) => heads.iter().any(|head| differs(head)),
                None => true,
            })
    }

    /// Appends the values of a key and their type bits. `values` are the values of the first
    /// fields; `None` is a missing value.
    pub fn append(&self, values: &[Option<Value<'_>>], key: &mut Vec<u8>, bits: &mut TypeBits) {
        for (field, value) in self.fields.iter().zip(values) {
            let collator = self.collator_of(field);
            match value {
                Some(value) => key::append_full(*value, field.descending, collator, key, bits),
                None => key::append_missing(field.descending, key, bits),
            }
        }
    }

    /// Appends the key value of a field, for a bound.
    pub fn append_bound(&self, field: usize, value: Value<'_>, key: &mut Vec<u8>) {
        let descending = self.is_descending(field);
        match self.fields.get(field).and_then(|field| self.collator_of(field)) {
            None => key::append(value, descending, key),
            Some(_) => collated::append(value, descending, key),
        }
    }

    /// Returns the key value of a document's value.
    pub fn key_value(&self, value: Value<'_>) -> ValueBuf {
        match self.collator() {
            None => ValueBuf::new(value),
            Some(collator) => collated::key_value(value, collator),
        }
    }

    /// Decodes a key into its key values; `None` for a field that the document does not have.
    ///
    /// # Errors
    /// The bytes are not a key of this specification.
    pub fn decode(&self, key: &[u8], bits: &[u8]) -> Result<Vec<Option<ValueBuf>>, KeyError> {
        let mut reader = KeyReader::new(key, bits);
        let value = |field: &KeyField| {
            reader.has_sort_keys(self.collator_of(field).is_some());
            reader.next(field.descending)
        };
        self.fields.iter().map(value).collect()
    }

    /// Returns the intervals of `field` that can contain matches of the predicate; `None` if the
    /// index cannot find all matches.
    pub fn bounds(&self, field: usize, predicate: &Predicate<'_>) -> Option<Bounds> {
        if self.collation() != predicate.collation && bounds::compares_strings(predicate.test) {
            return None;
        }
        (self.kind.bounds)(self, field, predicate)
    }

    /// Returns true if the index can serve conditions on paths, not only the operator of its kind.
    pub fn serves_paths(&self) -> bool {
        self.kind.searches.is_none() || self.kind.needs_hash
    }

    /// Returns true if the index may have no key of a document because the document has no value in
    /// its fields.
    pub fn misses_documents(&self) -> bool {
        self.sparse || self.kind.needs_hash
    }

    /// Returns true if a scan finds all matches of conditions on these fields of the index.
    pub fn finds_all(&self, is_bounded: impl Fn(usize) -> bool) -> bool {
        let mut fields = self.fields.iter().enumerate();
        !self.kind.needs_hash
            || fields.any(|(number, field)| field.part == Part::Hash && is_bounded(number))
    }

    /// Returns true if the keys within `intervals` reproduce the document's value of `field`
    /// exactly.
    pub fn gives_value(&self, field: usize, intervals: &Intervals) -> bool {
        let whole = self.fields.get(field).is_some_and(|field| field.part == Part::Value);
        whole && (self.collation.is_none() || !intervals.hold_strings())
    }

    /// Returns true if keys within `intervals` are in the order in which a sort under `collation`
    /// puts the values of `field`.
    pub fn gives_order(
        &self,
        field: usize,
        intervals: &Intervals,
        collation: Option<&Collation>,
    ) -> bool {
        let whole = self.fields.get(field).is_some_and(|field| field.part == Part::Value);
        whole && (self.collation() == collation || !intervals.hold_strings())
    }
}

impl fmt::Debug for KeySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySpec")
            .field("kind", &self.kind.name)
            .field("fields", &self.fields)
            .field("sparse", &self.sparse)
            .field("partial", &self.partial)
            .finish_non_exhaustive()
    }
}
