//! `update`: one document or many.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, Effect, RecordId, Writer};
use quire_document::{Doc, Value, ValueBuf};
use quire_error::Result;
use quire_mql::collation::AskedCollation;
use quire_mql::update::{Update, UpdateSpec};
use quire_planner::Hint;
use quire_storage::Committed;

use crate::UnitOfWork;
use crate::env::Env;
use crate::examined::{Examined, WriteById};
use crate::modify::chunk::for_all;
use crate::modify::points::{gate_of, keeping_records};
use crate::modify::statement::{Applied, Query, Statement};
use crate::modify::time_series::check_series_update;
use crate::modify::upsert::{check_upsert_filter, upsert};
use crate::params::ExecParams;
use crate::views::Views;

/// One update statement.
#[derive(Debug, Clone)]
pub struct UpdateRequest<'u> {
    /// The collection to write to.
    pub namespace: Namespace,
    /// `q`: the documents to update.
    pub filter: Doc<'u>,
    /// `u`: operators, a replacement or a pipeline.
    pub update: Value<'u>,
    /// `arrayFilters`: the elements that `$[name]` selects.
    pub array_filters: &'u [Doc<'u>],
    /// True to update all matching documents.
    pub multi: bool,
    /// True to insert if none matches.
    pub upsert: bool,
    /// The document to insert then; `None` for the one that filter and update make.
    pub supplied: Option<Doc<'u>>,
    /// The order that decides which document is updated, if not all are (8.0).
    pub sort: Doc<'u>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The variables of `let` (and `c` of a pipeline update).
    pub let_vars: Doc<'u>,
}

/// The result of an update.
#[derive(Debug, Default)]
pub struct UpdateOutcome {
    /// Documents that matched (`n`, without the upserted one).
    pub matched: u64,
    /// Documents that changed (`nModified`).
    pub modified: u64,
    /// The `_id` of the inserted document.
    pub upserted: Option<ValueBuf>,
    /// The last commit.
    pub committed: Option<Committed>,
    /// The keys and documents that it examined.
    pub examined: Examined,
}

/// Runs an update.
pub fn update(
    unit: &mut dyn UnitOfWork,
    request: &UpdateRequest<'_>,
    params: &ExecParams,
) -> Result<UpdateOutcome> {
    if request.upsert {
        check_upsert_filter(request.filter)?;
    }
    let collection = unit.collection(&request.namespace)?;
    let mut statement = statement_of(request, collection.as_deref(), params)?;
    let kind = (request.multi, request.upsert);
    check_series_update(collection.as_deref(), kind, request.filter, statement.update.as_ref())?;
    statement.id = unit.statements().first().copied().filter(|_| !request.multi);
    let gate = gate_of(unit, collection.as_deref());
    let outcome =
        keeping_records(gate, || run(unit, request, &mut statement, collection.as_deref()));
    outcome.map_err(|error| match statement.is_planned {
        true => error.context("Plan executor error during update"),
        false => error,
    })
}

/// Returns the statement of an update on `collection`.
fn statement_of(
    request: &UpdateRequest<'_>,
    collection: Option<&Collection>,
    params: &ExecParams,
) -> Result<Statement> {
    let sort = if request.multi { Doc::empty() } else { request.sort };
    let (namespace, hint) = (request.namespace.as_str(), request.hint.clone());
    let query =
        Query::new(namespace, request.filter, sort, hint, &request.collation, !request.multi);
    let spec = UpdateSpec {
        update: request.update,
        array_filters: request.array_filters,
        multi: request.multi,
    };
    Statement::new(query, Some(spec), request.let_vars, collection, params)
}

/// The documents that [`try_update`] reads at a time.
const TRIED_MAX: usize = 100;

/// Applies an update to the documents that it would change, and writes nothing: for `explain`.
///
/// # Errors
/// The first error of the query or of applying the update to a document.
pub fn try_update(
    unit: &dyn UnitOfWork,
    request: &UpdateRequest<'_>,
    params: &ExecParams,
) -> Result<()> {
    let collection = unit.collection(&request.namespace)?;
    let Some(collection) = collection.as_deref() else { return Ok(()) };
    let mut statement = statement_of(request, Some(collection), params)?;
    let Some(mut search) = statement.search(unit)? else { return Ok(()) };
    loop {
        let max = if request.multi { TRIED_MAX } else { 1 };
        let found = search.next(unit, &statement, max)?.records;
        let views = unit.views()?;
        for record in &found {
            if let Some(doc) = views.view().get(collection, *record)? {
                statement.apply(doc.as_doc())?;
            }
        }
        if found.is_empty() || !request.multi {
            return Ok(());
        }
    }
}

/// Checks the change of an update that is only explained.
///
/// # Errors
/// Those of parsing it, and of the variables of `let`.
pub fn check_update(spec: UpdateSpec<'_>, let_vars: Doc<'_>, params: &ExecParams) -> Result<()> {
    let env = Env::new(params.clone(), None, let_vars, true)?;
    Update::parse(spec, &env.parse).map(drop)
}

fn run(
    unit: &mut dyn UnitOfWork,
    request: &UpdateRequest<'_>,
    statement: &mut Statement,
    collection: Option<&Collection>,
) -> Result<UpdateOutcome> {
    loop {
        statement.line_up(collection);
        let mut outcome = if request.multi {
            update_all(unit, &request.namespace, statement)?
        } else {
            update_one(unit, &request.namespace, statement)?
        };
        outcome.examined = statement.examined.clone();
        if outcome.matched > 0 || !request.upsert {
            return Ok(outcome);
        }
        statement.is_planned = true;
        let supplied = request.supplied.map(Doc::to_owned);
        if let Some(inserted) = upsert(unit, &request.namespace, statement, supplied)? {
            return Ok(UpdateOutcome {
                upserted: Some(inserted.id),
                committed: inserted.committed,
                ..outcome
            });
        }
    }
}

fn update_all(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
) -> Result<UpdateOutcome> {
    let (mut matched, mut modified) = (0, 0);
    let committed = for_all(
        unit,
        namespace,
        statement,
        &mut |writer, collection, id, doc, statement| match statement.apply(doc.as_doc())? {
            Applied::NoMatch => Ok(None),
            Applied::Same => Ok(Some(false)),
            Applied::Changed(new) => {
                statement.write(writer, collection, id, (doc.as_doc(), new.as_doc())).map(Some)
            }
        },
        &mut |answers: Vec<bool>| {
            matched += answers.len() as u64;
            modified += answers.iter().filter(|changed| **changed).count() as u64;
        },
    )?;
    Ok(UpdateOutcome { matched, modified, committed, ..UpdateOutcome::default() })
}

fn update_one(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
) -> Result<UpdateOutcome> {
    let change =
        change_one(unit, namespace, statement, &mut |writer, collection, id, doc, statement| {
            match statement.apply(doc)? {
                Applied::NoMatch => Ok(None),
                Applied::Same => Ok(Some(false)),
                Applied::Changed(new) => {
                    let changed = statement.write(writer, collection, id, (doc, new.as_doc()))?;
                    if changed {
                        statement.remember(writer, Effect::Update, Some(doc), Some(new.as_doc()));
                    }
                    Ok(Some(changed))
                }
            }
        })?;
    Ok(match change {
        None => UpdateOutcome::default(),
        Some((changed, committed)) => {
            let modified = u64::from(changed);
            UpdateOutcome { matched: 1, modified, committed, ..UpdateOutcome::default() }
        }
    })
}

/// Writes one document and returns a result; `None` if the document does not match.
pub(super) type ChangeOne<'f, T> = dyn FnMut(&mut Writer, &Collection, RecordId, Doc<'_>, &mut Statement) -> Attempt<Option<T>>
    + 'f;

/// Finds the first document of the statement's query and writes it; `None` if there is none.
pub(super) fn change_one<T>(
    unit: &mut dyn UnitOfWork,
    namespace: &Namespace,
    statement: &mut Statement,
    change: &mut ChangeOne<'_, T>,
) -> Result<Option<(T, Option<Committed>)>> {
    let interrupt = Arc::clone(&statement.env.params.interrupt);
    if let Some(id) = statement.id_point() {
        let id = ValueBuf::new(id);
        statement.is_planned = true;
        let line = statement.line.take();
        let (answer, committed) = unit.write_with_in(line.as_ref(), &interrupt, |writer| {
            let Some(collection) = writer.collection(namespace) else {
                return Ok(None);
            };
            let found = writer.view().get_by_id(&collection, id.as_value())?;
            let clustered = collection.clustered_index().is_some();
            let write = WriteById { clustered, updates: statement.update.is_some() };
            statement.examined.note_by_id(write, found.as_ref().map(|record| record.doc.as_doc()));
            let Some(record) = found else { return Ok(None) };
            change(writer, &collection, record.id, record.doc.as_doc(), statement)
        })?;
        return Ok(answer.map(|answer| (answer, committed)));
    }
    loop {
        let Some(mut search) = statement.search(unit)? else { return Ok(None) };
        let found = search.next(unit, statement, 1)?.records.first().copied();
        search.note_examined(&mut statement.examined);
        let Some(record) = found else { return Ok(None) };
        if record.is_in_bucket() {
            let catalog = unit.store().catalog();
            if let Some(collection) = catalog.by_id(search.collection) {
                unit.store().reopen_bucket_of(collection, record, &interrupt)?;
            }
            continue;
        }
        let (answer, committed) = unit.write_with(&interrupt, |writer| {
            let collection = writer.collection(namespace);
            let Some(collection) = collection.filter(|found| found.id == search.collection) else {
                return Ok(None);
            };
            let Some(doc) = writer.view().get(&collection, record)? else { return Ok(None) };
            change(writer, &collection, record, doc.as_doc(), statement)
        })?;
        if let Some(answer) = answer {
            return Ok(Some((answer, committed)));
        }
        // Another writer has changed the document: search for another one.
    }
}
