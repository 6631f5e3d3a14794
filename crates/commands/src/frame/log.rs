//! The interface for log lines. The server crate writes them; commands only create them.

use quire_document::DocBuf;
use std::time::{Duration, Instant};

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The process cannot continue.
    Fatal,
    /// An unexpected failure.
    Error,
    /// Something that an operator should check.
    Warning,
    /// Information without a problem.
    Info,
}

/// One structured line, in the shape of mongod's log.
pub struct LogLine<'a> {
    /// The severity of the line.
    pub severity: Severity,
    /// MongoDB's component name: `COMMAND`, `NETWORK`, `STORAGE`, `CONTROL`, ...
    pub component: &'static str,
    /// A number that identifies the message.
    pub id: u32,
    /// The thread or connection that writes: `conn12`.
    pub context: &'a str,
    /// The text, which is the same for every line of its kind.
    pub message: &'a str,
    /// The details, which differ from line to line.
    pub attributes: DocBuf,
}

/// Receives log lines, and keeps the newest ones for `getLog`.
pub trait LogSink: Send + Sync {
    /// Writes a line.
    fn write(&self, line: LogLine<'_>);
    /// Returns the number of lines written since the start.
    fn lines_written(&self) -> u64;
    /// Returns the newest lines of `global`, oldest first, as JSON text.
    fn recent(&self) -> Vec<String>;
    /// Returns the warnings of the start, oldest first, as JSON text.
    fn startup_warnings(&self) -> Vec<String>;
    /// Closes the log file and opens a new one under the same name.
    fn rotate(&self) -> std::io::Result<()>;
}

/// Discards all lines: for tests and embedded use.
pub struct NoLog;

impl LogSink for NoLog {
    fn write(&self, _line: LogLine<'_>) {}
    fn lines_written(&self) -> u64 {
        0
    }
    fn recent(&self) -> Vec<String> {
        Vec::new()
    }
    fn startup_warnings(&self) -> Vec<String> {
        Vec::new()
    }
    fn rotate(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How often the log repeats that a condition lasts.
const REPEAT: Duration = Duration::from_secs(60);

/// A condition that an operator must act on. The log tells when it begins, each minute while it
/// lasts, and when it ends.
#[derive(Debug, Default)]
pub struct Alarm {
    /// When the log told it last; `None` while the condition does not hold.
    told: Option<Instant>,
}

/// What the log tells of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmPhase {
    /// It has begun.
    Begins,
    /// It still holds, a minute after the last line.
    Lasts,
    /// It has ended.
    Ends,
}

impl Alarm {
    /// Notes whether the condition holds `now`. Returns what to log, if anything.
    pub fn look(&mut self, holds: bool, now: Instant) -> Option<AlarmPhase> {
        let phase = match (self.told, holds) {
            (None, true) => AlarmPhase::Begins,
            (Some(told), true) if now.saturating_duration_since(told) >= REPEAT => {
                AlarmPhase::Lasts
            }
            (Some(_), false) => AlarmPhase::Ends,
            _ => return None,
        };
        self.told = holds.then_some(now);
        Some(phase)
    }
}

/// Refusals that an operator must act on. They last as long as less than a minute lies between two
/// of them.
#[derive(Debug, Default)]
pub struct RefusalAlarm {
    alarm: Alarm,
    count: u64,
    last: Option<Instant>,
}

impl RefusalAlarm {
    /// Notes the number of refusals so far. Returns what to log, if anything.
    pub fn look(&mut self, count: u64, now: Instant) -> Option<AlarmPhase> {
        if count > self.count {
            (self.count, self.last) = (count, Some(now));
        }
        let goes_on = |last| now.saturating_duration_since(last) < REPEAT;
        self.alarm.look(self.last.is_some_and(goes_on), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AlarmPhase::{Begins, Ends, Lasts};

    #[test]
    fn a_condition_is_told_when_it_begins_each_minute_and_when_it_ends() {
        let (mut alarm, begun) = (Alarm::default(), Instant::now());
        let steps = [
            (0, false, None),
            (1, true, Some(Begins)),
            (2, true, None),
            (60, true, None),
            (61, true, Some(Lasts)),
            (62, true, None),
            (130, true, Some(Lasts)),
            (131, false, Some(Ends)),
            (132, false, None),
            (133, true, Some(Begins)),
        ];
        for (second, holds, told) in steps {
            let now = begun + Duration::from_secs(second);
            assert_eq!(alarm.look(holds, now), told, "{second}");
        }
    }

    #[test]
    fn refusals_end_after_a_minute_without_one() {
        let (mut alarm, begun) = (RefusalAlarm::default(), Instant::now());
        let steps = [
            (0, 0, None),
            (1, 5, Some(Begins)),
            (2, 5, None),
            (30, 90, None),
            (62, 90, Some(Lasts)),
            (89, 90, None),
            (90, 90, Some(Ends)),
            (200, 91, Some(Begins)),
        ];
        for (second, count, told) in steps {
            let now = begun + Duration::from_secs(second);
            assert_eq!(alarm.look(count, now), told, "{second}");
        }
    }
}
