//! The options with which a database is opened.

use quire_commands::log::LogSink;
use quire_commands::{ChangeLogMode, ChangeLogOptions};
use std::sync::Arc;
use std::time::Duration;

/// The size of a change log unless another one is set.
const LOG_BYTES: u64 = 1 << 30;
const LOG_BYTES_IN_MEMORY: u64 = 128 << 20;

/// The options of [`Client::open`](crate::Client::open); the defaults are those of `quire serve`.
///
/// ```
/// # fn main() -> quire::error::Result<()> {
/// let client = quire::OpenOptions::new().parameter("ttlMonitorSleepSecs", "1").in_memory()?;
/// # client.shutdown().run()
/// # }
/// ```
#[derive(Clone, Default)]
pub struct OpenOptions {
    pub(crate) cache_bytes: Option<u64>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) log: Option<Arc<dyn LogSink>>,
    pub(crate) change_log: ChangeLog,
}

/// What was asked for of the change log.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChangeLog {
    is_on: Option<bool>,
    bytes: Option<u64>,
    age_min: Duration,
}

impl ChangeLog {
    /// Returns the options of a log on disk, or of one in memory.
    pub(crate) fn bounds(self, on_disk: bool) -> ChangeLogOptions {
        let mode = match self.is_on {
            Some(true) => ChangeLogMode::On,
            Some(false) => ChangeLogMode::Off,
            None => ChangeLogMode::AsFound,
        };
        let bytes = if on_disk { LOG_BYTES } else { LOG_BYTES_IN_MEMORY };
        let age_min_ms = u64::try_from(self.age_min.as_millis()).unwrap_or(u64::MAX);
        ChangeLogOptions { mode, bytes_max: self.bytes.unwrap_or(bytes), age_min_ms }
    }
}

impl OpenOptions {
    /// Returns the default options.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// The largest size of the block cache, in bytes. It grows with the data that is read. Default:
    /// 256 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> OpenOptions {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Sets a server parameter, as `--setParameter name=value` does.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> OpenOptions {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Sets the destination of log lines, such as slow commands. By default they are dropped.
    #[must_use]
    pub fn log(mut self, log: Arc<dyn LogSink>) -> OpenOptions {
        self.log = Some(log);
        self
    }

    /// True to log changes, for [`watch`](crate::Collection::watch) and for jobs on changes; false to
    /// remove the log of the directory. By default a directory that has a log keeps it, and no log is begun.
    #[must_use]
    pub fn change_log(mut self, is_on: bool) -> OpenOptions {
        self.change_log.is_on = Some(is_on);
        self
    }

    /// The size of the change log beyond which its oldest changes go. Changes go after a day in any case,
    /// unless they are to be [kept longer](OpenOptions::change_log_retention). Default: 1 GiB, and 128 MiB in memory.
    #[must_use]
    pub fn change_log_bytes(mut self, bytes: u64) -> OpenOptions {
        self.change_log.bytes = Some(bytes);
        self
    }

    /// The age up to which changes stay, whatever the size of the log.
    #[must_use]
    pub fn change_log_retention(mut self, age: Duration) -> OpenOptions {
        self.change_log.age_min = age;
        self
    }
}
