//! `bulkWrite`: inserts, updates and deletes on several collections in one command (8.0).

use crate::cursors::cursor_reply::{Opening, Rows};
use crate::frame::args::{Arg, arguments, fields, missing};
use crate::frame::context::Context;
use crate::frame::query_args::{empty_timestamps, flag, hint, owned, write_policy};
use crate::frame::tally::Tally;
use crate::frame::usage::Class;
use crate::write::delete;
use crate::write::delete_statement::DeleteStatement;
use crate::write::statement_ids::StatementIds;
use crate::write::update::{self, UpdateStatement, checked_update, run_one};
use crate::write::write_reply::{IdRoom, STATEMENTS_MAX, Shortening};
use crate::write::writes::{fails_command, write_repeated};
use quire_catalog::{Namespace, Uuid};
use quire_collections::{EmptyTimestamps, WritePolicy, is_in_doubt};
use quire_document::{Doc, DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, ErrorClass, ErrorCode, Result};
use quire_executor::modify::{InsertOptions, insert_many};
use quire_executor::{ExecParams, UnitOfWork};
use quire_session::{Source, Unit};
use std::time::Instant;

/// One element of `nsInfo`.
struct Target {
    namespace: Namespace,
    uuid: Option<Uuid>,
}

/// One operation: the position of its collection in `nsInfo`, and the action.
struct Op<'a> {
    /// The operation as the client wrote it.
    written: Doc<'a>,
    place: usize,
    action: Action<'a>,
}

enum Action<'a> {
    Insert(Doc<'a>),
    Update(Box<UpdateStatement<'a>>),
    Delete(DeleteStatement<'a>),
}

#[derive(Default)]
struct Totals {
    errors: i32,
    inserted: i64,
    matched: i64,
    modified: i64,
    upserted: i64,
    deleted: i64,
    room: IdRoom,
}

#[derive(Default)]
struct Options {
    unordered: bool,
    errors_only: bool,
    let_vars: DocBuf,
    batch_size: Option<u64>,
    statements: StatementIds,
    policy: WritePolicy,
    timestamps: EmptyTimestamps,
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut options, mut ops, mut namespaces) = (Options::default(), None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "ops" => ops = Some(arg),
            "nsInfo" => namespaces = Some(arg),
            "ordered" if !arg.is_null() => options.unordered = !arg.bool()?,
            "errorsOnly" if !arg.is_null() => options.errors_only = arg.bool()?,
            "let" => options.let_vars = owned(&arg)?,
            "cursor" if !arg.is_null() => {
                options.batch_size =
                    crate::frame::query_args::batch_size("bulkWrite.cursor", arg.document()?)?;
            }
            "bypassDocumentValidation" => options.policy = write_policy(&arg)?,
            "bypassEmptyTsReplacement" => options.timestamps = empty_timestamps(&arg)?,
            "ordered" | "errorsOnly" | "cursor" => {}
            _ if options.statements.read(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    let ops = documents(cx, "ops", ops)?;
    let namespaces = documents(cx, "nsInfo", namespaces)?;
    let namespaces = namespaces.iter().map(|info| namespace(*info)).collect::<Result<Vec<_>>>()?;
    let ops = ops.iter().map(|op| parse(*op)).collect::<Result<Vec<_>>>()?;
    check_lengths(&ops, &namespaces)?;
    let (rows, totals, repeated) = perform(cx, &ops, &namespaces, &options)?;
    write_reply(cx, rows, &totals, options.batch_size, body, reply)?;
    write_repeated(&repeated, reply);
    Ok(())
}

/// Runs the operations. Returns one row for each that is reported.
fn perform(
    cx: &Context<'_>,
    ops: &[Op<'_>],
    namespaces: &[Target],
    options: &Options,
) -> Result<(Vec<DocBuf>, Totals, Vec<i32>)> {
    let (mut rows, mut totals) = (Vec::new(), Totals::default());
    let mut shortening = Shortening::default();
    for target in namespaces {
        cx.wait_behind_changes(target.namespace.as_str())?;
    }
    let mut unit = cx.write_unit(ops.len(), &options.statements, ops.len(), options.policy)?;
    if let Some(place) = &*cx.transaction.borrow() {
        namespaces.iter().for_each(|target| place.note_use(target.namespace.as_str()));
    }
    for (at, op) in ops.iter().enumerate() {
        let Some(target) = namespaces.get(op.place) else { continue };
        let place = (&mut unit, at);
        let ended = one(cx, target, op, options, place, &mut totals);
        match ended {
            Ok(_) if options.errors_only => {}
            Ok(row) => rows.push(DocBuf::build(|writer| {
                writer.append("ok", 1.0).append("idx", at as i32).append_all(row.as_doc());
            })),
            Err(error) if is_in_doubt(&error) => return Err(error),
            Err(error) if cx.in_transaction() && fails_command(&error) => return Err(error),
            Err(error) => {
                totals.errors += 1;
                cx.statement_failed.set(true);
                let stop = !options.unordered
                    || cx.in_transaction()
                    || error.code().is_a(ErrorClass::Interruption);
                // The outcome of an insert is that of its own document.
                let error = shortening.shorten(match op.action {
                    Action::Insert(_) => error,
                    Action::Update(_) | Action::Delete(_) => {
                        cx.without_values(&target.namespace, error)
                    }
                });
                rows.push(error_row(at, op, &error));
                if stop {
                    break;
                }
            }
        }
    }
    let repeated = cx.finish_writes(unit)?;
    Ok((rows, totals, repeated))
}

fn error_row(at: usize, op: &Op<'_>, error: &Error) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("ok", 0.0).append("idx", at as i32).append("code", error.code().number());
        if let Some(details) = error.details() {
            writer.append_all(Doc::from_valid_bytes(details));
        }
        writer.append("errmsg", error.message()).append("n", 0);
        if matches!(op.action, Action::Update(_)) {
            writer.append("nModified", 0);
        }
    })
}

/// Returns `$$CLUSTER_TIME` of the operation at this position: each has one of its own.
fn of_operation(time: Timestamp, place: usize) -> Timestamp {
    let later = u32::try_from(place).unwrap_or(u32::MAX);
    Timestamp { increment: time.increment.saturating_add(later), ..time }
}

/// Returns the parameters of the update at this position.
fn params_of(cx: &Context<'_>, options: &Options, place: usize) -> ExecParams {
    let mut params = cx.exec_params();
    params.keeps_empty_timestamps = options.timestamps == EmptyTimestamps::Kept;
    params.cluster_time = params.cluster_time.map(|time| of_operation(time, place));
    params
}

/// Runs the operation at this position and returns its counters.
fn one(
    cx: &Context<'_>,
    target: &Target,
    op: &Op<'_>,
    options: &Options,
    (unit, place): (&mut Unit, usize),
    totals: &mut Totals,
) -> Result<DocBuf> {
    let (namespace, began) = (&target.namespace, Instant::now());
    let let_vars = options.let_vars.as_doc();
    if let Some(uuid) = &target.uuid {
        cx.service.store.catalog().check_uuid(namespace, uuid)?;
    }
    match &op.action {
        Action::Insert(doc) => {
            if unit.repeated(place)?.is_none() {
                let inserted = insert_one(cx, namespace, *doc, options.timestamps, (unit, place));
                cx.end_bulk_statement(
                    Class::Insert,
                    namespace,
                    op.written,
                    began,
                    match &inserted {
                        Ok(()) => Ok(Tally { inserted: Some(1), ..Tally::default() }),
                        Err(error) => Err(error),
                    },
                );
                inserted?;
            }
            totals.inserted += 1;
            Ok(quire_document::doc! { "n": 1 })
        }
        Action::Update(statement) => {
            let outcome = match unit.repeated(place)? {
                Some(before) => crate::write::repeated::update(&before)?,
                None => {
                    totals.room.check()?;
                    let params = params_of(cx, options, place);
                    let ended = run_one(cx, namespace, statement, let_vars, (unit, place, &params));
                    let tally = ended.as_ref().map(update::tally);
                    cx.end_bulk_statement(Class::Update, namespace, op.written, began, tally);
                    ended?
                }
            };
            if let Some(id) = &outcome.upserted {
                totals.room.take(id);
            }
            let upserted = outcome.upserted.is_some();
            totals.matched += outcome.matched as i64;
            totals.modified += outcome.modified as i64;
            totals.upserted += i64::from(upserted);
            Ok(DocBuf::build(|row| {
                row.append("n", (outcome.matched + u64::from(upserted)) as i32);
                row.append("nModified", outcome.modified as i32);
                if let Some(id) = &outcome.upserted {
                    row.document("upserted").append("_id", id);
                }
            }))
        }
        Action::Delete(statement) => {
            let ended = delete::run_one(cx, namespace, statement, let_vars, (unit, place));
            let tally = ended.as_ref().map(delete::tally);
            cx.end_bulk_statement(Class::Remove, namespace, op.written, began, tally);
            let ended = ended?;
            totals.deleted += ended.deleted as i64;
            Ok(quire_document::doc! { "n": ended.deleted as i32 })
        }
    }
}

fn insert_one(
    cx: &Context<'_>,
    namespace: &Namespace,
    doc: Doc<'_>,
    timestamps: EmptyTimestamps,
    (unit, place): (&mut Unit, usize),
) -> Result<()> {
    cx.begin_statements(unit, place..place + 1)?;
    let how = InsertOptions { timestamps, ..InsertOptions::ORDERED };
    let mut outcome = insert_many(unit, namespace, &[doc], how, &cx.interrupt)?;
    if let Some((_, error)) = outcome.errors.pop() {
        return Err(error);
    }
    unit.note(outcome.committed.as_ref());
    Ok(())
}

fn write_reply(
    cx: &mut Context<'_>,
    rows: Vec<DocBuf>,
    totals: &Totals,
    batch_size: Option<u64>,
    body: Doc<'_>,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let opening = Opening {
        namespace: "admin.$cmd.bulkWrite".to_owned(),
        batch_size: batch_size.or(Some(u64::MAX)),
        single_batch: false,
        no_timeout: false,
        limit: 0,
        full_batch_stays_open: false,
        command: body,
    };
    let source: Box<dyn Source> = Box::new(Rows(rows.into()));
    let unit = cx.unit_at(None);
    cx.open_cursor(reply, opening, source, &mut unit.views()?)?;
    reply.append("nErrors", totals.errors);
    reply.append("nInserted", totals.inserted as i32).append("nMatched", totals.matched as i32);
    reply.append("nModified", totals.modified as i32).append("nUpserted", totals.upserted as i32);
    reply.append("nDeleted", totals.deleted as i32);
    let metrics = &cx.service.metrics;
    metrics.documents_inserted.add(totals.inserted as u64);
    metrics.documents_updated.add(totals.modified as u64);
    metrics.documents_deleted.add(totals.deleted as u64);
    Ok(())
}

/// Returns an array argument of documents, or the document sequence of that name.
fn documents<'c>(
    cx: &'c Context<'_>,
    name: &'static str,
    arg: Option<Arg<'c>>,
) -> Result<Vec<Doc<'c>>> {
    if let Some(sequence) = cx.sequence(name) {
        return Ok(sequence.to_vec());
    }
    let Some(arg) = arg.filter(|arg| !arg.is_null()) else {
        return Err(missing("bulkWrite", name));
    };
    let mut found = Vec::new();
    for (at, value) in arg.array()?.iter().enumerate() {
        let Value::Document(doc) = value else {
            let kind = value.type_name();
            return Err(Error::type_mismatch(format!(
                "BSON field 'bulkWrite.{name}.{at}' is the wrong type '{kind}', expected type 'object'"
            )));
        };
        found.push(doc);
    }
    Ok(found)
}

fn check_lengths(ops: &[Op<'_>], namespaces: &[Target]) -> Result<()> {
    if !ops.is_empty() && namespaces.is_empty() {
        return Err(Error::bad_value("BulkWrite nsInfo must have at least one entry"));
    }
    for (name, count) in [("Write batch sizes", ops.len()), ("nsInfo sizes", namespaces.len())] {
        if count == 0 || count > STATEMENTS_MAX {
            let text =
                format!("{name} must be between 1 and {STATEMENTS_MAX}. Got {count} operations.");
            return Err(Error::new(ErrorCode::InvalidLength, text));
        }
    }
    match ops.iter().find(|op| op.place >= namespaces.len()) {
        None => Ok(()),
        Some(op) => {
            let text = format!("BulkWrite ops entry has an invalid nsInfo index {}.", op.place);
            Err(Error::bad_value(text))
        }
    }
}

fn namespace(info: Doc<'_>) -> Result<Target> {
    const OWNER: &str = "bulkWrite.nsInfo";
    let (mut found, mut uuid) = (None, None);
    for arg in fields(OWNER, info) {
        match arg.name() {
            "ns" if arg.is_null() => {}
            "ns" => found = Some(Namespace::parse(arg.string()?)?),
            "collectionUUID" | "encryptionInformation" if arg.is_null() => {}
            "collectionUUID" => uuid = Some(crate::frame::query_args::uuid(&arg)?),
            "encryptionInformation" => {
                return Err(Error::not_built(&format!("{OWNER}.{}", arg.name())));
            }
            "isTimeseriesNamespace" => {
                flag(&arg)?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = found.ok_or_else(|| missing(OWNER, "ns"))?;
    namespace.check_creatable()?;
    Ok(Target { namespace, uuid })
}

fn parse(op: Doc<'_>) -> Result<Op<'_>> {
    let kind = op.first().map_or("", |first| first.key());
    match kind {
        "insert" => parse_insert(op),
        "update" => parse_update(op),
        "delete" => parse_delete(op),
        _ => {
            let text = format!("BSON field 'bulkWrite.ops.{kind}' is an unknown field.");
            Err(Error::new(ErrorCode::IDLUnknownField, text))
        }
    }
}

/// Returns the operation's first field: the position of its collection.
fn place(arg: &Arg<'_>) -> Result<usize> {
    if arg.is_null() {
        return Err(missing("bulkWrite.ops", arg.name()));
    }
    let number = arg.integer_from(0)?;
    usize::try_from(number).map_err(|_| arg.too_small(0, number))
}

fn parse_insert(op: Doc<'_>) -> Result<Op<'_>> {
    const OWNER: &str = "insert";
    let (mut at, mut document) = (0, None);
    for arg in fields(OWNER, op) {
        match arg.name() {
            "insert" => at = place(&arg)?,
            "document" if arg.is_null() => {}
            "document" => document = Some(arg.document()?),
            _ => return Err(arg.unknown()),
        }
    }
    let document = document.ok_or_else(|| missing(OWNER, "document"))?;
    Ok(Op { written: op, place: at, action: Action::Insert(document) })
}

fn parse_update(op: Doc<'_>) -> Result<Op<'_>> {
    const OWNER: &str = "update";
    let (mut at, mut statement, mut has_filter) = (0, UpdateStatement::default(), false);
    for arg in fields(OWNER, op) {
        match arg.name() {
            "update" => at = place(&arg)?,
            "filter" if arg.is_null() => {}
            "filter" => {
                statement.filter = arg.document()?;
                has_filter = true;
            }
            "updateMods" => statement.update = Some(checked_update(&arg)?),
            "constants" if !arg.is_null() => statement.constants = Some(arg.document()?),
            "constants" => {}
            _ if statement.read(&arg)? => {}
            _ => return Err(arg.unknown()),
        }
    }
    if !has_filter {
        return Err(missing(OWNER, "filter"));
    }
    if statement.update.is_none() {
        return Err(missing(OWNER, "updateMods"));
    }
    statement.check_sort()?;
    Ok(Op { written: op, place: at, action: Action::Update(Box::new(statement)) })
}

fn parse_delete(op: Doc<'_>) -> Result<Op<'_>> {
    const OWNER: &str = "delete";
    let (mut at, mut filter, mut multi, mut chosen) = (0, None, false, None);
    let mut collation = Doc::empty();
    for arg in fields(OWNER, op) {
        match arg.name() {
            "delete" => at = place(&arg)?,
            "filter" if arg.is_null() => {}
            "filter" => filter = Some(arg.document()?),
            "multi" => multi = flag(&arg)?,
            "hint" => chosen = hint(&arg)?,
            "collation" if arg.is_null() => {}
            "collation" => collation = arg.document()?,
            _ => return Err(arg.unknown()),
        }
    }
    let filter = filter.ok_or_else(|| missing(OWNER, "filter"))?;
    let statement = DeleteStatement { filter, one: !multi, hint: chosen, collation };
    Ok(Op { written: op, place: at, action: Action::Delete(statement) })
}
