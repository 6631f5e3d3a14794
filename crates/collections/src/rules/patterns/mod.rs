//! The rules that keep declared patterns (`quire_catalog::patterns`). A pattern writes only the
//! documents of its own collection, so it has two rules: one of that collection, which completes a
//! document before it is stored, and one of the collection that it reads, which queues tasks for the
//! documents that a change concerns. A kind is a file or a folder here with both rules, and with its
//! [`Upkeep`], which computes what a document should have; builds, tasks and `validate` use that.

mod copies;
mod counter;
mod declared;
mod dependents;
mod groups;
mod parent;
mod reference;
mod rollup;
mod target;
mod task;
mod values;

use std::sync::Arc;

use quire_catalog::patterns::{OnClientWrite, Pattern, PatternKind, PatternMeters};
use quire_catalog::{Collection, CollectionId, Index, IndexState};
use quire_document::path::Part;
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};

use super::RuleWriter;
use crate::failure::{Attempt, Failure};

pub(super) use counter::Counted as Counter;
pub(super) use declared::{Declared, compile};
pub(crate) use groups::{all_rows, is_readable, pattern_of_row, rows_of_children, rows_of_pattern};
pub(super) use parent::Computed as Rollup;
pub(super) use reference::Computed as Reference;
pub(crate) use reference::find_target;
pub(super) use rollup::compile as compile_children;
pub(super) use target::compile as compile_target;

/// The first byte of the keys that patterns guard. No row has such a key.
const GUARDED: u8 = b'g';

/// What a pattern says about one document of its own collection.
pub trait Upkeep {
    /// Returns the document as the pattern wants it, computed from the state that `writer` sees;
    /// `None` if it is so already.
    ///
    /// # Errors
    /// Those of reading and computing.
    fn recomputed(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<DocBuf>>;

    /// Returns what becomes of a document some of whose referred documents were deleted. The default
    /// is to compute it anew.
    ///
    /// # Errors
    /// Those of reading and computing.
    fn settled(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Settled> {
        self.recomputed(collection, doc, writer).map(Settled::from)
    }

    /// Returns what the pattern would refuse if the document was written now; `None` if nothing.
    ///
    /// # Errors
    /// Those of reading.
    fn problem(
        &self,
        collection: &Collection,
        doc: Doc<'_>,
        writer: &mut dyn RuleWriter,
    ) -> Attempt<Option<String>> {
        let _ = (collection, doc, writer);
        Ok(None)
    }
}

/// Returns every value at `local` in a document, through documents and arrays.
pub(crate) fn references<'a>(doc: Doc<'a>, local: &[Part]) -> Vec<Value<'a>> {
    let mut found = Vec::new();
    copies::references(doc, local, &mut found);
    found
}

/// What becomes of a document.
#[derive(Debug)]
pub enum Settled {
    /// It stays as it is.
    Same,
    /// It becomes this one.
    Changed(DocBuf),
    /// It is deleted.
    Deleted,
}

impl From<Option<DocBuf>> for Settled {
    fn from(changed: Option<DocBuf>) -> Self {
        changed.map_or(Settled::Same, Settled::Changed)
    }
}

/// Returns the upkeep of a pattern; `None` for a roll-up whose definition cannot be compiled.
pub fn upkeep(pattern: &Arc<Pattern>) -> Option<Box<dyn Upkeep>> {
    fn of<U: Declared + Upkeep>(pattern: &Arc<Pattern>) -> Option<Box<dyn Upkeep>> {
        U::new(pattern).map(|upkeep| Box::new(upkeep) as Box<dyn Upkeep>)
    }
    match &pattern.kind {
        PatternKind::Reference(_) => of::<Reference>(pattern),
        PatternKind::Rollup(_) => of::<Rollup>(pattern),
        PatternKind::Counter(_) => of::<Counter>(pattern),
    }
}

/// Makes this commit depend on what a pattern reads for one value, so that it conflicts with
/// [`claim`]. Commits that read the same do not conflict with each other.
pub(crate) fn depend(
    writer: &mut dyn RuleWriter,
    owner: CollectionId,
    pattern: &Pattern,
    value: Value<'_>,
) {
    let mut key = guarded(owner, pattern, value);
    writer.guard_key(key.of(b'w'));
    writer.mark_key(key.of(b'r'));
}

/// Makes this commit conflict with every commit that has claimed the value ([`claim`]) since its
/// view was taken, but not with those that claim it later.
pub(crate) fn observe(
    writer: &mut dyn RuleWriter,
    owner: CollectionId,
    pattern: &Pattern,
    value: Value<'_>,
) {
    writer.guard_key(guarded(owner, pattern, value).of(b'w'));
}

/// Makes this commit, which changes what a pattern reads for one value, conflict with every commit
/// that depends on it ([`depend`]).
pub(crate) fn claim(
    writer: &mut dyn RuleWriter,
    owner: CollectionId,
    pattern: &Pattern,
    value: Value<'_>,
) {
    let mut key = guarded(owner, pattern, value);
    writer.guard_key(key.of(b'r'));
    writer.mark_key(key.of(b'w'));
}

/// Returns the key that every commit marks which refers to a document by a pattern with `onDelete:
/// "restrict"`. Who removes all documents at once guards it.
pub(crate) fn any_reference(owner: CollectionId, pattern: &Pattern) -> Vec<u8> {
    let mut key = vec![GUARDED, b'a'];
    key.extend_from_slice(&owner.to_bytes());
    key.extend_from_slice(pattern.name.as_bytes());
    key
}

/// The keys of the two sides of (pattern, value), which differ in one byte.
struct Guarded(Vec<u8>);

impl Guarded {
    fn of(&mut self, side: u8) -> &[u8] {
        if let Some(byte) = self.0.get_mut(1) {
            *byte = side;
        }
        &self.0
    }
}

fn guarded(owner: CollectionId, pattern: &Pattern, value: Value<'_>) -> Guarded {
    let mut key = Vec::with_capacity(64);
    key.extend_from_slice(&[GUARDED, 0]);
    key.extend_from_slice(&owner.to_bytes());
    key.extend_from_slice(pattern.name.as_bytes());
    key.push(0);
    quire_document::key::append(value, false, &mut key);
    Guarded(key)
}

/// Returns the index with which the documents that have a value at `path` are found: an ordinary
/// one whose first field is the path and that has an entry for every document with a value there.
pub fn usable_index<'c>(collection: &'c Collection, path: &str) -> Option<&'c Arc<Index>> {
    let is_usable = |index: &&Arc<Index>| {
        index.state == IndexState::Ready
            && index.keys.kind().name.is_empty()
            && index.keys.partial().is_none()
            && index.keys.collation().is_none()
            && index.keys.fields().first().is_some_and(|field| field.path.as_str() == path)
    };
    collection.indexes.iter().find(is_usable)
}

/// Returns the usable index for `path`.
///
/// # Errors
/// 27 IndexNotFound if the collection has none.
fn needed_index<'c>(collection: &'c Collection, path: &str) -> Result<&'c Arc<Index>> {
    usable_index(collection, path).ok_or_else(|| {
        let namespace = &collection.namespace;
        let text = format!("a pattern needs an index of {namespace} that begins with '{path}'");
        Error::new(ErrorCode::IndexNotFound, text)
    })
}

/// Counts or refuses a client's write of a derived path.
fn client_wrote(pattern: &Pattern, collection: &Collection, path: &str) -> Attempt<()> {
    match pattern.on_client_write {
        OnClientWrite::Ignore => {
            PatternMeters::add(&pattern.meters.ignored, 1);
            Ok(())
        }
        OnClientWrite::Reject => {
            PatternMeters::add(&pattern.meters.rejected, 1);
            let why = "the pattern writes this path, and clients may not change it";
            Err(refused(collection, pattern, path, why).into())
        }
    }
}

/// Returns the error of a write that a pattern refuses: 121 with the pattern and the path.
pub(crate) fn refused(collection: &Collection, pattern: &Pattern, path: &str, why: &str) -> Error {
    let (name, namespace) = (&pattern.name, &collection.namespace);
    let details = doc! { "errInfo": {
        "pattern": name.as_str(), "collection": namespace.as_str(), "path": path, "reason": why
    } };
    let text = format!("pattern '{name}' of {namespace}, path '{path}': {why}");
    Error::new(ErrorCode::DocumentValidationFailure, text).with_details(details.into_bytes())
}

/// Says in the message of an error that the pattern could not write the document.
pub(crate) fn named(
    failure: Failure,
    collection: &Collection,
    pattern: &Pattern,
    doc: Doc<'_>,
) -> Failure {
    let Failure::Error(error) = failure else { return failure };
    let id = doc.get("_id").map_or_else(String::new, quire_catalog::debug_value);
    let (name, namespace) = (&pattern.name, &collection.namespace);
    Failure::Error(error.context(&format!(
        "pattern '{name}' cannot change the document with _id {id} of {namespace}"
    )))
}
