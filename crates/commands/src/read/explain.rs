//! `explain`: the plan of another command, and what happened when it ran.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::command::Command;
use crate::frame::context::Context;
use crate::read::find_request::parse_find;
use crate::read::{aggregate, count, distinct};
use crate::write::{delete, find_and_modify, update};
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::{Explained, explain};
use quire_planner::{AggregateRequest, FindRequest, Verbosity, WriteKind};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut verbosity = Verbosity::AllPlansExecution;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "verbosity" if !arg.is_null() => verbosity = parse_verbosity(&arg)?,
            "verbosity" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let inner = match body.first() {
        Some(first) if !Arg::new(cx.command.name, first).is_null() => {
            Arg::new(cx.command.name, first).document()?
        }
        _ => return Err(missing(cx.command.name, cx.command.name)),
    };
    let name = inner.first().map_or("", |first| first.key());
    let Some(command) = cx.service.commands.find(name) else {
        let text = format!("Explain failed due to unknown command: {name}");
        return Err(Error::new(ErrorCode::CommandNotFound, text));
    };
    if cx.generic.api.strict == Some(true) && !command.in_api_v1 {
        let text =
            format!("Provided apiStrict:true, but the command {name} is not in API Version 1");
        return Err(Error::new(ErrorCode::APIStrictError, text));
    }
    if let Some(Value::String(db)) = inner.get("$db")
        && db != cx.db
    {
        let text = format!("Mismatched $db in explain command. Expected {} but got {db}", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let own = std::mem::replace(&mut cx.command, command);
    let explained = explain_inner(cx, command, inner, verbosity);
    cx.command = own;
    finish(cx, inner, explained?, reply);
    Ok(())
}

/// `aggregate` with `explain: true`.
pub fn write_aggregate(
    cx: &mut Context<'_>,
    request: &AggregateRequest,
    body: Doc<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let what = Explained::Aggregate(request);
    let shown = explain(what, Verbosity::QueryPlanner, &mut cx.views()?, cx.exec_params())?;
    let command = DocBuf::build(|writer| {
        let own =
            body.iter().filter(|element| !crate::frame::args::is_generic(element.key_bytes()));
        own.for_each(|element| {
            writer.append_element(element);
        });
    });
    finish(cx, command.as_doc(), shown, reply);
    Ok(())
}

fn explain_inner(
    cx: &Context<'_>,
    command: &Command,
    inner: Doc<'_>,
    verbosity: Verbosity,
) -> Result<DocBuf> {
    let mut views = cx.views()?;
    let mut show = |what: Explained<'_>| explain(what, verbosity, &mut views, cx.exec_params());
    match command.name {
        "find" => {
            let namespace = cx.target(inner)?;
            let (request, _) = parse_find(namespace.as_str().to_owned(), inner)?;
            show(Explained::Find(&request))
        }
        "count" => show(Explained::Count(&count::parse(cx, inner)?)),
        "distinct" => show(Explained::Distinct(&distinct::parse(cx, inner)?)),
        "aggregate" => show(Explained::Aggregate(&inner_aggregate(cx, inner)?)),
        "update" => {
            let statements = inner_statements(inner, "update", "updates")?;
            let statement = update::parse(statements)?;
            let request = FindRequest {
                namespace: cx.target(inner)?.as_str().to_owned(),
                filter: statement.filter.to_owned(),
                sort: statement.sort.to_owned(),
                hint: statement.hint.clone(),
                ..FindRequest::default()
            };
            let kind = WriteKind::Update { multi: statement.multi, upsert: statement.upsert };
            show(Explained::Write(&request, kind))
        }
        "delete" => {
            let statement = delete::parse(inner_statements(inner, "delete", "deletes")?)?;
            let request = FindRequest {
                namespace: cx.target(inner)?.as_str().to_owned(),
                filter: statement.filter.to_owned(),
                hint: statement.hint.clone(),
                ..FindRequest::default()
            };
            show(Explained::Write(&request, WriteKind::Delete { multi: !statement.one }))
        }
        "findAndModify" => {
            let found = find_and_modify::parse(cx, inner)?;
            let request = FindRequest {
                namespace: cx.target(inner)?.as_str().to_owned(),
                filter: found.filter,
                sort: found.sort,
                projection: found.projection,
                hint: found.hint,
                limit: 1,
                ..FindRequest::default()
            };
            let kind = match found.remove {
                true => WriteKind::Delete { multi: false },
                false => WriteKind::Update { multi: false, upsert: found.upsert },
            };
            show(Explained::Write(&request, kind))
        }
        other => {
            let text = format!("Cannot explain cmd: {other}");
            Err(Error::new(ErrorCode::IllegalOperation, text))
        }
    }
}

/// An aggregate to explain; here it needs no `cursor`, and must not ask for itself.
fn inner_aggregate(cx: &Context<'_>, inner: Doc<'_>) -> Result<AggregateRequest> {
    let mut with_cursor = inner.to_owned();
    if !inner.contains("cursor") {
        with_cursor.append("cursor", Doc::empty());
    }
    let aggregate::Parsed { request, explain, .. } = aggregate::parse(cx, with_cursor.as_doc())?;
    if explain {
        let text = "The 'explain' option is illegal when a explain verbosity is also provided";
        return Err(Error::failed_to_parse(text));
    }
    Ok(request)
}

/// The one statement of a write: explain takes no more.
fn inner_statements<'a>(inner: Doc<'a>, command: &'static str, name: &str) -> Result<Doc<'a>> {
    let Some(list) = inner.get(name).and_then(|list| list.as_array()) else {
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

fn parse_verbosity(arg: &Arg<'_>) -> Result<Verbosity> {
    match arg.string()? {
        "queryPlanner" => Ok(Verbosity::QueryPlanner),
        "executionStats" => Ok(Verbosity::ExecutionStats),
        "allPlansExecution" => Ok(Verbosity::AllPlansExecution),
        other => Err(Error::bad_value(format!(
            "Enumeration value '{other}' for field 'explain.verbosity' is not a valid value."
        ))),
    }
}

/// The explanation with what surrounds it in a reply.
fn finish(cx: &Context<'_>, inner: Doc<'_>, explained: DocBuf, reply: &mut DocWriter<'_>) {
    reply.append_all(explained.as_doc());
    if !inner.is_empty() {
        let mut command = reply.document("command");
        command.append_all(inner);
        if !inner.contains("$db") {
            command.append("$db", cx.db);
        }
    }
    {
        let mut info = reply.document("serverInfo");
        info.append("host", crate::frame::host::host_name().as_str());
        let port = cx.connection.info.local.map_or(27017, |local| i32::from(local.port()));
        info.append("port", port).append("version", crate::frame::MONGODB_VERSION);
        info.append("gitVersion", concat!("quire-", env!("CARGO_PKG_VERSION")));
    }
    reply.document("serverParameters").append(
        "internalQueryMaxBlockingSortMemoryUsageBytes",
        cx.service.parameters.number("internalQueryMaxBlockingSortMemoryUsageBytes") as i32,
    );
}
