//! `getMore`: the next batch of a cursor.

use crate::cursors::await_data::Waiting;
use crate::cursors::cursor_reply::write_read_time;
use crate::frame::args::{Arg, arguments, missing};
use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use crate::frame::fail_points::FAIL_GET_MORE;
use crate::frame::fingerprint::Fingerprint;
use crate::frame::generic_fields::{ApiParameters, max_time};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Label, Result};
use quire_executor::{BatchEnd, BatchLimits, Follows, UnitOfWork};
use quire_session::Cursor;
use std::time::Instant;

/// The parsed arguments.
struct Request<'a> {
    cursor: i64,
    collection: &'a str,
    /// The largest number of documents in the batch.
    docs: usize,
    /// How long a cursor that waits for documents waits.
    max_time_ms: Option<u64>,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let Request { cursor: id, collection, docs, max_time_ms } = parse(cx, body)?;
    let namespace = format!("{}.{collection}", cx.db);
    let transaction = cx.generic.txn_number.filter(|_| cx.in_transaction());
    let owner = (cx.generic.session, transaction);
    if cx.service.cursors.owner(id).is_some_and(|(owner, _)| owner != cx.owner()) {
        // Checked before the reply says anything about the cursor, also its namespace.
        let text = format!("cursor id {id} was not created by the authenticated user");
        return Err(Error::new(ErrorCode::Unauthorized, text));
    }
    let mut checkout = cx.service.cursors.checkout(id, &namespace, owner, &cx.interrupt)?;
    let Some(cursor) = checkout.cursor() else {
        return Err(Error::internal("a cursor that was checked out is gone"));
    };
    let allowed =
        cx.authorize_cursor(cursor.command.as_doc()).map_err(|error| match error.code() {
            ErrorCode::Unauthorized => {
                Error::new(error.code(), format!("not authorized for getMore with cursor id {id}"))
            }
            _ => error,
        });
    let fits = || check_max_time(cursor, max_time_ms);
    let api = |()| check_api(&cx.generic.api, cursor.api.as_doc());
    if let Err(error) = allowed.and_then(api).and_then(|()| fits()) {
        checkout.keep();
        return Err(error);
    }
    if let Some(fault) = cx.service.fail_points.strike(FAIL_GET_MORE, cx, body) {
        fault.before(cx)?;
    }
    let started = Instant::now();
    if let Some(left) = cursor.time_left.filter(|_| cx.generic.max_time_ms == 0) {
        cx.interrupt.set_deadline(Some(started + left));
        cx.meet_time_fault(body)?;
    }
    // A batch that fails belongs to the cursor's statement, too.
    cx.tally.originating = Some(cursor.command.clone());
    let print = |hash| Fingerprint { hash, ..Fingerprint::default() };
    cx.tally.fingerprint = cursor.fingerprint.map(print);
    let before = cursor.source.examined().map(|examined| examined.counters).unwrap_or_default();
    let waiting = Waiting::begin(cx, cursor, max_time_ms);
    let mut shown = reply.document("cursor");
    let is_stream = cursor.source.resume_token().is_some();
    let end = write_batch(cx, cursor, (transaction, docs), waiting, &mut shown)
        .map_err(|error| if is_stream { resumable(error) } else { error })?;
    cursor.time_left = cursor.time_left.map(|left| left.saturating_sub(started.elapsed()));
    cx.tally.examined = cursor.source.examined().map(|mut examined| {
        examined.counters = examined.counters.since(&before);
        examined
    });
    cx.tally.earlier = before;
    (cx.tally.returned, cx.tally.cursor) = (Some(end.docs as u64), Some(id));
    cx.tally.cursor_exhausted = end.is_last();
    cx.service.metrics.getmores.add(1);
    cx.service.metrics.documents_returned.add(end.docs as u64);
    let open = !end.is_last();
    if let Some(token) = cursor.source.resume_token() {
        shown.append("postBatchResumeToken", &token);
    }
    shown.append("id", if open { id } else { 0 }).append("ns", namespace.as_str());
    write_read_time(&mut shown, cursor.source.read_time());
    if open {
        checkout.keep();
        if cx.exhaust_allowed {
            cx.outcome.more_to_come = true;
            cx.connection.exhaust = Some(body.to_owned());
        }
    }
    Ok(())
}

/// Writes the next batch of at most `docs` documents, read in the cursor's transaction if it has one.
/// If there are none yet, waits for them.
fn write_batch(
    cx: &mut Context<'_>,
    cursor: &mut Cursor,
    (transaction, docs): (Option<i64>, usize),
    waiting: Option<Waiting>,
    shown: &mut DocWriter<'_>,
) -> Result<BatchEnd> {
    let unit = match transaction {
        Some(_) => cx.unit()?,
        None => cx.unit_at(cursor.source.read_time()),
    };
    let limits = BatchLimits::docs(docs);
    let mut batch = shown.array("nextBatch");
    let end = loop {
        // The views are dropped before the wait.
        let given = cursor.source.next_batch(&mut unit.views()?, &cx.interrupt, limits, &mut batch);
        let end =
            given.map_err(|error| cx.without_values_of_target(cursor.command.as_doc(), error));
        let end = end.map_err(|error| error.context("Executor error during getMore"))?;
        match (end, &waiting) {
            (BatchEnd { docs: 0, follows: Follows::NothingYet { past } }, Some(waiting)) => {
                if !waiting.wait(past)? {
                    break end;
                }
                if cx.service.access.enforced {
                    // Rights can have changed while it waited.
                    cx.connection.identity()?;
                    cx.authorize_cursor(cursor.command.as_doc())?;
                }
            }
            _ => break end,
        }
    };
    drop(batch);
    if !end.is_last() {
        let Cursor { memory, parsed_bytes, source, .. } = &mut *cursor;
        Cursor::charge(memory, *parsed_bytes, &**source)?;
    }
    let is_empty_tail = end.docs == 0 && !end.is_last();
    if cursor.durable_reads && !is_empty_tail {
        cx.await_durable_reads(ReadLevel::Majority)?;
    }
    Ok(end)
}

/// Errors after which a driver opens a change stream again by itself (the specification "Change
/// Streams" of the drivers, section "Resumable Error").
const RESUMABLE: &[i32] =
    &[6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436];

/// Adds the label of such an error.
fn resumable(error: Error) -> Error {
    match RESUMABLE.contains(&error.code().number()) {
        true => error.with_label(Label::ResumableChangeStreamError),
        false => error,
    }
}

fn parse<'a>(cx: &Context<'_>, body: Doc<'a>) -> Result<Request<'a>> {
    let (mut collection, mut batch_size) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "collection" if arg.is_null() => {}
            "collection" => collection = Some(arg.string()?),
            "batchSize" if !arg.is_null() => batch_size = Some(arg.integer_from(0)?),
            "term" if !arg.is_null() => match arg.value() {
                Value::Int64(_) => {}
                _ => return Err(arg.wrong_type("long")),
            },
            "batchSize" | "term" | "lastKnownCommittedOpTime" => {}
            "includeQueryStatsMetrics" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let max_time_ms = max_time_ms(body)?;
    let cursor = cursor_id(body)?;
    let collection = collection.ok_or_else(|| missing(cx.command.name, "collection"))?;
    if collection.is_empty() {
        let text = format!("Invalid namespace specified '{}.'", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    if collection.starts_with('.') {
        let text = format!("Collection names cannot start with '.': {collection}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let docs = match batch_size {
        None | Some(0) => usize::MAX,
        Some(docs) => usize::try_from(docs).unwrap_or(usize::MAX),
    };
    Ok(Request { cursor, collection, docs, max_time_ms })
}

fn cursor_id(body: Doc<'_>) -> Result<i64> {
    match body.first() {
        Some(first) => match first.value() {
            Value::Int64(id) => Ok(id),
            Value::Null => Err(missing("getMore", "getMore")),
            _ => Err(Arg::new("getMore", first).wrong_type("long")),
        },
        None => Err(missing("getMore", "getMore")),
    }
}

fn max_time_ms(body: Doc<'_>) -> Result<Option<u64>> {
    let Some(element) = body.find("maxTimeMS") else { return Ok(None) };
    let arg = Arg::new("getMore", element);
    if arg.is_null() { Ok(None) } else { max_time(&arg).map(Some) }
}

/// Refuses `maxTimeMS` for a cursor that does not wait: only a wait has a time limit of its own.
fn check_max_time(cursor: &Cursor, max_time_ms: Option<u64>) -> Result<()> {
    if max_time_ms.is_none() || cursor.source.awaits().is_some() {
        return Ok(());
    }
    let text = "cannot set maxTimeMS on getMore command for a non-awaitData cursor";
    Err(Error::bad_value(text))
}

/// Checks that the getMore has the API parameters of the command that opened the cursor.
fn check_api(api: &ApiParameters, opened: Doc<'_>) -> Result<()> {
    let used = api.to_doc();
    if used.as_bytes() == opened.as_bytes() {
        return Ok(());
    }
    let text = format!(
        "API parameter mismatch: getMore used params {}, the cursor-creating command used {}",
        quire_catalog::debug_doc(used.as_doc()),
        quire_catalog::debug_doc(opened)
    );
    Err(Error::new(ErrorCode::APIMismatchError, text))
}
