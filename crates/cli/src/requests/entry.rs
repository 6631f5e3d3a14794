//! A statement that a log line or a document of the profiler describes. Both have the same names for
//! most of what they count (MongoDB manual, "Database Profiler Output", "Log Messages").

use crate::connect::{integer, is_advisor};
use quire_advisor::workload::{Kind, Measures};
use quire_document::{Doc, Value};

/// A statement with what it counted.
pub(super) struct Entry<'d> {
    /// The namespace, `database.collection`.
    pub(super) namespace: &'d str,
    /// The word for what it does: `command`, `update`, `query` and others.
    pub(super) kind: &'d str,
    pub(super) command: Doc<'d>,
    /// When it ended, in milliseconds since 1970.
    pub(super) ended_ms: Option<i64>,
    /// The attributes with the counts.
    counts: Doc<'d>,
    millis: u64,
}

impl<'d> Entry<'d> {
    /// Returns the statement of a line of the log, from its attributes.
    pub(super) fn of_line(attributes: Doc<'d>, ended_ms: Option<i64>) -> Option<Entry<'d>> {
        let text = |name: &str| attributes.get(name).and_then(|value| value.as_str());
        if text("appName").is_some_and(is_advisor) {
            return None;
        }
        Some(Entry {
            namespace: text("ns")?,
            kind: text("type").unwrap_or("command"),
            // A getMore is the rest of the command that opened its cursor.
            command: document(attributes, "originatingCommand")
                .or_else(|| document(attributes, "command"))?,
            ended_ms,
            counts: attributes,
            millis: count(attributes, "durationMillis"),
        })
    }

    /// Returns the statement of a document of the profiler.
    pub(super) fn of_profile(document_: Doc<'d>) -> Option<Entry<'d>> {
        let text = |name: &str| document_.get(name).and_then(|value| value.as_str());
        let ended_ms = match document_.get("ts") {
            Some(Value::Date(ms)) => Some(ms),
            _ => None,
        };
        if text("appName").is_some_and(is_advisor) {
            return None;
        }
        Some(Entry {
            namespace: text("ns")?,
            kind: text("op").unwrap_or("command"),
            command: document(document_, "originatingCommand")
                .or_else(|| document(document_, "command"))?,
            ended_ms,
            counts: document_,
            millis: count(document_, "millis"),
        })
    }

    fn is_rest(&self) -> bool {
        self.counts.contains("originatingCommand")
    }

    /// Adds what it counted.
    pub(super) fn note(&self, kind: Kind, measures: &mut Measures) {
        let micros = self.millis * 1000;
        measures.total_micros.note(micros);
        if let Some(ms) = self.ended_ms {
            measures.first_ms = measures.first_ms.min(ms);
            measures.last_ms = measures.last_ms.max(ms);
        }
        match self.is_rest() {
            true => measures.get_mores += 1,
            false => {
                measures.count += 1;
                measures.latency.note(micros);
                measures.micros.note(micros);
            }
        }
        measures.keys_examined.note(count(self.counts, "keysExamined"));
        measures.docs_examined.note(count(self.counts, "docsExamined"));
        measures.returned.note(count(self.counts, "nreturned"));
        self.note_plan(measures);
        self.note_bounds(measures);
        match kind {
            Kind::Insert => measures.inserted += count(self.counts, "ninserted").max(1),
            Kind::Update | Kind::FindAndModify => {
                let matched = count(self.counts, "nMatched");
                let modified = count(self.counts, "nModified");
                measures.matched.note(matched);
                measures.modified.note(modified);
                measures.upserted += count(self.counts, "nUpserted") + flag(self.counts, "upsert");
            }
            Kind::Delete => measures.deleted.note(count(self.counts, "ndeleted")),
            _ => {}
        }
    }

    fn note_plan(&self, measures: &mut Measures) {
        measures.sorts += flag(self.counts, "hasSortStage");
        measures.spills += flag(self.counts, "usedDisk");
        let summary = self.counts.get("planSummary").and_then(|summary| summary.as_str());
        let Some(summary) = summary else { return };
        if summary.contains("COLLSCAN") {
            measures.collection_scans += 1;
        }
        measures.note_plan(summary, "", 1);
    }

    fn note_bounds(&self, measures: &mut Measures) {
        for (name, histogram) in [("skip", &mut measures.skip), ("limit", &mut measures.limit)] {
            let given = self.command.get(name).and_then(integer);
            if let Some(given) =
                given.and_then(|given| u64::try_from(given).ok()).filter(|one| *one > 0)
            {
                histogram.note(given);
            }
        }
        let stages = self.command.get("pipeline").and_then(|stages| stages.as_array());
        for stage in stages.into_iter().flat_map(|stages| stages.to_vec()) {
            let stage = stage.as_document().unwrap_or_default();
            if let Some(skip) = stage.get("$skip").and_then(integer) {
                measures.skip.note(skip.unsigned_abs());
            }
        }
    }
}

fn document<'d>(entry: Doc<'d>, name: &str) -> Option<Doc<'d>> {
    entry.get(name).and_then(|value| value.as_document())
}

fn count(entry: Doc<'_>, name: &str) -> u64 {
    entry.get(name).and_then(integer).and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

fn flag(entry: Doc<'_>, name: &str) -> u64 {
    u64::from(entry.get(name).and_then(|value| value.as_bool()) == Some(true))
}
