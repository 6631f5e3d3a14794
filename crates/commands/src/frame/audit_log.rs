//! The audit log itself: the filter that selects events, the text of an event, and the changes of
//! the current command of a thread. (`frame/audit.rs` creates the events.)

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use quire_collections::CatalogChange;
use quire_document::calendar::iso_text;
use quire_document::extjson::{self, Format};
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::Result;
use quire_mql::context::{EvalContext, ParseContext, Shared};
use quire_mql::filter::Filter;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;

/// Receives the lines of the audit log.
pub trait AuditSink: Send + Sync {
    /// Writes one event, a JSON document without a line break.
    ///
    /// # Errors
    /// The errors of the file.
    fn write(&self, line: &str) -> io::Result<()>;

    /// Renames the file and continues with a new one. Returns the path of the old file.
    ///
    /// # Errors
    /// The errors of the file operations.
    fn rotate(&self) -> io::Result<String>;
}

/// The external parameters of an audit log.
pub struct AuditOptions {
    /// The destination of the events.
    pub sink: Arc<dyn AuditSink>,
    /// Selects the events to write; `None` for all.
    pub filter: Option<DocBuf>,
}

/// The audit log of a service.
pub(crate) struct AuditLog {
    sink: Arc<dyn AuditSink>,
    filter: Option<Filter>,
}

impl AuditLog {
    /// Compiles the filter.
    ///
    /// # Errors
    /// The errors of `mql` about the filter.
    pub(crate) fn new(options: &AuditOptions) -> Result<Self> {
        let parse = |filter: &DocBuf| Filter::parse(filter.as_doc(), &ParseContext::default());
        let filter = options.filter.as_ref().map(parse).transpose()?;
        Ok(AuditLog { sink: Arc::clone(&options.sink), filter })
    }

    /// Writes an event if the filter matches. An event on which the filter fails is written.
    ///
    /// # Errors
    /// The errors of the file.
    pub(crate) fn write(&self, event: Doc<'_>, now_ms: i64) -> io::Result<()> {
        match self.picks(event, now_ms) {
            true => self.sink.write(&line(event)),
            false => Ok(()),
        }
    }

    fn picks(&self, event: Doc<'_>, now_ms: i64) -> bool {
        let Some(filter) = &self.filter else { return true };
        let arena = bumpalo::Bump::new();
        let shared = Shared::new(now_ms);
        filter.matches(event, &EvalContext::new(&arena, event, &shared)).unwrap_or(true)
    }

    /// Rotates the file. Returns the path of the old file.
    ///
    /// # Errors
    /// The errors of the file operations.
    pub(crate) fn rotate(&self) -> io::Result<String> {
        self.sink.rotate()
    }
}

/// Returns an event as Extended JSON, with the time and the UUID in the form of MongoDB's audit
/// log.
fn line(event: Doc<'_>) -> String {
    let mut text = String::with_capacity(512);
    let mut separator = '{';
    // Writing to a string cannot fail.
    let append = |text: &mut String, value: Value<'_>| {
        let _ = extjson::write(value, Format::default(), text);
    };
    for (name, value) in event.fields() {
        text.push(separator);
        separator = ',';
        append(&mut text, Value::String(name));
        text.push(':');
        match value {
            Value::Date(ms) => {
                let time = iso_text(ms).replace('Z', "+00:00");
                append(&mut text, (&doc! { "$date": time.as_str() }).into());
            }
            Value::Binary(uuid) => {
                let base64 = BASE64.encode(uuid.bytes);
                let uuid = doc! { "$binary": base64.as_str(), "$type": "04" };
                append(&mut text, (&uuid).into());
            }
            other => append(&mut text, other),
        }
    }
    text.push('}');
    text
}

thread_local! {
    /// The changes by the running command of this thread; `None` outside of a command.
    static CHANGES: RefCell<Option<Vec<CatalogChange>>> = const { RefCell::new(None) };
}

/// Begins to collect the changes of the catalog by the command of this thread.
pub(crate) fn keep_changes() {
    CHANGES.with_borrow_mut(|kept| *kept = Some(Vec::new()));
}

/// Returns the collected changes, and ends the collection.
pub(crate) fn take_changes() -> Vec<CatalogChange> {
    CHANGES.take().unwrap_or_default()
}

/// Collects changes for the command of this thread. Returns false if it runs none.
pub(crate) fn note_changes(changes: &[CatalogChange]) -> bool {
    CHANGES.with_borrow_mut(|kept| match kept {
        Some(kept) => {
            kept.extend_from_slice(changes);
            true
        }
        None => false,
    })
}
