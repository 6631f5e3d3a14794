//! The history of `serverStatus` on disk: what a server did in the last days, for the time after
//! something went wrong. `record.rs` has the bytes of one sample, `folder.rs` the files and their
//! bounds. The format is in docs/format.md.

mod folder;
mod record;

pub use folder::{History, HistoryBounds, read};

/// The folder of the files, in the data directory.
pub const FOLDER: &str = "history";

/// How long samples are kept at most, in milliseconds.
pub const AGE_MAX_MS: i64 = 30 * 86_400_000;

/// The most samples that one read returns. Of more samples, evenly spaced ones are returned.
pub const SAMPLES_MAX: usize = 1000;

/// Returns the time of a sample in milliseconds since 1970: its `localTime`.
pub fn time_of(sample: quire_document::Doc<'_>) -> Option<i64> {
    match sample.get("localTime") {
        Some(quire_document::Value::Date(millis)) => Some(millis),
        _ => None,
    }
}
