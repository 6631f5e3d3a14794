//! What was asked of a server, from what it wrote about that: mongod's log, the documents of its
//! profiler, `$queryStats`, or Quire's recorder. Each gives a workload by the shape of statements.

mod entry;
mod log;
mod server;
mod shape;

pub(crate) use log::read_log;
pub(crate) use server::{RECORDER, of_server};

use crate::exit::{FAILED, Failure};
use entry::Entry;
use quire_advisor::Workload;
use quire_advisor::workload::{Cause, Measures, ShapeUse};
use quire_document::{Doc, extjson};
use shape::Shaped;
use std::collections::HashMap;
use std::path::Path;

/// A workload that is being gathered.
#[derive(Default)]
pub(crate) struct Gathered {
    shapes: HashMap<(String, Vec<u8>), ShapeUse>,
    /// The dates of the first and the last line, whether it is about a statement or not.
    span: Option<(i64, i64)>,
}

impl Gathered {
    /// Notes that something was written at a time.
    fn note_time(&mut self, ms: i64) {
        let (first, last) = self.span.unwrap_or((ms, ms));
        self.span = Some((first.min(ms), last.max(ms)));
    }

    /// Adds a statement. One of a kind without a shape is left out.
    fn add(&mut self, entry: &Entry<'_>) {
        if let Some(ms) = entry.ended_ms {
            self.note_time(ms);
        }
        let Some(Shaped { kind, shape }) = shape::of(entry.namespace, entry.kind, entry.command)
        else {
            return;
        };
        let key = (entry.namespace.to_owned(), shape.as_bytes().to_vec());
        let used = self.shapes.entry(key).or_insert_with(|| ShapeUse {
            namespace: entry.namespace.to_owned(),
            kind,
            cause: Cause::Client,
            shape,
            samples: Vec::new(),
            measures: Measures::default(),
        });
        entry.note(kind, &mut used.measures);
    }

    /// Returns the workload; `None` if there was no statement.
    pub(crate) fn workload(self) -> Option<Workload> {
        let (begins_ms, ends_ms) = self.span?;
        let mut shapes: Vec<ShapeUse> = self.shapes.into_values().collect();
        // The order of a map changes from run to run.
        shapes.sort_by(|left, right| {
            (&left.namespace, left.shape.as_bytes())
                .cmp(&(&right.namespace, right.shape.as_bytes()))
        });
        let workload = Workload { begins_ms, ends_ms, shapes, ..Workload::default() };
        (!workload.shapes.is_empty()).then_some(workload)
    }
}

/// Adds a document of `system.profile`.
pub(crate) fn add_profiled(gathered: &mut Gathered, document: Doc<'_>) {
    if let Some(entry) = Entry::of_profile(document) {
        gathered.add(&entry);
    }
}

/// Reads a file with a recorded workload: the document of `quireRecorder: "show"`, or its field
/// `workload`, as Extended JSON.
pub(crate) fn read_workload(path: &Path) -> Result<Workload, Failure> {
    let bad = |what: String| Failure::new(FAILED, format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let document = extjson::parse_doc(&text).map_err(|error| bad(error.to_string()))?;
    let read = match document.get("workload").and_then(|inner| inner.as_document()) {
        Some(reply) => Workload::from_document(reply),
        None => Workload::from_json(&text),
    };
    read.map_err(|error| bad(error.to_string()))
}
