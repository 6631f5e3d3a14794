//! Samples `serverStatus` into the history on disk, while `diagnosticDataCollectionEnabled` is true.

use crate::frame::history::{History, HistoryBounds};
use crate::frame::log::{Alarm, AlarmPhase, LogLine, Severity};
use crate::frame::parameters::table::{HISTORY_ENABLED, HISTORY_MEGABYTES, HISTORY_PERIOD_MS};
use crate::frame::service::Service;
use quire_document::DocBuf;
use quire_storage::Interrupt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The longest pause between two looks at the parameters.
const LOOK: Duration = Duration::from_secs(1);

/// Samples until `stop`. While the disk is short of space nothing is written, so that the data have
/// what is left.
pub(super) fn sample(service: &Service, folder: PathBuf, stop: &Interrupt) {
    let (mut history, mut alarm) = (History::new(folder), Alarm::default());
    let mut last: Option<Instant> = None;
    loop {
        let number = |name| u64::try_from(service.parameters.number(name)).unwrap_or(0);
        let period = Duration::from_millis(number(HISTORY_PERIOD_MS));
        let due = last.is_none_or(|last| last.elapsed() >= period);
        let on = service.parameters.flag(HISTORY_ENABLED);
        if due && on && !service.engine.stats().is_short_of_space {
            last = Some(Instant::now());
            let bounds = HistoryBounds::of_megabytes(number(HISTORY_MEGABYTES));
            let failure = history.append(&service.status(), bounds).err();
            let phase = alarm.look(failure.is_some(), Instant::now());
            tell(service, phase, failure.map(|error| error.to_string()));
        }
        let next = last.map_or(LOOK, |last| period.saturating_sub(last.elapsed()));
        if stop.wait(Some(next.min(LOOK)), || false).is_err() {
            return;
        }
    }
}

/// Logs that samples cannot be written, and that they can be written again.
fn tell(service: &Service, phase: Option<AlarmPhase>, error: Option<String>) {
    let (severity, message) = match phase {
        None => return,
        Some(AlarmPhase::Ends) => (Severity::Info, "The history of serverStatus goes on"),
        Some(_) => (Severity::Warning, "The history of serverStatus could not be written"),
    };
    service.log().write(LogLine {
        severity,
        component: "CONTROL",
        id: 20631,
        context: "history",
        message,
        attributes: DocBuf::build(|out| {
            if let Some(error) = &error {
                out.append("error", error.as_str());
            }
        }),
    });
}
