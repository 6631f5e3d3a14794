//! `delete`: one document or many.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::Effect;
use quire_document::Doc;
use quire_error::Result;
use quire_mql::collation::AskedCollation;
use quire_planner::Hint;
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::examined::Examined;
use crate::modify::chunk::for_all;
use crate::modify::points::{drop_matching, gate_of, keeping_records};
use crate::modify::statement::{Query, Statement};
use crate::modify::update::change_one;
use crate::params::ExecParams;

/// One delete statement.
#[derive(Debug, Clone)]
pub struct DeleteRequest<'d> {
    /// The collection to write to.
    pub namespace: Namespace,
    /// `q`: the documents to delete.
    pub filter: Doc<'d>,
    /// True to delete only the first (`limit: 1`).
    pub one: bool,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The variables of `let`.
    pub let_vars: Doc<'d>,
}

/// The result of a delete.
#[derive(Debug, Default)]
pub struct DeleteOutcome {
    /// The number of deleted documents.
    pub deleted: u64,
    /// The last commit.
    pub committed: Option<Committed>,
    /// The keys and documents that it examined.
    pub examined: Examined,
}

/// Runs a delete.
pub fn delete(
    unit: &mut dyn UnitOfWork,
    request: &DeleteRequest<'_>,
    params: &ExecParams,
) -> Result<DeleteOutcome> {
    let namespace = &request.namespace;
    let hint = request.hint.clone();
    let query = Query::new(
        namespace.as_str(),
        request.filter,
        Doc::empty(),
        hint,
        &request.collation,
        request.one,
    );
    let collection = unit.collection(&request.namespace)?;
    let mut statement =
        Statement::new(query, None, request.let_vars, collection.as_deref(), params)?;
    statement.id = unit.statements().first().copied().filter(|_| request.one);
    let gate = gate_of(unit, collection.as_deref());
    keeping_records(gate, || run(unit, request, &mut statement, collection.as_ref()))
}

fn run(
    unit: &mut dyn UnitOfWork,
    request: &DeleteRequest<'_>,
    statement: &mut Statement,
    collection: Option<&Arc<Collection>>,
) -> Result<DeleteOutcome> {
    let namespace = &request.namespace;
    if request.one {
        let change = change_one(unit, namespace, statement, &mut delete_one)?;
        let examined = statement.examined.clone();
        return Ok(match change {
            None => DeleteOutcome { examined, ..DeleteOutcome::default() },
            Some((_, committed)) => DeleteOutcome { deleted: 1, committed, examined },
        });
    }
    let (mut deleted, dropped) = drop_matching(unit, collection, statement)?;
    let committed = for_all(
        unit,
        namespace,
        statement,
        &mut |writer, collection, id, doc, statement| {
            if !statement.matches(doc.as_doc())? {
                return Ok(None);
            }
            writer.delete(collection, id, doc.as_doc())?;
            Ok(Some(()))
        },
        &mut |answers: Vec<()>| deleted += answers.len() as u64,
    )?;
    let committed = committed.or(dropped);
    Ok(DeleteOutcome { deleted, committed, examined: statement.examined.clone() })
}

/// Deletes the document if it matches.
pub(super) fn delete_one(
    writer: &mut quire_collections::Writer,
    collection: &quire_catalog::Collection,
    id: quire_collections::RecordId,
    doc: Doc<'_>,
    statement: &mut Statement,
) -> quire_collections::Attempt<Option<()>> {
    if !statement.matches(doc)? {
        return Ok(None);
    }
    writer.delete(collection, id, doc)?;
    statement.remember(writer, Effect::Delete, Some(doc), None);
    Ok(Some(()))
}
