//! A scan of a part of an index, and what the scanned keys tell about documents.

use std::sync::Arc;

use quire_catalog::key::{Intervals, KeySpec, Part};
use quire_catalog::{Collection, Index, MultikeyPaths};
use quire_document::{DocBuf, Value};
use quire_mql::filter::{KeyTypes, Node as Condition};

use super::Node;

/// A scan of one index.
#[derive(Debug, Clone)]
pub struct IndexScan {
    /// The collection of the index.
    pub collection: Arc<Collection>,
    /// The index that is scanned.
    pub index: Arc<Index>,
    /// The content of the scanned keys.
    pub keys: Arc<KeySpec>,
    /// The array paths that the plan relies on.
    pub multikey: MultikeyPaths,
    /// The intervals to visit, for each field of the index.
    pub bounds: Vec<Intervals>,
    /// The field that the keys of a join bound too, in a plan that is not bound to them yet.
    pub keyed: Option<KeyedField>,
    /// The range of `min` and `max`, which replaces `bounds`.
    pub range: Option<KeyRange>,
    /// True to scan the index from its end.
    pub backward: bool,
    /// A test of the key's values.
    pub filter: Option<Condition>,
}

/// The field of an index scan that the keys of a join bound.
#[derive(Debug, Clone, Copy)]
pub struct KeyedField {
    /// The position of the field in the index.
    pub field: usize,
    /// The types of keys for which the index has all documents.
    pub(crate) types: KeyTypes,
    /// True if the partial index has all documents only because of the keys.
    pub(crate) by_partial: bool,
}

/// A part of an index between two complete keys, in the index's own order.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// The first key of the range: one value for each field.
    pub start: Option<DocBuf>,
    /// The first key after the range.
    pub end: Option<DocBuf>,
}

impl IndexScan {
    /// Returns a scan of a whole index of `collection`.
    pub fn whole(
        collection: &Arc<Collection>,
        index: &Arc<Index>,
        multikey: MultikeyPaths,
    ) -> Self {
        IndexScan {
            collection: Arc::clone(collection),
            index: Arc::clone(index),
            keys: Arc::clone(&index.keys),
            multikey,
            bounds: vec![Intervals::all(); index.keys.fields().len()],
            keyed: None,
            range: None,
            backward: false,
            filter: None,
        }
    }

    /// Returns true if it visits all keys of the index.
    pub fn is_whole(&self) -> bool {
        self.range.is_none() && self.keyed.is_none() && self.bounds.iter().all(Intervals::is_all)
    }

    /// Returns true if a field of its key is visited from larger to smaller values.
    pub fn is_reversed(&self, field: usize) -> bool {
        self.keys.is_descending(field) != self.backward
    }

    /// Returns the field of the key with this path.
    pub fn field(&self, path: &str) -> Option<usize> {
        self.keys.field(path)
    }

    /// Returns true if the scanned keys contain the value of `field` as it is in the document.
    pub fn gives_value(&self, field: usize) -> bool {
        let all = Intervals::all();
        let intervals = match &self.range {
            None => self.bounds.get(field).unwrap_or(&all),
            Some(_) => &all,
        };
        !self.multikey.field(field)
            && self.has_one_path()
            && !self.index.has_long_keys()
            && self.keys.gives_value(field, intervals)
    }

    /// Returns true if a document made from a scanned key has the value of `path` as it is in the
    /// document. A value above the path in the key must be whole too, because it takes the place of
    /// the values below it.
    pub fn gives(&self, path: &str) -> bool {
        self.field(path).is_some_and(|field| self.gives_value(field))
            && self.fields_above(path).all(|above| self.gives_value(above))
    }

    /// Returns true if a document made from a scanned key is the same along `path` as the document,
    /// as a projection keeps it. Without a value at the path the key does not tell `{a: {}}` from
    /// `{a: 5}`.
    pub fn gives_with_parents(&self, path: &str) -> bool {
        let may_be_missing = |field: usize| {
            let null = Intervals::point(Value::Null);
            let bounds = self.bounds.get(field).filter(|_| self.range.is_none());
            !(self.keys.is_sparse() && self.keys.fields().len() == 1)
                && bounds.is_none_or(|bounds| !bounds.intersect(&null).0.is_empty())
        };
        self.gives(path)
            && (!path.contains('.')
                || self.fields_above(path).next().is_some()
                || self.field(path).is_some_and(|field| !may_be_missing(field)))
    }

    /// Returns the fields of the key whose paths lead to `path`.
    fn fields_above<'p>(&'p self, path: &'p str) -> impl Iterator<Item = usize> + 'p {
        let is_above =
            move |above: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'));
        let fields = self.keys.fields().iter().enumerate();
        let above =
            fields.filter(move |(_, field)| is_above(&field.path) && field.part == Part::Value);
        above.map(|(at, _)| at)
    }

    /// Returns false if its keys contain paths and it visits keys of several paths.
    fn has_one_path(&self) -> bool {
        let path = self.keys.path_field().and_then(|at| self.bounds.get(at));
        path.is_none_or(Intervals::is_point)
    }

    /// Returns true if it may visit several keys of a document.
    pub fn repeats_documents(&self) -> bool {
        self.multikey.any() || !self.has_one_path()
    }

    /// Returns true if it visits one contiguous range of keys: points, then one interval, then
    /// everything.
    pub fn is_one_range(&self) -> bool {
        let mut bounds = self.bounds.iter().skip_while(|intervals| intervals.is_point());
        bounds.next().is_none_or(|intervals| intervals.0.len() == 1)
            && bounds.all(Intervals::is_all)
    }
}

impl Node {
    /// Returns the index scans of a query whose bounds are keys.
    pub(crate) fn keyed_scan(&self) -> Option<&IndexScan> {
        let mut found = None;
        self.for_each_scan(&mut |scan| found = found.or(scan.keyed.is_some().then_some(scan)));
        found
    }
}
