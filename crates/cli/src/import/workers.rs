//! The threads that send batches, each over its own connection, and the counts of the server's
//! replies.

use super::options::{ImportOptions, Mode};
use crate::connect::{CallError, Client, Door, integer};
use crate::exit::{FAILED, Failure};
use crate::progress::Progress;
use quire_document::{Doc, DocBuf, Value, doc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Statements with the line numbers of their documents.
#[derive(Default)]
pub(crate) struct Batch {
    lines: Vec<u64>,
    statements: Vec<DocBuf>,
    bytes: usize,
}

impl Batch {
    pub(crate) fn push(&mut self, line: u64, statement: DocBuf) {
        self.bytes += statement.as_bytes().len();
        self.lines.push(line);
        self.statements.push(statement);
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The counts of imported and failed documents.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// The error that ended the import early, if there was one.
    pub(crate) ended: Option<String>,
}

/// The threads that send documents.
pub(crate) struct Workers {
    queue: SyncSender<Batch>,
    threads: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

struct Shared {
    tally: Mutex<Tally>,
    stop: AtomicBool,
    progress: Progress,
    db: String,
    collection: String,
    mode: Mode,
    ordered: bool,
    bypass_validation: bool,
    write_concern: Option<DocBuf>,
    stop_on_error: bool,
}

impl Workers {
    /// Connects every thread, so that a server that does not reply is detected at once.
    pub(crate) fn start(
        door: &Door,
        options: &ImportOptions,
        progress: &Progress,
    ) -> Result<Workers, Failure> {
        let shared = Arc::new(Shared {
            tally: Mutex::default(),
            stop: AtomicBool::new(false),
            progress: progress.clone(),
            db: options.db.clone(),
            collection: options.collection.clone(),
            mode: options.mode,
            ordered: options.stop_on_error || options.maintain_order,
            bypass_validation: options.bypass_validation,
            write_concern: options.write_concern.clone(),
            stop_on_error: options.stop_on_error,
        });
        let (queue, batches) = sync_channel(options.workers);
        let batches = Arc::new(Mutex::new(batches));
        let mut threads = Vec::new();
        for number in 0..options.workers {
            let (client, batches, shared) = (door.client()?, batches.clone(), shared.clone());
            let thread = std::thread::Builder::new()
                .name(format!("import{number}"))
                .stack_size(8 << 20)
                .spawn(move || work(client, &batches, &shared))
                .map_err(|error| Failure::new(FAILED, format!("cannot start a thread: {error}")))?;
            threads.push(thread);
        }
        Ok(Workers { queue, threads, shared })
    }

    /// Returns true if no more batches are needed.
    pub(crate) fn stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// Passes a batch to the next free thread; waits for one.
    pub(crate) fn send(&self, batch: Batch) {
        let count = batch.len();
        if count > 0 && self.queue.send(batch).is_err() {
            // Every thread has panicked.
            self.shared.progress.complain(&format!("{count} documents were not sent"));
            self.shared.tally().failed += count as u64;
        }
    }

    /// Waits until all batches are sent and acknowledged.
    pub(crate) fn finish(self) -> Tally {
        drop(self.queue);
        for thread in self.threads {
            if thread.join().is_err() {
                self.shared.tally().ended = Some("a thread of the import panicked".into());
            }
        }
        std::mem::take(&mut *self.shared.tally())
    }
}

fn work(mut client: Client, batches: &Mutex<Receiver<Batch>>, shared: &Shared) {
    loop {
        let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        if shared.stop.load(Ordering::Acquire) {
            shared.give_up(&batch.lines, "was not sent");
            continue;
        }
        shared.send(&mut client, batch);
    }
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, client: &mut Client, batch: Batch) {
        let Batch { lines, statements, .. } = batch;
        let (command, argument) = match self.mode {
            Mode::Insert => ("insert", "documents"),
            Mode::Upsert | Mode::Merge => ("update", "updates"),
            Mode::Delete => ("delete", "deletes"),
        };
        let mut body = doc! { command: self.collection.as_str(), "ordered": self.ordered };
        if self.bypass_validation {
            body.append("bypassDocumentValidation", true);
        }
        if let Some(concern) = &self.write_concern {
            body.append("writeConcern", concern);
        }
        match client.call(&self.db, body, Some((argument, statements))) {
            Ok(reply) => self.count(&lines, reply.as_doc()),
            Err(CallError::Refused { code, message }) => {
                self.give_up(&lines, &format!("{message} (code {code})"));
                self.end(format!("the server refused a batch: {message} (code {code})"));
            }
            Err(CallError::Gone(why)) => {
                self.give_up(&lines, "it is not known whether this was imported");
                self.end(why);
            }
        }
    }

    /// Reads a reply, and counts the lines that failed.
    fn count(&self, lines: &[u64], reply: Doc<'_>) {
        let errors = reply.get("writeErrors").and_then(|errors| errors.as_array());
        let errors: Vec<_> = errors.iter().flat_map(|errors| errors.iter()).collect();
        let mut failed = 0;
        let mut last = 0;
        for error in errors.iter().filter_map(|error| error.as_document()) {
            let at = error.get("index").and_then(integer).unwrap_or(0) as usize;
            let text = match error.get("errmsg") {
                Some(Value::String(text)) => text,
                _ => "it failed",
            };
            let line = lines.get(at).copied().unwrap_or(0);
            self.progress.complain(&format!("line {line}: {text}"));
            failed += 1;
            last = at;
        }
        // An ordered batch ends at its first error.
        let left = if self.ordered && failed > 0 { &lines[last + 1..] } else { &[] };
        if !left.is_empty() && !self.stop_on_error {
            self.give_up(left, "was not tried, because of an earlier error in its batch");
        }
        if let Some(Value::Document(error)) = reply.get("writeConcernError") {
            let text = error.get("errmsg").map_or(String::new(), |text| format!("{text:?}"));
            self.end(format!("the write concern was not met: {text}"));
        }
        {
            let mut tally = self.tally();
            tally.failed += failed;
            tally.done += (lines.len() - left.len()) as u64 - failed;
        }
        if self.stop_on_error && failed > 0 {
            self.end("stopped at the first error".into());
        }
    }

    /// Reports lines that are not imported.
    fn give_up(&self, lines: &[u64], why: &str) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return };
        let shown = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first} to {last}")
        };
        self.progress.complain(&format!("{shown}: {} documents: {why}", lines.len()));
        self.tally().failed += lines.len() as u64;
    }

    fn end(&self, why: String) {
        self.stop.store(true, Ordering::Release);
        self.tally().ended.get_or_insert(why);
    }
}
