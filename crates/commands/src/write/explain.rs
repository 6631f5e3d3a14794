//! The plans that `explain` shows for update, delete and findAndModify: the query that finds their
//! documents.

use crate::frame::args::{arguments, missing};
use crate::frame::command::Show;
use crate::frame::context::Context;
use crate::frame::query_args::owned;
use crate::frame::reply::from_interruption;
use crate::write::projecting::Projecting;
use crate::write::{delete, find_and_modify, update};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::modify::{UpdateRequest, check_update, check_upsert_filter, try_update};
use quire_mql::collation::AskedCollation;
use quire_mql::update::UpdateSpec;
use quire_planner::{FindRequest, ReadRequest, WriteKind};

/// Shows the plan of an update with one statement.
pub fn update(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let statement = update::parse(only_statement(body, "update", "updates")?)?;
    statement.check_constants()?;
    if statement.upsert {
        check_upsert_filter(statement.filter)?;
    }
    let Some(change) = statement.update else { return Err(missing("update.updates", "u")) };
    let let_vars = let_vars(cx, body)?;
    let spec = UpdateSpec {
        update: change,
        array_filters: &statement.array_filters,
        multi: statement.multi,
    };
    let all = update::variables(let_vars.as_doc(), statement.constants);
    check_update(spec, all.as_doc(), &cx.exec_params())?;
    let request = FindRequest {
        namespace: cx.target(body)?.as_str().to_owned(),
        filter: statement.filter.to_owned(),
        sort: statement.sort.to_owned(),
        hint: statement.hint.clone(),
        collation: AskedCollation::parse(statement.collation)?,
        limit: u64::from(!statement.multi && !statement.sort.is_empty()),
        let_vars,
        ..FindRequest::default()
    };
    let kind = WriteKind::Update { multi: statement.multi, upsert: statement.upsert };
    let explained = show(ReadRequest::Write(&request, kind))?;
    let update = UpdateRequest {
        namespace: cx.target(body)?,
        filter: statement.filter,
        update: change,
        array_filters: &statement.array_filters,
        multi: statement.multi,
        upsert: false,
        supplied: None,
        sort: statement.sort,
        hint: statement.hint,
        collation: request.collation,
        let_vars: all.as_doc(),
    };
    tried(cx, explained, &update)
}

/// Applies an update whose plan was run, so that the statistics tell an error of the update.
fn tried(cx: &Context<'_>, explained: DocBuf, update: &UpdateRequest<'_>) -> Result<DocBuf> {
    let stats = explained.get("executionStats").and_then(|stats| stats.as_document());
    if !stats.is_some_and(|stats| matches!(stats.get("executionSuccess"), Some(Value::Bool(true))))
    {
        return Ok(explained);
    }
    match try_update(&cx.unit()?, update, &cx.exec_params()) {
        Ok(()) => Ok(explained),
        Err(error) => {
            cx.interrupt.check().map_err(from_interruption)?;
            Ok(failed(explained.as_doc(), &error))
        }
    }
}

/// Returns an explanation whose run has failed with this error.
fn failed(explained: Doc<'_>, error: &Error) -> DocBuf {
    DocBuf::build(|out| {
        for element in explained.iter() {
            let ("executionStats", Value::Document(stats)) = (element.key(), element.value())
            else {
                out.append_element(element);
                continue;
            };
            let mut shown = out.document("executionStats");
            shown.append("executionSuccess", false).append("failed", true);
            shown
                .append("errorMessage", error.message())
                .append("errorCode", error.code().number());
            for element in stats.iter().filter(|element| element.key() != "executionSuccess") {
                shown.append_element(element);
            }
        }
    })
}

/// Shows the plan of a delete with one statement.
pub fn delete(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let statement = delete::parse(only_statement(body, "delete", "deletes")?)?;
    let request = FindRequest {
        namespace: cx.target(body)?.as_str().to_owned(),
        filter: statement.filter.to_owned(),
        hint: statement.hint.clone(),
        collation: AskedCollation::parse(statement.collation)?,
        let_vars: let_vars(cx, body)?,
        ..FindRequest::default()
    };
    show(ReadRequest::Write(&request, WriteKind::Delete { multi: !statement.one }))
}

/// Shows the plan of a findAndModify.
pub fn find_and_modify(cx: &Context<'_>, body: Doc<'_>, show: &mut Show<'_>) -> Result<DocBuf> {
    let found = find_and_modify::parse(cx, body)?;
    if found.upsert {
        check_upsert_filter(found.filter.as_doc())?;
    }
    let array_filters = found.array_filters.as_deref().unwrap_or_default();
    if let Some(update) = found.update {
        let spec = UpdateSpec { update, array_filters, multi: false };
        check_update(spec, found.let_vars.as_doc(), &cx.exec_params())?;
    }
    Projecting::new(cx, None, &found)?;
    let request = FindRequest {
        namespace: cx.target(body)?.as_str().to_owned(),
        filter: found.filter.clone(),
        sort: found.sort.clone(),
        projection: found.projection,
        hint: found.hint.clone(),
        collation: found.collation.clone(),
        let_vars: found.let_vars.clone(),
        limit: 1,
        ..FindRequest::default()
    };
    let (remove, upsert, new) = (found.remove, found.upsert, found.new);
    let kind = WriteKind::FindAndModify { remove, upsert, new };
    let explained = show(ReadRequest::Write(&request, kind))?;
    let Some(update) = found.update else { return Ok(explained) };
    let update = UpdateRequest {
        namespace: cx.target(body)?,
        filter: found.filter.as_doc(),
        update,
        array_filters,
        multi: false,
        upsert: false,
        supplied: None,
        sort: found.sort.as_doc(),
        hint: found.hint,
        collation: found.collation,
        let_vars: found.let_vars.as_doc(),
    };
    tried(cx, explained, &update)
}

/// Returns the argument `let`.
fn let_vars(cx: &Context<'_>, body: Doc<'_>) -> Result<DocBuf> {
    let arg = arguments(cx.command.name, body).find(|arg| arg.name() == "let" && !arg.is_null());
    arg.map_or(Ok(DocBuf::new()), |arg| owned(&arg))
}

/// Returns the one statement of a write.
///
/// # Errors
/// `InvalidLength` for any other number of statements.
fn only_statement<'a>(body: Doc<'a>, command: &'static str, name: &str) -> Result<Doc<'a>> {
    let Some(list) = body.get(name).and_then(|list| list.as_array()) else {
        return Err(missing(command, name));
    };
    match (list.count(), list.get(0)) {
        (1, Some(Value::Document(statement))) => Ok(statement),
        (1, _) => Err(Error::type_mismatch(format!("{name} must hold documents"))),
        (count, _) => {
            let text = format!("explained write batches must be of size 1, got {count}");
            Err(Error::new(ErrorCode::InvalidLength, text))
        }
    }
}
