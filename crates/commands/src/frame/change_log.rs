//! The change log of a service: whether there is one, and how much of the past it keeps.

use crate::frame::log::{LogLine, Severity};
use crate::frame::service::{Service, now_ms};
use quire_collections::{ChangeLogMode, LogWindow, Store};
use quire_document::doc;
use quire_error::Result;
use quire_storage::{CommitOptions, Interrupt};
use std::sync::{Arc, Mutex, PoisonError};

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

/// The name of the stored setting.
const SETTING: &str = "changeLog";

/// How much of the past the log keeps, as `replSetResizeOplog` set it, else as the server was
/// started.
pub struct ChangeLogSize(Mutex<LogSize>);

/// The two bounds of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSize {
    /// The size of the log in bytes beyond which its oldest changes go.
    pub bytes_max: u64,
    /// Changes younger than this stay, in milliseconds.
    pub age_min_ms: u64,
}

impl ChangeLogSize {
    /// Reads the stored bounds. A bound that was never set is that of `options`.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn load(store: &Arc<Store>, options: &ChangeLogOptions) -> Result<Self> {
        let stored = store.setting(SETTING)?;
        let number = |name: &str, default| {
            let number = stored.as_ref().and_then(|stored| stored.get(name)?.exact_i64());
            number.and_then(|number| u64::try_from(number).ok()).unwrap_or(default)
        };
        let bytes_max = number("bytesMax", options.bytes_max);
        let age_min_ms = number("ageMinMillis", options.age_min_ms);
        Ok(ChangeLogSize(Mutex::new(LogSize { bytes_max, age_min_ms })))
    }

    /// Returns the bounds.
    pub fn get(&self) -> LogSize {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the bounds, durably.
    ///
    /// # Errors
    /// The errors of the commit.
    pub fn set(&self, store: &Arc<Store>, size: LogSize) -> Result<()> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let LogSize { bytes_max, age_min_ms } = size;
        let stored = doc! { "bytesMax": number(bytes_max), "ageMinMillis": number(age_min_ms) };
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        store.put_setting(SETTING, stored.as_doc(), CommitOptions::synced())?;
        *current = size;
        Ok(())
    }
}

impl Service {
    /// Removes changes that are older than the log keeps them, or too many.
    pub(crate) fn trim_change_log(&self, stop: &Arc<Interrupt>) {
        let LogSize { bytes_max, age_min_ms } = self.change_log_size.get();
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
