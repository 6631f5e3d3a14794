//! The keys, documents and plan of one operation: the part of slow-query lines and of profiler
//! entries that the commands fill in.

use crate::frame::fingerprint::Fingerprint;
use crate::frame::reply::number;
use quire_document::{DocBuf, DocWriter};
use quire_executor::{Counters, Examined};

/// The counters of one operation; those that do not apply are `None`.
#[derive(Default)]
pub struct Tally {
    /// The examined keys and documents, and the plan.
    pub examined: Option<Examined>,
    /// The fingerprint for the recorder; `None` for an operation of no shape.
    pub fingerprint: Option<Fingerprint>,
    /// For a getMore: what the batches before it examined and returned.
    pub earlier: Counters,
    /// The cursor that the operation left open or continued.
    pub cursor: Option<i64>,
    /// True if the cursor has no more documents.
    pub cursor_exhausted: bool,
    /// Documents returned to the client.
    pub returned: Option<u64>,
    /// Documents that were inserted.
    pub inserted: Option<u64>,
    /// True if the command ended with errors of single documents, which its reply lists.
    pub has_write_errors: bool,
    /// Documents that an update matched.
    pub matched: Option<u64>,
    /// Documents that an update changed.
    pub modified: Option<u64>,
    /// Documents that an upsert inserted.
    pub upserted: Option<u64>,
    /// Documents that were deleted.
    pub deleted: Option<u64>,
    /// For a getMore: the command that opened the cursor.
    pub originating: Option<DocBuf>,
    /// For an explain: the full name of the explained command's collection.
    pub explained: Option<String>,
    /// True if it failed before it reached its collection: the profiler ignores it.
    pub failed_early: bool,
}

impl Tally {
    /// Returns what the operation has examined.
    pub fn counters(&self) -> Counters {
        self.examined.as_ref().map(|examined| examined.counters).unwrap_or_default()
    }

    /// Appends the counters under mongod's names.
    pub fn write(&self, out: &mut DocWriter<'_>) {
        if let Some(id) = self.cursor {
            out.append("cursorid", id);
        }
        if self.examined.is_some() {
            let counters = self.counters();
            number(out, "keysExamined", counters.keys_examined as i64);
            number(out, "docsExamined", counters.docs_examined as i64);
            if counters.sorted {
                out.append("hasSortStage", true);
            }
            if counters.used_disk {
                out.append("usedDisk", true);
            }
        }
        for (name, figure) in [
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("ninserted", self.inserted),
            ("ndeleted", self.deleted),
            ("nUpserted", self.upserted),
        ] {
            append_figure(out, name, figure);
        }
        if self.cursor_exhausted {
            out.append("cursorExhausted", true);
        }
        out.append("numYields", 0);
        append_figure(out, "nreturned", self.returned);
    }

    /// Appends the hashes of the plan's shape under mongod's names.
    pub fn write_plan_hashes(&self, out: &mut DocWriter<'_>) {
        let Some(examined) = &self.examined else { return };
        if let Some((shape, key)) = examined.shape_hashes() {
            out.append("queryHash", shape.as_str());
            out.append("planCacheShapeHash", shape.as_str());
            out.append("planCacheKey", key.as_str());
        }
        if examined.is_from_cache() {
            out.append("fromPlanCache", true);
        }
    }

    /// Returns the plan summary.
    pub fn plan_summary(&self) -> Option<String> {
        self.examined.as_ref().map(Examined::summary).filter(|summary| !summary.is_empty())
    }
}

fn append_figure(out: &mut DocWriter<'_>, name: &str, figure: Option<u64>) {
    if let Some(figure) = figure {
        number(out, name, figure as i64);
    }
}
