//! The arguments of `findAndModify`, for its command, its projection and the reply to a retry.

use quire_collections::{EmptyTimestamps, WritePolicy};
use quire_document::{Doc, DocBuf, Value};
use quire_mql::collation::AskedCollation;
use quire_planner::Hint;

/// The arguments of a findAndModify.
#[derive(Default)]
pub struct Arguments<'a> {
    /// `query`: the documents to choose from.
    pub filter: DocBuf,
    /// `sort`: the order that decides which document is changed.
    pub sort: DocBuf,
    /// `fields`: the projection of the returned document.
    pub projection: DocBuf,
    /// `update`: the change.
    pub update: Option<Value<'a>>,
    /// `arrayFilters`: the elements that `$[name]` selects.
    pub array_filters: Option<Vec<Doc<'a>>>,
    /// `remove`: delete the document.
    pub remove: bool,
    /// `new`: returns the document after the change.
    pub new: bool,
    /// `upsert`: insert a document if none matches.
    pub upsert: bool,
    /// `hint`: the index to use.
    pub hint: Option<Hint>,
    /// `collation`: the collation of the statement.
    pub collation: AskedCollation,
    /// `let`: the variables.
    pub let_vars: DocBuf,
    /// `bypassDocumentValidation`, as the policy of the write.
    pub policy: WritePolicy,
    /// `bypassEmptyTsReplacement`: true if empty timestamps are stored as they are.
    pub timestamps: EmptyTimestamps,
}
