//! One statement of a `delete`, as the command has it.

use quire_document::Doc;
use quire_planner::Hint;

/// One element of `deletes`.
#[derive(Default)]
pub struct DeleteStatement<'a> {
    /// `q`: the documents to delete.
    pub filter: Doc<'a>,
    /// `limit: 1`: deletes only one document.
    pub one: bool,
    /// `hint`: the index to use.
    pub hint: Option<Hint>,
    /// `collation`; its errors are errors of the statement.
    pub collation: Doc<'a>,
}
