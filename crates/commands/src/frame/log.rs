//! Where log lines go. The server crate writes them; commands only describe them.

use quire_document::DocBuf;

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The process cannot go on.
    Fatal,
    /// Something failed that should not.
    Error,
    /// An operator should look at it.
    Warning,
    /// Tells what happened; nothing is wrong.
    Info,
}

/// One structured line, in the shape of mongod's log.
pub struct LogLine<'a> {
    /// How important it is.
    pub severity: Severity,
    /// MongoDB's component name: `COMMAND`, `NETWORK`, `STORAGE`, `CONTROL`, ...
    pub component: &'static str,
    /// A number that identifies the message.
    pub id: u32,
    /// Which thread or connection speaks: `conn12`.
    pub context: &'a str,
    /// The text, which is the same for every line of its kind.
    pub message: &'a str,
    /// The details that differ from line to line.
    pub attributes: DocBuf,
}

/// Takes log lines and remembers the newest ones for `getLog`.
pub trait LogSink: Send + Sync {
    /// Writes a line.
    fn write(&self, line: LogLine<'_>);
    /// Lines written since the start.
    fn lines_written(&self) -> u64;
    /// Returns the newest lines of `global`, oldest first, as JSON text.
    fn recent(&self) -> Vec<String>;
    /// Returns the warnings of the start, oldest first, as JSON text.
    fn startup_warnings(&self) -> Vec<String>;
    /// Closes the log file and opens a new one under the same name.
    fn rotate(&self) -> std::io::Result<()>;
}

/// Forgets everything: for tests and embedded use.
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
