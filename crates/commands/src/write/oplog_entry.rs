//! The write of a document that an entry of MongoDB's oplog makes.

use quire_document::{Doc, Value};

/// The write of an entry.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// Inserts the document, or replaces the one with its `_id`.
    Insert(Doc<'a>),
    /// Replaces or changes the document with this `_id`; inserts it if the flag is set.
    Update(Value<'a>, Doc<'a>, bool),
    /// Deletes the document with this `_id`, if there is one.
    Delete(Value<'a>),
}
