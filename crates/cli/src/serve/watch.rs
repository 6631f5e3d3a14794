//! The checks of the main thread while the server runs: whether the engine has failed, whether the
//! disk is nearly full, and whether requests are refused for a reason that an operator must act on.

use quire_commands::log::{Alarm, AlarmPhase, LogLine, LogSink, RefusalAlarm, Severity};
use quire_commands::service::Refusals;
use quire_document::{DocBuf, doc};
use quire_server::log::ServerLog;
use quire_storage::{Engine, StorageError};
use std::time::{Duration, Instant};

/// The interval of the checks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The conditions that the log tells.
#[derive(Default)]
pub(crate) struct Watch {
    disk: Alarm,
    memory: RefusalAlarm,
    clock: RefusalAlarm,
}

/// The texts of a condition: as it begins, while it lasts, and as it ends.
type Texts = [&'static str; 3];

const DISK: Texts = [
    "The disk is nearly full, writes of new data are refused",
    "The disk is still nearly full, writes of new data are refused",
    "There is space on the disk again, writes are accepted",
];
const MEMORY: Texts = [
    "Requests are refused because the memory of all requests together is exhausted",
    "Requests are still refused because the memory of all requests together is exhausted",
    "No request was refused for want of memory for a minute",
];
const CLOCK: Texts = [
    "Requests are refused because their cluster time is far ahead of the wall clock of this machine",
    "Requests are still refused because their cluster time is far ahead of the wall clock",
    "No request was refused for its cluster time for a minute",
];

impl Watch {
    /// Checks once, and logs changes.
    ///
    /// # Errors
    /// The failure of the engine: it accepts no more writes, and the process should end.
    pub fn look(
        &mut self,
        engine: &dyn Engine,
        refusals: Refusals,
        log: &ServerLog,
    ) -> Result<(), StorageError> {
        if let Err(error) = engine.health() {
            let attributes = doc! { "error": error.to_string().as_str() };
            let text = "The storage engine has failed and accepts no more writes";
            log.write(line(Severity::Fatal, 23089, text, attributes));
            return Err(error);
        }
        let (stats, now) = (engine.stats(), Instant::now());
        let attributes = doc! { "usedBytes": (stats.disk_bytes as i64) };
        tell(log, 3, &DISK, self.disk.look(stats.is_short_of_space, now), attributes);
        let Refusals { memory, clock } = refusals;
        let attributes = doc! { "refused": (memory as i64) };
        tell(log, 4, &MEMORY, self.memory.look(memory, now), attributes);
        let attributes = doc! { "refused": (clock as i64) };
        tell(log, 5, &CLOCK, self.clock.look(clock, now), attributes);
        Ok(())
    }
}

/// Writes the line of a condition, if there is one to write.
fn tell(log: &ServerLog, id: u32, texts: &Texts, phase: Option<AlarmPhase>, attributes: DocBuf) {
    let [begins, lasts, ends] = *texts;
    let (severity, text) = match phase {
        None => return,
        Some(AlarmPhase::Begins) => (Severity::Warning, begins),
        Some(AlarmPhase::Lasts) => (Severity::Warning, lasts),
        Some(AlarmPhase::Ends) => (Severity::Info, ends),
    };
    log.write(line(severity, id, text, attributes));
}

fn line(severity: Severity, id: u32, message: &str, attributes: DocBuf) -> LogLine<'_> {
    LogLine { severity, component: "STORAGE", id, context: "watch", message, attributes }
}
