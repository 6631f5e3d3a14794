//! What one operation has looked at, returned and changed: the part of slow-query lines and of
//! the profiler's entries that the commands themselves fill in.

use crate::frame::reply::number;
use quire_document::{DocBuf, DocWriter};
use quire_executor::{Counters, Examined};

/// The figures of one operation; what does not apply to it stays `None`.
#[derive(Default)]
pub struct Tally {
    /// Keys and documents looked at, and the plan.
    pub examined: Option<Examined>,
    /// The cursor that the operation left open or went on with.
    pub cursor: Option<i64>,
    /// Its cursor has nothing more to give.
    pub cursor_exhausted: bool,
    /// Documents that the client got.
    pub returned: Option<u64>,
    /// Documents that were inserted.
    pub inserted: Option<u64>,
    /// Documents that an update matched.
    pub matched: Option<u64>,
    /// Documents that an update changed.
    pub modified: Option<u64>,
    /// Documents that an upsert inserted.
    pub upserted: Option<u64>,
    /// Documents that were deleted.
    pub deleted: Option<u64>,
    /// Of a getMore: the command that opened the cursor.
    pub originating: Option<DocBuf>,
    /// Of an explain: the full name of the collection of the command that it explains.
    pub explained: Option<String>,
    /// It failed before it reached its collection: the profiler leaves it out.
    pub failed_early: bool,
}

impl Tally {
    /// What the operation has looked at.
    pub fn counters(&self) -> Counters {
        self.examined.as_ref().map(|examined| examined.counters).unwrap_or_default()
    }

    /// Appends the figures under the names that mongod gives them.
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

    /// Returns the plan in a few words.
    pub fn plan_summary(&self) -> Option<String> {
        self.examined.as_ref().map(Examined::summary).filter(|summary| !summary.is_empty())
    }
}

fn append_figure(out: &mut DocWriter<'_>, name: &str, figure: Option<u64>) {
    if let Some(figure) = figure {
        number(out, name, figure as i64);
    }
}
