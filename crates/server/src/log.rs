//! The log, to a stream, a file or syslog: one JSON object on each line, in mongod's format, or lines for
//! people who read them on a terminal.

mod json;
mod plain;
mod syslog;

pub use self::syslog::{Syslog, SyslogFacility};

use crate::clients::lock;
use quire_commands::log::{LogLine, LogSink, Severity};
use quire_document::DocBuf;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of lines that `getLog` shows.
const RECENT_MAX: usize = 1024;

/// The most files that are renamed in one second. Each of them stays on the disk.
const SET_ASIDE_A_SECOND_MAX: u32 = 10;

/// The destination of log lines.
pub enum Output {
    /// The standard output, which launchers of mongod read.
    Stdout,
    /// The standard error.
    Stderr,
    /// A file and its path.
    File(File, PathBuf),
    /// The syslog daemon of this machine.
    Syslog(Box<Syslog>),
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// mongod's JSON, for programs.
    Json,
    /// Time, severity, component, message and attributes, for people.
    Plain,
}

/// A log that keeps its newest lines in memory, as JSON.
pub struct ServerLog {
    output: Mutex<Output>,
    format: LineFormat,
    recent: Mutex<VecDeque<String>>,
    warnings: Mutex<Vec<String>>,
    starting: AtomicBool,
    written: AtomicU64,
    /// True if a rotation only opens the file again, because another program has renamed it.
    reopening: bool,
}

impl Output {
    /// Opens a log file: appends to it, or renames an existing file to one with the time in its
    /// name, as mongod does without `--logappend`.
    ///
    /// # Errors
    /// The errors of the file operations.
    pub fn file(path: &Path, append: bool) -> io::Result<Output> {
        if !append && path.exists() {
            set_aside(path)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Output::File(file, path.to_owned()))
    }
}

impl ServerLog {
    /// Returns an empty log.
    pub fn new(output: Output, format: LineFormat) -> ServerLog {
        ServerLog {
            output: Mutex::new(output),
            format,
            recent: Mutex::new(VecDeque::new()),
            warnings: Mutex::new(Vec::new()),
            starting: AtomicBool::new(true),
            written: AtomicU64::new(0),
            reopening: false,
        }
    }

    /// Returns the log with a rotation that only opens the file again.
    #[must_use]
    pub fn reopening(self, reopening: bool) -> ServerLog {
        ServerLog { reopening, ..self }
    }

    /// Returns true if the lines are those for people on the standard error.
    pub fn is_for_people(&self) -> bool {
        self.format == LineFormat::Plain && matches!(*lock(&self.output), Output::Stderr)
    }

    /// Notes the end of the start: later warnings are not startup warnings.
    pub fn started(&self) {
        self.starting.store(false, Ordering::Relaxed);
    }

    /// Writes a line of the start or the end of the process.
    pub fn control(&self, severity: Severity, id: u32, message: &str, attributes: DocBuf) {
        let context = "initandlisten";
        self.write(LogLine { severity, component: "CONTROL", id, context, message, attributes });
    }
}

impl LogSink for ServerLog {
    fn write(&self, line: LogLine<'_>) {
        let warns = line.severity == Severity::Warning && self.starting.load(Ordering::Relaxed);
        let now_ms = now_ms();
        let text = json::line(&line, warns, now_ms);
        let mut shown = match self.format {
            LineFormat::Json => text.clone(),
            LineFormat::Plain => plain::line(&line, now_ms),
        };
        let output = &mut *lock(&self.output);
        if !matches!(output, Output::Syslog(_)) {
            shown.push('\n');
        }
        // A full disk or a closed stream must not stop the server.
        let _ = match output {
            Output::Stdout => io::stdout().lock().write_all(shown.as_bytes()),
            Output::Stderr => io::stderr().lock().write_all(shown.as_bytes()),
            Output::File(file, _) => file.write_all(shown.as_bytes()),
            Output::Syslog(syslog) => {
                syslog.write(line.severity, &shown);
                Ok(())
            }
        };
        self.written.fetch_add(1, Ordering::Relaxed);
        if warns {
            lock(&self.warnings).push(text.clone());
        }
        let mut recent = lock(&self.recent);
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(text);
    }

    fn lines_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn recent(&self) -> Vec<String> {
        lock(&self.recent).iter().cloned().collect()
    }

    fn startup_warnings(&self) -> Vec<String> {
        lock(&self.warnings).clone()
    }

    fn rotate(&self) -> io::Result<()> {
        let mut output = lock(&self.output);
        if let Output::File(file, path) = &mut *output {
            if !self.reopening {
                set_aside(path)?;
            }
            *file = OpenOptions::new().create(true).append(true).open(&*path)?;
        }
        Ok(())
    }
}

/// Renames a log file to one with the time in its name, and returns the new path. Fails with `AlreadyExists`
/// if that was done [`SET_ASIDE_A_SECOND_MAX`] times in this second: clients may ask for it.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", json::time(now_ms()).get(..19).unwrap_or_default().replace(':', "-")));
    let mut target = PathBuf::from(&name);
    let mut attempt = 1;
    while target.exists() {
        let mut numbered = name.clone();
        numbered.push(format!(".{attempt}"));
        target = PathBuf::from(numbered);
        if attempt == SET_ASIDE_A_SECOND_MAX {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        attempt += 1;
    }
    std::fs::rename(path, &target)?;
    Ok(target)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each `logRotate` left a file, as fast as clients asked for it.
    #[test]
    fn rotation_keeps_few_files_for_each_second() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("log");
        let mut refused = 0;
        let begun = now_ms() / 1000;
        for _ in 0..100 {
            std::fs::write(&path, "line")?;
            refused += u32::from(set_aside(&path).is_err());
        }
        let seconds = u32::try_from(now_ms() / 1000 - begun + 1).unwrap_or(u32::MAX);
        let kept = std::fs::read_dir(directory.path())?.count() as u32;
        assert!(
            refused >= 100_u32.saturating_sub(seconds * SET_ASIDE_A_SECOND_MAX),
            "{refused} in {seconds} s"
        );
        assert!(kept <= seconds * SET_ASIDE_A_SECOND_MAX + 1, "{kept} in {seconds} s");
        Ok(())
    }
}
