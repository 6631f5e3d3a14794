//! `delete`: deletes documents, statement by statement.

use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::context::Context;
use crate::frame::query_args::{hint, owned};
use crate::frame::tally::Tally;
use crate::frame::usage::Class;
use crate::write::bucket_deletes::delete_buckets;
use crate::write::delete_statement::DeleteStatement;
use crate::write::write_reply::{WriteErrors, WriteOptions, Written, statements, write_target};
use crate::write::writes::check_single;
use quire_catalog::time_series::BUCKETS;
use quire_catalog::{Collection, Namespace, debug_value};
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, Result};
use quire_executor::modify::{DeleteOutcome, DeleteRequest, delete};
use quire_mql::collation::AskedCollation;
use quire_session::Unit;
use std::sync::Arc;
use std::time::Instant;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut options, mut deletes, mut let_vars) = (WriteOptions::default(), None, DocBuf::new());
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "deletes" => deletes = Some(arg),
            "let" => let_vars = owned(&arg)?,
            _ if options.read(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = write_target(cx, body)?;
    let deletes = statements(cx, "deletes", deletes)?;
    let parsed: Vec<DeleteStatement<'_>> =
        deletes.iter().map(|doc| parse(*doc)).collect::<Result<_>>()?;
    let mut deleted = 0;
    let mut errors = WriteErrors::default();
    let mut unit =
        cx.write_unit(parsed.len(), &options.statements, parsed.len(), options.policy)?;
    for (at, (statement, doc)) in parsed.iter().zip(&deletes).enumerate() {
        cx.service.metrics.deletes.add(1);
        let began = Instant::now();
        let ended = run_one(cx, &namespace, statement, let_vars.as_doc(), (&mut unit, at));
        cx.end_statement(Class::Remove, &namespace, *doc, began, ended.as_ref().map(tally));
        match ended {
            Ok(outcome) => deleted += outcome.deleted,
            Err(error) => {
                let error = cx.without_values(&namespace, error);
                if errors.note(at, error, options.ordered || cx.in_transaction())? {
                    break;
                }
            }
        }
    }
    let repeated = cx.finish_writes(unit)?;
    cx.service.metrics.documents_deleted.add(deleted);
    let count = deleted as i32;
    Written { count, errors, repeated: &repeated, ..Written::default() }.write(cx, reply);
    Ok(())
}

/// Runs the statement at this position of a command.
pub fn run_one(
    cx: &Context<'_>,
    namespace: &Namespace,
    statement: &DeleteStatement<'_>,
    let_vars: Doc<'_>,
    (unit, place): (&mut Unit, usize),
) -> Result<DeleteOutcome> {
    if unit.repeated(place)?.is_some() {
        return Ok(DeleteOutcome { deleted: 1, ..DeleteOutcome::default() });
    }
    check_single(unit, !statement.one, "limit=0")?;
    let request = DeleteRequest {
        namespace: namespace.clone(),
        filter: statement.filter,
        one: statement.one,
        hint: statement.hint.clone(),
        collation: AskedCollation::parse(statement.collation)?,
        let_vars,
    };
    cx.begin_statements(unit, place..place + 1)?;
    let outcome = match series_of(cx, namespace) {
        None => delete(unit, &request, &cx.exec_params())?,
        Some(series) => delete_buckets(cx, &series, statement, let_vars, unit)?,
    };
    unit.note(outcome.committed.as_ref());
    Ok(outcome)
}

/// Returns the time-series collection whose buckets a namespace names.
fn series_of(cx: &Context<'_>, namespace: &Namespace) -> Option<Arc<Collection>> {
    let is_named = namespace.collection().starts_with(BUCKETS);
    is_named.then(|| cx.service.store.catalog().series_of(namespace).cloned()).flatten()
}

/// Returns the counts of a statement.
pub fn tally(outcome: &DeleteOutcome) -> Tally {
    let examined = Some(outcome.examined.clone());
    Tally { examined, deleted: Some(outcome.deleted), ..Tally::default() }
}

/// Reads one element of `deletes`.
pub fn parse(doc: Doc<'_>) -> Result<DeleteStatement<'_>> {
    const OWNER: &str = "delete.deletes";
    let mut statement = DeleteStatement::default();
    let (mut has_filter, mut has_limit) = (false, false);
    for arg in fields(OWNER, doc) {
        match arg.name() {
            "q" => {
                statement.filter = arg.document()?;
                has_filter = true;
            }
            "limit" => {
                statement.one = limit(&arg)?;
                has_limit = true;
            }
            "hint" => statement.hint = hint(&arg)?,
            "collation" if arg.is_null() => {}
            "collation" => statement.collation = arg.document()?,
            "sampleId" => return Err(Error::not_built("delete.deletes.sampleId")),
            _ => return Err(arg.unknown()),
        }
    }
    for (name, given) in [("q", has_filter), ("limit", has_limit)] {
        if !given {
            return Err(missing(OWNER, name));
        }
    }
    Ok(statement)
}

/// Reads `limit`: 1 for one document, 0 for all. A value that is not a number reads as 0, as in
/// MongoDB; a fraction is an error.
fn limit(arg: &Arg<'_>) -> Result<bool> {
    let value = arg.value();
    match (value.is_number(), value.exact_i64()) {
        (false, _) | (true, Some(0)) => Ok(false),
        (true, Some(1)) => Ok(true),
        (true, _) => {
            let shown = debug_value(value);
            let text = format!("The limit field in delete objects must be 0 or 1. Got {shown}");
            Err(Error::failed_to_parse(text))
        }
    }
}
