//! `findAndModify`: changes or removes one document and returns it as it was before or after.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::fingerprint::FIND_AND_MODIFY;
use crate::frame::query_args::{collation, empty_timestamps, hint, owned, write_policy};
use crate::write::find_and_modify_arguments::Arguments;
use crate::write::projecting::Projecting;
use crate::write::repeated;
use crate::write::statement_ids::StatementIds;
use crate::write::update::{array_filters, checked_update};
use crate::write::write_reply::write_target;
use quire_collections::EmptyTimestamps;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use quire_executor::UnitOfWork;
use quire_executor::modify::{
    FindAndModifyOutcome, FindAndModifyRequest, FoundChange, find_and_modify,
};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let arguments = parse(cx, body)?;
    let namespace = write_target(cx, body)?;
    let filters = arguments.array_filters.as_ref().is_some_and(|filters| !filters.is_empty());
    cx.service.metrics.find_and_modify_forms.note(arguments.update, filters);
    cx.tally.fingerprint = cx.write_print(FIND_AND_MODIFY, &namespace, body);
    let change = match arguments.update {
        None => FoundChange::Remove,
        Some(update) => FoundChange::Update {
            update,
            array_filters: arguments.array_filters.as_deref().unwrap_or_default(),
            upsert: arguments.upsert,
        },
    };
    let request = FindAndModifyRequest {
        namespace,
        filter: arguments.filter.as_doc(),
        sort: arguments.sort.as_doc(),
        change,
        hint: arguments.hint.clone(),
        collation: arguments.collation.clone(),
        let_vars: arguments.let_vars.as_doc(),
        answers_after: arguments.new,
    };
    let mut unit = cx.write_unit(1, &StatementIds::default(), 1, arguments.policy)?;
    let collection = unit.collection(&request.namespace)?;
    let projection = Projecting::new(cx, collection.as_deref(), &arguments)?;
    if let Some(before) = unit.repeated(0)? {
        let again = repeated::find_and_modify(&before, &arguments)?;
        let ids = cx.finish_writes(unit)?;
        reply.append("lastErrorObject", &again.last_error);
        match &again.value {
            Some(doc) => reply.append("value", doc),
            None => reply.append("value", Value::Null),
        };
        reply.append_some("retriedStmtId", ids.first().map(|id| Value::Int32(*id)));
        return Ok(());
    }
    cx.begin_statements(&mut unit, 0..1)?;
    let mut params = cx.exec_params();
    params.keeps_empty_timestamps = arguments.timestamps == EmptyTimestamps::Kept;
    let ended = find_and_modify(&mut unit, &request, &params);
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(error) => return Err(cx.failed_write(&unit, of_plan(error))),
    };
    unit.note(outcome.committed.as_ref());
    cx.finish_writes(unit)?;
    note(cx, &outcome, arguments.remove);
    write_last_error(&outcome, arguments.remove, reply);
    let shown = if arguments.new { &outcome.after } else { &outcome.before };
    match shown {
        None => reply.append("value", Value::Null),
        Some(doc) => {
            let found = outcome.before.as_ref().unwrap_or(doc);
            let shown = projection.apply(cx, doc.as_doc(), found.as_doc());
            reply.append("value", &shown.map_err(of_plan)?)
        }
    };
    Ok(())
}

fn of_plan(error: Error) -> Error {
    error.context("Plan executor error during findAndModify")
}

/// Adds the examined and changed documents to the counts of the command.
fn note(cx: &mut Context<'_>, outcome: &FindAndModifyOutcome, remove: bool) {
    let found = u64::from(outcome.before.is_some());
    cx.tally.examined = Some(outcome.examined.clone());
    if remove {
        cx.tally.deleted = Some(found);
        return;
    }
    let inserted = outcome.upserted.is_some();
    let changed = outcome.committed.is_some() && !inserted;
    (cx.tally.matched, cx.tally.modified) = (Some(found), Some(u64::from(changed)));
    cx.tally.upserted = inserted.then_some(1);
}

/// Reads the arguments.
pub fn parse<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Arguments<'a>> {
    let mut found = Arguments::default();
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "query" => found.filter = owned(&arg)?,
            "sort" => found.sort = owned(&arg)?,
            "fields" => found.projection = owned(&arg)?,
            "let" => found.let_vars = owned(&arg)?,
            "update" if !arg.is_null() => found.update = Some(checked_update(&arg)?),
            "arrayFilters" if !arg.is_null() => found.array_filters = Some(array_filters(&arg)?),
            "remove" if !arg.is_null() => found.remove = arg.safe_bool()?,
            "new" if !arg.is_null() => found.new = arg.safe_bool()?,
            "upsert" if !arg.is_null() => found.upsert = arg.safe_bool()?,
            "bypassDocumentValidation" => found.policy = write_policy(&arg)?,
            "bypassEmptyTsReplacement" => found.timestamps = empty_timestamps(&arg)?,
            "hint" => found.hint = hint(&arg)?,
            "collation" => found.collation = collation(&arg)?,
            "update" | "arrayFilters" | "remove" | "new" | "upsert" => {}
            "sampleId" | "encryptionInformation" => {
                return Err(Error::not_built(&format!("findAndModify.{}", arg.name())));
            }
            _ => return Err(arg.unknown()),
        }
    }
    check(&found)?;
    Ok(found)
}

/// Refuses arguments that exclude each other.
fn check(found: &Arguments<'_>) -> Result<()> {
    let text = match (found.remove, found.update) {
        (false, None) => "Either an update or remove=true must be specified",
        (true, Some(_)) => "Cannot specify both an update and remove=true",
        (true, None) if found.upsert => "Cannot specify both upsert=true and remove=true ",
        (true, None) if found.new => {
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
        }
        (true, None) if found.array_filters.is_some() => {
            "Cannot specify arrayFilters and remove=true"
        }
        (false, Some(Value::Array(_)))
            if found.array_filters.as_ref().is_some_and(|all| !all.is_empty()) =>
        {
            "Cannot specify arrayFilters and a pipeline update"
        }
        _ => return Ok(()),
    };
    Err(Error::failed_to_parse(text))
}

fn write_last_error(outcome: &FindAndModifyOutcome, remove: bool, reply: &mut DocWriter<'_>) {
    let found = outcome.before.is_some();
    let mut last = reply.document("lastErrorObject");
    last.append("n", i32::from(found || outcome.upserted.is_some()));
    if !remove {
        last.append("updatedExisting", found);
    }
    if let Some(id) = &outcome.upserted {
        last.append("upserted", id);
    }
}
