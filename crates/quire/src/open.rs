//! The options with which a database is opened.

use quire_commands::log::LogSink;
use std::sync::Arc;

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
}
