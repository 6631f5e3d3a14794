//! The change log of a service: whether there is one, and how much of the past it keeps.

use crate::frame::log::{LogLine, Severity};
use crate::frame::service::{Service, now_ms};
use quire_collections::{ChangeLogMode, LogWindow};
use quire_document::doc;
use quire_storage::Interrupt;
use std::sync::Arc;

/// How long changes are kept at most, unless a longer time is asked for: one day.
const AGE_MAX_MS: u64 = 24 * 3600 * 1000;

/// The options of the change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeLogOptions {
    /// Whether changes are logged.
    pub mode: ChangeLogMode,
    /// The size of the log in bytes beyond which its oldest changes go.
    pub bytes_max: u64,
    /// Changes younger than this stay, in milliseconds.
    pub age_min_ms: u64,
}

impl Default for ChangeLogOptions {
    /// Returns the options of a log that exists already: 1 GiB.
    fn default() -> Self {
        ChangeLogOptions { mode: ChangeLogMode::AsFound, bytes_max: 1 << 30, age_min_ms: 0 }
    }
}

impl Service {
    /// Removes changes that are older than the log keeps them, or too many.
    pub(crate) fn trim_change_log(&self, stop: &Arc<Interrupt>) {
        let ChangeLogOptions { bytes_max, age_min_ms, .. } = self.options.change_log;
        let window = LogWindow { bytes_max, age_min_ms, age_max_ms: AGE_MAX_MS };
        let now_ms = u64::try_from(now_ms()).unwrap_or(0);
        if let Err(error) = self.store.trim_change_log(&window, now_ms, stop)
            && stop.check().is_ok()
        {
            self.log().write(LogLine {
                severity: Severity::Warning,
                component: "REPL",
                id: 8423,
                context: "ChangeLogTrimmer",
                message: "The oldest changes could not be removed from the change log",
                attributes: doc! { "error": error.to_string().as_str() },
            });
        }
    }
}
