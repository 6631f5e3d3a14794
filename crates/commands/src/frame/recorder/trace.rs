//! Traces: the statements of a while one by one, for somebody who asked for them (`quire record`).
//! Nothing of a trace is stored by the server: it waits in memory, up to a bound, until it is read.

use super::known::{of_statement, of_write};
use super::{Recorder, lock, values};
use crate::frame::command::{Command, Kind as CommandKind};
use crate::frame::command_shape::command_shape;
use crate::frame::service::{Connection, Request, now_ms};
use foldhash::fast::FixedState;
use quire_access::scram::random;
use quire_advisor::trace::{Entry, Head, Values};
use quire_advisor::workload::Kind;
use quire_document::{Binary, Doc, DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The bytes of statements that wait to be read. What comes while they are full is lost and counted.
pub const WAITING_BYTES_MAX: usize = 32 << 20;
/// A trace that is not read for this long ends by itself.
const UNREAD_MAX: Duration = Duration::from_secs(60);
/// The bytes of one reading.
const READ_BYTES_MAX: usize = 4 << 20;
/// Fields of a command that concern its connection and not what it does.
const NOT_KEPT: &[&str] = &["lsid", "$clusterTime", "$readPreference", "$audit"];

/// The trace of a server; at most one runs.
#[derive(Default)]
pub struct Tracing {
    /// True while statements are added.
    is_on: AtomicBool,
    running: Mutex<Option<Running>>,
}

struct Running {
    id: i64,
    head: Head,
    /// The key of the hashes.
    key: Vec<u8>,
    began: Instant,
    /// When it ends.
    until: Instant,
    read: Instant,
    waiting: VecDeque<DocBuf>,
    waiting_bytes: usize,
    lost: u64,
}

/// What a reading returns.
pub struct TracePart {
    /// Statements in their order.
    pub entries: Vec<DocBuf>,
    /// The statements that were lost so far, because nobody read in time.
    pub lost: u64,
    /// True if more statements may follow.
    pub continues: bool,
}

/// A command that has ended, for the trace.
pub struct Traced<'t> {
    /// The connection of the client.
    pub connection: &'t Connection,
    /// The row of the command.
    pub command: &'static Command,
    /// The command with its document sequences.
    pub request: &'t Request<'t>,
    /// The full name of the collection.
    pub namespace: &'t str,
    /// When it began.
    pub began: Instant,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// True if it failed.
    pub failed: bool,
    /// The reply of the command.
    pub reply: Doc<'t>,
}

impl Tracing {
    /// Begins a trace, and returns its number and its head.
    ///
    /// # Errors
    /// 117 ConflictingOperationInProgress while another one runs.
    pub fn begin(&self, values: Values, lasts: Duration) -> Result<(i64, Head)> {
        let mut running = lock(&self.running);
        let now = Instant::now();
        if running.as_ref().is_some_and(|known| !known.is_over(now)) {
            let text = "another trace is being recorded";
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let head = Head { begins_ms: now_ms(), values };
        let id = (quire_storage::rng::word() >> 1) as i64;
        *running = Some(Running {
            id,
            head: head.clone(),
            key: random(32)?,
            began: now,
            until: now + lasts,
            read: now,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lost: 0,
        });
        self.is_on.store(true, Ordering::Release);
        Ok((id, head))
    }

    /// Returns the statements that wait, as many as a reply takes.
    ///
    /// # Errors
    /// 4 NoSuchKey if no trace of this number runs.
    pub fn read(&self, id: i64) -> Result<TracePart> {
        let mut running = lock(&self.running);
        let Some(known) = running.as_mut().filter(|known| known.id == id) else {
            return Err(no_trace());
        };
        let now = Instant::now();
        known.read = now;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while bytes < READ_BYTES_MAX
            && let Some(entry) = known.waiting.pop_front()
        {
            bytes += entry.as_bytes().len();
            entries.push(entry);
        }
        known.waiting_bytes -= bytes;
        let continues = now < known.until || !known.waiting.is_empty();
        Ok(TracePart { entries, lost: known.lost, continues })
    }

    /// Adds no more statements to the trace that runs. What waits can still be read.
    ///
    /// # Errors
    /// 4 NoSuchKey if no trace runs.
    pub fn stop(&self) -> Result<()> {
        let mut running = lock(&self.running);
        let known = running.as_mut().ok_or_else(no_trace)?;
        known.until = Instant::now();
        self.is_on.store(false, Ordering::Release);
        Ok(())
    }

    /// Ends a trace and forgets what was not read.
    ///
    /// # Errors
    /// 4 NoSuchKey if no trace of this number runs.
    pub fn end(&self, id: i64) -> Result<()> {
        let mut running = lock(&self.running);
        if running.as_ref().is_none_or(|known| known.id != id) {
            return Err(no_trace());
        }
        self.is_on.store(false, Ordering::Release);
        *running = None;
        Ok(())
    }

    /// Returns true if commands are to be added.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Adds a command to the trace, if one runs and the command is one on data.
    pub fn add(&self, traced: &Traced<'_>) {
        if !is_traced(traced.command) {
            return;
        }
        let (values, key, began) = {
            let mut running = lock(&self.running);
            let Some(known) = running.as_ref() else { return };
            if known.is_over(Instant::now()) {
                self.is_on.store(false, Ordering::Release);
                if known.read.elapsed() > UNREAD_MAX {
                    *running = None;
                }
                return;
            }
            (known.head.values, known.key.clone(), known.began)
        };
        // A command that began before the trace is not part of it.
        let Some(at) = traced.began.checked_duration_since(began) else { return };
        let entries = entries(traced, (values, &key), at.as_micros() as u64);
        let mut running = lock(&self.running);
        let Some(known) = running.as_mut() else { return };
        for entry in entries {
            let entry = entry.to_document();
            if known.waiting_bytes + entry.as_bytes().len() > WAITING_BYTES_MAX {
                known.lost += 1;
                continue;
            }
            known.waiting_bytes += entry.as_bytes().len();
            known.waiting.push_back(entry);
        }
    }
}

impl Running {
    fn is_over(&self, now: Instant) -> bool {
        now >= self.until || now.saturating_duration_since(self.read) > UNREAD_MAX
    }
}

fn no_trace() -> Error {
    Error::new(ErrorCode::NoSuchKey, "no such trace is being recorded")
}

/// Returns true for commands on data. Those with secrets are never traced.
fn is_traced(command: &Command) -> bool {
    let on_data = matches!(command.kind, CommandKind::Read | CommandKind::Write)
        || matches!(command.name, "commitTransaction" | "abortTransaction");
    on_data && command.secrets.is_empty() && command.name != "explain"
}

/// Returns the statements of a command. The first one has the command.
fn entries(traced: &Traced<'_>, (kept, key): (Values, &[u8]), at_micros: u64) -> Vec<Entry> {
    let body = traced.request.body;
    let base = Entry {
        at_micros,
        session: session(traced),
        name: traced.command.name.to_owned(),
        namespace: traced.namespace.to_owned(),
        failed: traced.failed,
        ..Entry::default()
    };
    let mut entries = statements(traced, body, &base);
    if entries.is_empty() {
        entries.push(base);
    }
    if kept != Values::None {
        let hash = |value: Value<'_>| values::hash(key, value);
        for (at, entry) in entries.iter_mut().enumerate() {
            let statement = statement(traced, at).unwrap_or(body);
            entry.asked = values::asked(statement, &hash);
        }
    }
    let Some(first) = entries.first_mut() else { return entries };
    first.micros = traced.micros;
    let batch = values::batch(traced.reply);
    first.returned_docs = batch.map_or(0, |batch| batch.count() as u64);
    first.cursor = values::cursor(traced.reply);
    if kept != Values::None {
        first.returned = values::returned(traced.reply, &|value| values::hash(key, value));
        first.statement = values::statement(key, traced.namespace, body);
    }
    if kept == Values::Keep {
        first.command = Some(whole(traced.request));
    }
    entries
}

/// Returns an entry with kind and shape for each statement of a command.
fn statements(traced: &Traced<'_>, body: Doc<'_>, base: &Entry) -> Vec<Entry> {
    let named = |kind: Kind, shape: DocBuf| Entry { kind: Some(kind), shape, ..base.clone() };
    let db = base.namespace.split('.').next().unwrap_or_default();
    match traced.command.name {
        "update" | "delete" | "bulkWrite" => {
            let all = (0..).map_while(|at| statement(traced, at));
            let one = |statement: Doc<'_>| {
                let (kind, namespace) = of_statement(traced.command.name, statement, || {
                    place(body, traced.request, statement)
                });
                let namespace = namespace.unwrap_or_else(|| base.namespace.clone());
                let written = (kind != Kind::Insert).then_some(statement);
                let shape = of_write(&namespace, kind.name(), written);
                Entry { namespace, ..named(kind, shape.document().clone()) }
            };
            all.map(one).collect()
        }
        "insert" => {
            let shape = of_write(&base.namespace, "insert", None);
            vec![named(Kind::Insert, shape.document().clone())]
        }
        "findAndModify" => {
            let shape = of_write(&base.namespace, "findAndModify", Some(body));
            vec![named(Kind::FindAndModify, shape.document().clone())]
        }
        name => match (Kind::parse(name), command_shape(db, body)) {
            (Some(kind), Some(shape)) => vec![named(kind, shape.document().clone())],
            _ => Vec::new(),
        },
    }
}

/// Returns a statement of a command with several.
fn statement<'t>(traced: &'t Traced<'_>, at: usize) -> Option<Doc<'t>> {
    let list = match traced.command.name {
        "update" => "updates",
        "delete" => "deletes",
        "bulkWrite" => "ops",
        _ => return None,
    };
    let sequence = traced.request.sequences.iter().find(|sequence| sequence.name == list);
    match sequence {
        Some(sequence) => sequence.documents.get(at).copied(),
        None => traced.request.body.get(list)?.as_array()?.get(at)?.as_document(),
    }
}

/// Returns the namespace of an operation of a `bulkWrite`.
fn place(body: Doc<'_>, request: &Request<'_>, op: Doc<'_>) -> Option<String> {
    let at = usize::try_from(op.first()?.value().exact_i64()?).ok()?;
    let sequence = request.sequences.iter().find(|sequence| sequence.name == "nsInfo");
    let info = match sequence {
        Some(sequence) => sequence.documents.get(at).copied()?,
        None => body.get("nsInfo")?.as_array()?.get(at)?.as_document()?,
    };
    info.get("ns")?.as_str().map(str::to_owned)
}

/// Returns a number of the logical session, or of the connection for a command without one.
fn session(traced: &Traced<'_>) -> u64 {
    let lsid = traced.request.body.get("lsid").and_then(|lsid| lsid.as_document()?.get("id"));
    match lsid {
        Some(Value::Binary(Binary { bytes, .. })) => FixedState::with_seed(1).hash_one(bytes),
        _ => traced.connection.info.id,
    }
}

/// Returns the command with its document sequences, without what concerns the connection.
fn whole(request: &Request<'_>) -> DocBuf {
    DocBuf::build(|out| {
        for element in request.body.iter().filter(|one| !NOT_KEPT.contains(&one.key())) {
            out.append_element(element);
        }
        for sequence in request.sequences {
            let mut list = out.array(sequence.name);
            sequence.documents.iter().for_each(|doc| {
                list.push(*doc);
            });
        }
    })
}

impl Recorder {
    /// Returns the trace of the server.
    pub fn tracing(&self) -> &Tracing {
        &self.tracing
    }
}
