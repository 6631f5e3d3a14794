//! The interface for log lines. The server crate writes them; commands only create them.

use quire_document::DocBuf;

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
