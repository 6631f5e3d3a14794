//! Lines of the log to the syslog daemon of this machine (`--syslog`).
//!
//! The daemon's socket never blocks the server: a line that it does not accept at once is lost and
//! counted. After the daemon was started again, the next line connects again.

use quire_commands::log::Severity;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use syslog::{Facility, Formatter3164, Logger, LoggerBackend};

/// The sockets of syslog daemons, in the order in which they are tried.
const SOCKETS: [&str; 3] = ["/dev/log", "/var/run/syslog", "/var/run/log"];

/// A connection to the daemon.
pub struct Syslog {
    path: PathBuf,
    logger: Logger<LoggerBackend, Formatter3164>,
    lost: u64,
}

/// The kind of program that a line comes from, to the daemon.
#[derive(Clone, Copy, Debug)]
pub struct SyslogFacility(Facility);

impl SyslogFacility {
    /// Returns the facility of a name, such as `user`, `daemon` or `local0`.
    pub fn parse(name: &str) -> Option<SyslogFacility> {
        Facility::from_str(name).ok().map(SyslogFacility)
    }
}

impl Default for SyslogFacility {
    fn default() -> Self {
        SyslogFacility(Facility::LOG_USER)
    }
}

impl Syslog {
    /// Connects to the daemon of this machine. Lines carry the name `program`.
    ///
    /// # Errors
    /// The error of the connection; `NotFound` if no daemon has a socket.
    pub fn connect(program: &str, facility: SyslogFacility) -> io::Result<Syslog> {
        let path = SOCKETS.iter().map(Path::new).find(|path| path.exists());
        let path = path.ok_or(io::ErrorKind::NotFound)?;
        Syslog::connect_to(path, program, facility)
    }

    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// The error of the connection.
    pub fn connect_to(path: &Path, program: &str, facility: SyslogFacility) -> io::Result<Syslog> {
        let formatter = Formatter3164 {
            facility: facility.0,
            hostname: None,
            process: program.to_owned(),
            pid: std::process::id(),
        };
        let logger = open(path, formatter)?;
        Ok(Syslog { path: path.to_owned(), logger, lost: 0 })
    }

    /// Sends a line. If it is refused, connects again and tries once more.
    pub(super) fn write(&mut self, severity: Severity, line: &str) {
        if self.send(severity, line).is_ok() {
            return;
        }
        let again =
            open(&self.path, self.logger.formatter.clone()).map(|logger| self.logger = logger);
        if again.is_err() || self.send(severity, line).is_err() {
            self.lost += 1;
        }
    }

    /// Sends a line, and before it how many were lost.
    fn send(&mut self, severity: Severity, line: &str) -> Result<(), syslog::Error> {
        if self.lost > 0 {
            self.logger.warning(format!("{} lines before this one were lost", self.lost))?;
            self.lost = 0;
        }
        match severity {
            Severity::Fatal => self.logger.crit(line),
            Severity::Error => self.logger.err(line),
            Severity::Warning => self.logger.warning(line),
            Severity::Info => self.logger.info(line),
        }
    }
}

/// Opens a connection on which no write waits.
fn open(path: &Path, formatter: Formatter3164) -> io::Result<Logger<LoggerBackend, Formatter3164>> {
    let logger = syslog::unix_custom(formatter, path).map_err(io::Error::other)?;
    match &logger.backend {
        LoggerBackend::Unix(socket) => socket.set_nonblocking(true)?,
        LoggerBackend::UnixStream(socket) => socket.get_ref().set_nonblocking(true)?,
        _ => {}
    }
    Ok(logger)
}

#[cfg(test)]
mod tests {
    use super::super::{LineFormat, Output, ServerLog};
    use super::*;
    use quire_commands::log::{LogLine, LogSink};
    use quire_document::doc;
    use std::os::unix::net::UnixDatagram;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = vec![0; 1 << 16];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn write(log: &ServerLog, severity: Severity, message: &str) {
        let (component, context) = ("CONTROL", "test");
        let attributes = doc! { "n": 1 };
        log.write(LogLine { severity, component, id: 1, context, message, attributes });
    }

    #[test]
    fn lines_reach_the_daemon_also_after_it_was_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let facility = SyslogFacility::parse("local3").unwrap();
        let syslog = Syslog::connect_to(&path, "quire", facility).unwrap();
        let log = ServerLog::new(Output::Syslog(Box::new(syslog)), LineFormat::Plain);
        write(&log, Severity::Info, "first");
        let line = received(&daemon);
        // Facility 19, severity 6.
        assert!(line.starts_with("<158>"), "{line}");
        let sender = format!(" quire[{}]: ", std::process::id());
        assert!(line.contains(&sender) && line.ends_with("CONTROL  first  n=1"), "{line}");
        write(&log, Severity::Error, "second");
        assert!(received(&daemon).starts_with("<155>"));
        drop(daemon);
        std::fs::remove_file(&path).unwrap();
        write(&log, Severity::Info, "nobody listens");
        let daemon = UnixDatagram::bind(&path).unwrap();
        write(&log, Severity::Info, "third");
        assert!(received(&daemon).ends_with("1 lines before this one were lost"));
        assert!(received(&daemon).ends_with("third  n=1"));
        assert_eq!(log.lines_written(), 4);
    }

    /// A daemon that hangs must not stop the server.
    #[test]
    fn a_daemon_that_reads_nothing_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::connect_to(&path, "quire", SyslogFacility::default()).unwrap();
        let line = "x".repeat(1000);
        while syslog.lost == 0 {
            syslog.write(Severity::Info, &line);
        }
        assert!(received(&daemon).ends_with(&line));
        assert!(SyslogFacility::parse("nope").is_none());
    }
}
