//! How an index answers a search: a condition on whole documents that gives them a score, a distance or
//! an order (`$text`, `$near`).
//!
//! A kind that answers an operator sets [`Kind::searches`](super::Kind::searches), and all else is in
//! the kind's file. It *binds* the search to an index, so that the search can test documents; it
//! *plans* the search beside the other conditions of the filter; and it *runs* the search: the executor
//! asks for a [`Step`] after the other, and passes on the keys and documents that a step asks for. So
//! the kind does no I/O.

use std::fmt::{self, Debug};
use std::sync::Arc;

use quire_document::key::{KeyError, KeyReader};
use quire_document::{Doc, DocBuf, DocWriter, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::filter::{Node as Condition, Search};

use super::{Intervals, KeySpec};
use crate::IndexSpec;

/// A search that knows its index, or needs none to test documents.
pub type Bound = Arc<dyn Search>;

/// The collection of a search, and the contents of the indexes that readers may use.
#[derive(Debug)]
pub struct SearchedCollection<'c> {
    /// The name of the collection, for messages.
    pub name: String,
    /// True for a time-series collection.
    pub is_time_series: bool,
    /// The contents of the keys of each index.
    pub indexes: Vec<&'c KeySpec>,
}

/// The operator that an index kind answers.
pub struct Searches {
    /// The operator's name, with its dollar sign.
    pub operator: &'static str,
    /// Returns true if the index can answer a search of the operator, for example because it has the
    /// path of the search.
    pub answers: fn(&KeySpec, &dyn Search) -> bool,
    /// Binds a search whose indexes the kind chooses itself; `None` to bind it to the one that
    /// [`answers`](Self::answers).
    pub choose: fn(&dyn Search, Option<&SearchedCollection<'_>>) -> Result<Option<Bound>>,
    /// Returns the search for an index of this specification. The result can test documents.
    pub bind: fn(&IndexSpec, &dyn Search) -> Result<Arc<dyn Search>>,
    /// Plans a bound search; `None` if the index cannot answer it beside these conditions.
    pub plan: fn(&KeySpec, &Searched<'_>) -> Option<SearchPlan>,
    /// Returns the error of a search that this number of indexes can answer; `None` if it is right.
    pub wrong_number: fn(indexes: usize) -> Option<Error>,
}

impl fmt::Debug for Searches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Searches").field(&self.operator).finish()
    }
}

impl KeySpec {
    /// Returns how the index answers a search; `None` if it does not.
    pub fn searches(&self, search: &dyn Search) -> Option<&'static Searches> {
        let searches = self.kind().searches?;
        let fits = searches.operator == search.operator() && (searches.answers)(self, search);
        fits.then_some(searches)
    }
}

/// A search, and the conditions beside it.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'s> {
    /// The bound search.
    pub search: &'s dyn Search,
    /// The other conditions that hold for each result.
    pub beside: &'s [&'s Condition],
    /// How these conditions compare strings; `None` for byte order.
    pub collation: Option<&'s Collation>,
    /// True if a key may be truncated, so that it does not tell the value of each field.
    pub long_keys: bool,
}

/// How the scans of a search answer a condition beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Every key within the bounds belongs to a document that passes.
    Exact,
    /// The scans must test their keys with it.
    ByKey,
    /// The documents must be tested.
    None,
}

/// How an index answers a search.
#[derive(Debug, Clone)]
pub struct SearchPlan {
    /// The answers to [`Searched::beside`], one for each.
    pub answers: Vec<Answer>,
    /// The scans with which the search begins.
    pub scans: Vec<SearchScan>,
    /// The rest of the search.
    pub method: Arc<dyn SearchMethod>,
}

/// A scan of a part of the index.
#[derive(Debug, Clone)]
pub struct SearchScan {
    /// The intervals to visit, for each field of the key.
    pub bounds: Vec<Intervals>,
    /// True to scan the index from its end.
    pub backward: bool,
}

/// A planned search.
pub trait SearchMethod: Debug + Send + Sync {
    /// Returns MongoDB's name of the stage that tests the documents found; `None` if they need no test.
    fn check_stage(&self) -> Option<&'static str>;

    /// Writes the facts that explain shows of that stage.
    fn write_facts(&self, out: &mut DocWriter<'_>);

    /// Returns true if a document that the scans found passes. It is only asked if there is a
    /// [`check_stage`](Self::check_stage).
    ///
    /// # Errors
    /// The interrupt's error.
    fn check(&self, doc: Doc<'_>) -> Result<bool>;

    /// Returns MongoDB's name of the stage that makes rows with metadata of the keys.
    fn gather_stage(&self) -> &'static str;

    /// Returns the name in `$meta` of the metadata in whose order the rows come out, best first as a
    /// sort by it orders them; `None` if they come in no such order.
    fn order(&self) -> Option<&'static str>;

    /// Returns true if the rows come in their order although no metadata is read. Otherwise the scans
    /// alone are then enough.
    fn always_gathers(&self) -> bool;

    /// Begins the search.
    fn begin(&self) -> Box<dyn Searching>;
}

/// A search that runs. After each [`Step`] but a row, the executor passes on what it asked for.
pub trait Searching: Send {
    /// Returns the next step.
    ///
    /// # Errors
    /// The interrupt's error.
    fn step(&mut self) -> Result<Step>;

    /// Takes a key of a scan, by the scan's number: first those of the plan, then the opened ones.
    ///
    /// # Errors
    /// The bytes of the key are damaged.
    fn key(&mut self, scan: usize, key: &FoundKey<'_>) -> Result<()>;

    /// Notes that a scan has no more keys.
    fn ended(&mut self, scan: usize);

    /// Takes a document; `None` if it does not exist any more.
    ///
    /// # Errors
    /// The interrupt's error.
    fn document(&mut self, record: u64, doc: Option<Doc<'_>>) -> Result<()>;

    /// Returns the bytes that it holds in memory.
    fn bytes(&self) -> usize;
}

/// What a search needs next, or gives.
#[derive(Debug)]
pub enum Step {
    /// The next keys of a scan.
    Keys {
        /// The number of the scan.
        scan: usize,
        /// The most keys to read now.
        max: usize,
    },
    /// Another scan. It gets the next number.
    Open(SearchScan),
    /// The document of a record.
    Document(u64),
    /// The next result of the search.
    Row {
        /// The record of the document.
        record: u64,
        /// The metadata, by their names in `$meta`.
        metadata: DocBuf,
    },
    /// There are no more results.
    End,
}

/// A key that a scan has read.
#[derive(Debug, Clone, Copy)]
pub struct FoundKey<'k> {
    /// The record of the key's document.
    pub record: u64,
    /// The content of the key.
    pub keys: &'k KeySpec,
    /// The encoded values; `None` if the key was too long to be stored whole.
    pub values: Option<&'k [u8]>,
    /// The type bits of the values.
    pub type_bits: &'k [u8],
}

impl FoundKey<'_> {
    /// Returns the values, one for each field; `None` if the key was too long to be stored whole.
    ///
    /// # Errors
    /// The bytes are not a key of this index.
    pub fn decode(&self) -> Result<Option<Vec<Option<ValueBuf>>>> {
        let Some(values) = self.values else { return Ok(None) };
        self.keys.decode(values, self.type_bits).map(Some).map_err(damaged)
    }

    /// Returns the number in a field, without the values of the others; `None` if the key was too long to
    /// be stored whole, or if the value is no number.
    ///
    /// # Errors
    /// The bytes are not a key of this index.
    pub fn number(&self, field: usize) -> Result<Option<f64>> {
        let Some(values) = self.values else { return Ok(None) };
        let mut reader = KeyReader::new(values, self.type_bits);
        let mut skipped = Vec::new();
        for at in 0..field {
            reader.has_sort_keys(self.keys.holds_sort_keys(at));
            skipped.clear();
            reader.next_into(self.keys.is_descending(at), &mut skipped).map_err(damaged)?;
        }
        let value = reader.next(self.keys.is_descending(field)).map_err(damaged)?;
        Ok(value.and_then(|value| value.as_value().to_f64()))
    }
}

fn damaged(_: KeyError) -> Error {
    Error::new(ErrorCode::DataCorruptionDetected, "stored data is damaged: an index key")
}
