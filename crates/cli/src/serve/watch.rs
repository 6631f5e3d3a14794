//! The checks of the main thread while the server runs: whether the engine has failed, and whether
//! the disk is nearly full.

use quire_commands::log::{LogLine, LogSink, Severity};
use quire_document::{DocBuf, doc};
use quire_server::log::ServerLog;
use quire_storage::{Engine, StorageError};
use std::time::Duration;

/// The interval of the checks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state at the last check.
#[derive(Default)]
pub(crate) struct Watch {
    was_short_of_space: bool,
}

impl Watch {
    /// Checks once, and logs changes.
    ///
    /// # Errors
    /// The failure of the engine: it accepts no more writes, and the process should end.
    pub fn look(&mut self, engine: &dyn Engine, log: &ServerLog) -> Result<(), StorageError> {
        if let Err(error) = engine.health() {
            let attributes = doc! { "error": error.to_string().as_str() };
            let text = "The storage engine has failed and accepts no more writes";
            log.write(line(Severity::Fatal, 23089, text, attributes));
            return Err(error);
        }
        let stats = engine.stats();
        if stats.is_short_of_space != self.was_short_of_space {
            self.was_short_of_space = stats.is_short_of_space;
            let (severity, text) = match stats.is_short_of_space {
                true => {
                    (Severity::Warning, "The disk is nearly full, writes of new data are refused")
                }
                false => (Severity::Info, "There is space on the disk again, writes are accepted"),
            };
            let attributes = doc! { "usedBytes": (stats.disk_bytes as i64) };
            log.write(line(severity, 3, text, attributes));
        }
        Ok(())
    }
}

fn line(severity: Severity, id: u32, message: &str, attributes: DocBuf) -> LogLine<'_> {
    LogLine { severity, component: "STORAGE", id, context: "watch", message, attributes }
}
