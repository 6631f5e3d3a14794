//! The argument `workload` of the advice: a list of commands with how often each runs, or what the
//! recorder has counted.

use crate::advise::server_laboratory::find;
use crate::frame::args::{Arg, fields};
use crate::frame::context::Context;
use quire_advisor::indexes::{INSTANCES_MAX, IndexRequest, instances};
use quire_advisor::workload::ShapeUse;
use quire_collections::{CollectionCursor, Record, RecordId};
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;
use quire_storage::rng::Rng;
use std::collections::HashMap;

/// The units of a span of time, in milliseconds.
const SPANS: &[(&str, i64)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)];
/// The bytes of the documents that give values to a shape.
const DOCUMENT_BYTES: usize = 1 << 20;

/// The commands without a plan that a workload can have.
const OTHERS: &[&str] = &["insert"];
/// The most commands of a workload.
pub const COMMANDS_MAX: usize = 10_000;

/// The requests for which indexes are advised.
#[derive(Default)]
pub struct AdvisedWorkload {
    /// The commands of the workload.
    pub requests: Vec<IndexRequest>,
    /// The name of their origin in the reply.
    pub source: &'static str,
}

impl AdvisedWorkload {
    /// Parses the argument.
    ///
    /// # Errors
    /// 2 BadValue, 14 TypeMismatch, 40415 for an unknown field.
    pub fn parse(cx: &Context<'_>, arg: &Arg<'_>, seed: u64) -> Result<AdvisedWorkload> {
        let mut parsed = AdvisedWorkload { source: "commands", ..AdvisedWorkload::default() };
        for field in fields("adviseIndexes.workload", arg.document()?) {
            match field.name() {
                "commands" => {
                    let commands = field.array()?.iter().enumerate();
                    let request = |(at, value): (usize, Value<'_>)| match value {
                        Value::Document(request) => parse_request(cx, request),
                        other => Err(field.wrong_element(at, other, "object")),
                    };
                    let commands: Vec<IndexRequest> =
                        commands.map(request).collect::<Result<_>>()?;
                    parsed.requests.extend(commands);
                }
                "last" => {
                    let recorded = recorded(cx, parse_span(&field)?, seed)?;
                    parsed.requests.extend(recorded);
                    parsed.source = "recorder";
                }
                _ => return Err(field.unknown()),
            }
        }
        if parsed.requests.len() > COMMANDS_MAX {
            let text = format!("a workload has at most {COMMANDS_MAX} commands");
            return Err(Error::bad_value(text));
        }
        Ok(parsed)
    }
}

/// Parses a span of time, such as `"24h"`, in milliseconds.
fn parse_span(field: &Arg<'_>) -> Result<i64> {
    let text = field.string()?;
    let parsed = SPANS.iter().find_map(|(unit, millis)| {
        let number = text.trim().strip_suffix(unit)?.trim().parse::<i64>().ok()?;
        number.checked_mul(*millis).filter(|span| *span > 0)
    });
    parsed.ok_or_else(|| {
        Error::bad_value(format!("'{text}' is no span of time, such as 24h, 7d or 90m"))
    })
}

/// Returns commands for what clients did in this database in the last `span` milliseconds, the most
/// frequent shapes first.
fn recorded(cx: &Context<'_>, span: i64, seed: u64) -> Result<Vec<IndexRequest>> {
    let (now, _) = cx.clock();
    let service = cx.service;
    // The window of this hour is stored before it is read.
    let writing = service.write_gate.enter(&cx.interrupt)?;
    let workload = service.recorder.windows(&service.store, now.saturating_sub(span), now)?;
    drop(writing);
    let is_own = |used: &ShapeUse| {
        // The right to read a database is none to read its system collections.
        let is_plain = |name: &str| name != "$cmd" && !name.starts_with("system.");
        used.namespace.split_once('.').is_some_and(|(db, name)| db == cx.db && is_plain(name))
    };
    let mut shapes: Vec<ShapeUse> = workload.shapes.into_iter().filter(is_own).collect();
    shapes.sort_by_key(|used| std::cmp::Reverse(used.measures.count));
    shapes.truncate(COMMANDS_MAX / INSTANCES_MAX);
    let mut random = Rng::new(seed);
    let mut known: HashMap<String, Vec<DocBuf>> = HashMap::new();
    let mut requests = Vec::new();
    for used in &shapes {
        cx.check_interrupt()?;
        let name = used.namespace.split_once('.').map_or("", |(_, name)| name);
        if !known.contains_key(name) {
            known.insert(name.to_owned(), some_documents(cx, name, &mut random)?);
        }
        let documents = known.get(name).map_or(&[][..], Vec::as_slice);
        requests.extend(instances(used, documents));
    }
    Ok(requests)
}

/// Returns some documents of a collection, from random places: none if it does not exist.
pub fn some_documents(cx: &Context<'_>, name: &str, random: &mut Rng) -> Result<Vec<DocBuf>> {
    let Some(collection) = find(cx, name)? else { return Ok(Vec::new()) };
    let view = cx.service.store.read_view()?;
    let ids = view.view().record_ids(&collection)?;
    let (mut found, mut page) = (Vec::new(), Vec::<Record>::new());
    for _ in 0..INSTANCES_MAX {
        let id = ids.start + random.below(ids.end.saturating_sub(ids.start).max(1));
        for from in [Some(RecordId(id)), None] {
            page.clear();
            let mut cursor = CollectionCursor::between(&collection, Direction::Forward, from, None);
            cursor.next_page(&view.view(), &collection, 1, DOCUMENT_BYTES, &mut page)?;
            // After the last document there is none: then the first one counts.
            if let Some(record) = page.first() {
                found.push(record.doc.as_doc().to_owned());
                break;
            }
        }
    }
    Ok(found)
}

/// Parses a command, or `{command, count}`.
///
/// # Errors
/// 59 CommandNotFound; 2 BadValue for a command that reads and writes no documents.
fn parse_request(cx: &Context<'_>, request: Doc<'_>) -> Result<IndexRequest> {
    let Some(Value::Document(command)) = request.get("command") else {
        check_command(cx, request)?;
        return Ok(IndexRequest { command: request.to_owned(), count: 1.0 });
    };
    check_command(cx, command)?;
    let mut count = 1.0;
    for field in fields("adviseIndexes.workload.commands", request) {
        match field.name() {
            "command" => {}
            "count" => count = parse_count(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    Ok(IndexRequest { command: command.to_owned(), count })
}

/// Parses how often a command ran, which may be the share of several commands of one shape.
fn parse_count(field: &Arg<'_>) -> Result<f64> {
    let count = field.value().as_number().map(|number| number.to_f64());
    match count.ok_or_else(|| field.wrong_type("double"))? {
        count if count > 0.0 && count.is_finite() => Ok(count),
        _ => Err(Error::bad_value("'count' must be greater than 0")),
    }
}

/// Fails unless a command reads or writes documents.
fn check_command(cx: &Context<'_>, command: Doc<'_>) -> Result<()> {
    let name = command.first().map_or("", |first| first.key());
    match cx.service.commands.find(name) {
        None => Err(Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))),
        Some(row) if row.explain.is_some() || OTHERS.contains(&row.name) => Ok(()),
        Some(_) => {
            let text =
                format!("a workload has commands that read or write documents, not '{name}'");
            Err(Error::bad_value(text))
        }
    }
}
