//! The arguments of `findAndModify`, as its command, its projection and the answer to a retry read them.

use crate::write::statement_ids::StatementIds;
use quire_collections::WritePolicy;
use quire_document::{Doc, DocBuf, Value};
use quire_mql::collation::AskedCollation;
use quire_planner::Hint;

/// The arguments of a findAndModify.
#[derive(Default)]
pub struct Arguments<'a> {
    /// `query`: which documents.
    pub filter: DocBuf,
    /// `sort`: which of them comes first.
    pub sort: DocBuf,
    /// `fields`: the projection of the answer.
    pub projection: DocBuf,
    /// `update`: the change.
    pub update: Option<Value<'a>>,
    /// `arrayFilters`: which elements `$[name]` takes.
    pub array_filters: Option<Vec<Doc<'a>>>,
    /// `remove`: delete the document.
    pub remove: bool,
    /// `new`: answer the document after the change.
    pub new: bool,
    /// `upsert`: insert a document if none matches.
    pub upsert: bool,
    /// `hint`: the index to use.
    pub hint: Option<Hint>,
    /// `collation`: how strings compare.
    pub collation: AskedCollation,
    /// `let`: the variables.
    pub let_vars: DocBuf,
    /// `stmtId`: the id of the statement.
    pub statement: StatementIds,
    /// `bypassDocumentValidation`: who writes.
    pub policy: WritePolicy,
}
