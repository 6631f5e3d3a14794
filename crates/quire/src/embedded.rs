//! The embedded database: an engine, its service and background jobs; how a command is run, and the
//! order in which everything is closed.

use crate::error::{Error, Result};
use crate::open::OpenOptions;
use bson::RawDocumentBuf;
use parking_lot::{Mutex, RwLock};
use quire_commands::log::{LogSink, NoLog};
use quire_commands::{Call, Connection, ConnectionInfo, Jobs, Service, ServiceOptions};
use quire_document::{Doc, Value};
use quire_storage::{Engine, Interrupt};
use quire_storage_lsm::LsmOptions;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Commands with more levels of nesting run on a separate stack.
const SHALLOW_LEVELS: usize = 24;
/// The size of that stack: enough for the deepest command, as in the server.
const STACK_BYTES: usize = 8 << 20;
/// How long a close waits for running commands before it interrupts them again.
const CLOSE_PAUSE: Duration = Duration::from_millis(20);

/// An open database, shared by all clones of a client and everything made from them.
pub(crate) struct Embedded {
    service: Arc<Service>,
    /// The background jobs; `None` after the database is closed. A running command holds a read
    /// lock.
    jobs: RwLock<Option<Jobs>>,
    /// Connections that no command uses.
    idle: Mutex<Vec<Connection>>,
    connections: AtomicU64,
    shutdown_asked: Arc<AtomicBool>,
    warnings: Vec<String>,
}

/// The documents of one argument of a command, each as its bytes.
pub(crate) struct Documents<'a> {
    /// The argument: `documents`, `updates`, `deletes`.
    pub(crate) name: &'static str,
    /// The documents in order.
    pub(crate) documents: &'a [RawDocumentBuf],
}

impl Embedded {
    pub(crate) fn on_disk(path: &Path, options: OpenOptions) -> Result<Arc<Embedded>> {
        let mut settings = LsmOptions::default();
        if let Some(bytes) = options.cache_bytes {
            settings.cache_bytes = bytes;
        }
        let failed = |error| Error::open(format!("cannot open {}: {error}", path.display()));
        let opened = quire_storage_lsm::open(path, settings).map_err(failed)?;
        Self::over(opened.engine, "lsm", Some(path), opened.warnings, options)
    }

    pub(crate) fn in_memory(options: OpenOptions) -> Result<Arc<Embedded>> {
        let failed = |error| Error::open(format!("cannot open a database in memory: {error}"));
        let engine = quire_storage::open_memory().map_err(failed)?;
        Self::over(engine, "memory", None, Vec::new(), options)
    }

    fn over(
        engine: Arc<dyn Engine>,
        name: &'static str,
        path: Option<&Path>,
        warnings: Vec<String>,
        options: OpenOptions,
    ) -> Result<Arc<Embedded>> {
        let shutdown_asked = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&shutdown_asked);
        let log: Arc<dyn LogSink> = options.log.unwrap_or_else(|| Arc::new(NoLog));
        let mut settings = ServiceOptions::in_process(name, path);
        settings.parameters = options.parameters;
        settings.log = log;
        settings.change_log = options.change_log.bounds(path.is_some());
        settings.on_shutdown = Arc::new(move || asked.store(true, Ordering::Release));
        let service =
            Service::open(engine, settings).map_err(|error| Error::open(error.to_string()))?;
        let jobs = service.start_jobs().map_err(|error| Error::open(error.to_string()))?;
        Ok(Arc::new(Embedded {
            service,
            jobs: RwLock::new(Some(jobs)),
            idle: Mutex::default(),
            connections: AtomicU64::new(0),
            shutdown_asked,
            warnings,
        }))
    }

    /// Returns true if the database has a change log.
    pub(crate) fn logs_changes(&self) -> bool {
        self.service.store().logs_changes()
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Runs one command and returns its reply, which may report an error.
    pub(crate) fn call(&self, body: &[u8], documents: Option<Documents<'_>>) -> Result<Vec<u8>> {
        let call = Call::new(body).and_then(|call| match &documents {
            None => Ok(call),
            Some(Documents { name, documents }) => {
                call.with_documents(name, documents.iter().map(|document| document.as_bytes()))
            }
        });
        let call = call.map_err(|error| Error::from_server(&error))?;
        let open = self.jobs.read();
        if open.is_none() {
            return Err(Error::shutdown());
        }
        let mut connection = self.connection();
        let mut run = || connection.call(&call, Interrupt::new());
        let deep = is_deep(call.body(), SHALLOW_LEVELS);
        let (reply, outcome) = if deep { on_a_large_stack(run)? } else { run() };
        if !outcome.close && !outcome.hang_up {
            self.idle.lock().push(connection);
        }
        drop(open);
        if self.shutdown_asked.load(Ordering::Acquire) {
            self.close()?;
        }
        if outcome.hang_up {
            return Err(Error::shutdown());
        }
        Ok(reply.into_bytes())
    }

    fn connection(&self) -> Connection {
        let idle = self.idle.lock().pop();
        idle.unwrap_or_else(|| {
            let id = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
            self.service.connect(ConnectionInfo {
                id,
                peer: None,
                local: None,
                certificate_subject: None,
            })
        })
    }

    /// Interrupts running commands, stops the jobs, flushes and releases the files. Later calls
    /// fail, and a second close does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let mut jobs = loop {
            self.service.interrupt_all();
            if let Some(jobs) = self.jobs.try_write_for(CLOSE_PAUSE) {
                break jobs;
            }
        };
        if jobs.take().is_none() {
            return Ok(());
        }
        self.idle.lock().clear();
        self.service.close().map_err(|error| Error::open(format!("cannot close: {error}")))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // A drop cannot return an error; `Client::shutdown` does.
        let _ = self.close();
    }
}

/// Returns true if the document is nested more than `levels` levels.
fn is_deep(doc: Doc<'_>, levels: usize) -> bool {
    doc.iter().any(|element| is_deep_value(element.value(), levels))
}

fn is_deep_value(value: Value<'_>, levels: usize) -> bool {
    match value {
        Value::Document(inner) => levels == 0 || is_deep(inner, levels - 1),
        Value::Array(inner) => {
            levels == 0 || inner.iter().any(|value| is_deep_value(value, levels - 1))
        }
        _ => false,
    }
}

/// Runs a command on a thread with a stack that is large enough for its nesting, like that of a
/// server's connection. The stack size of the calling thread is unknown.
fn on_a_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("deep".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, run).map_err(|error| Error::thread(&error))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
