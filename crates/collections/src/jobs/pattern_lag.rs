//! The work that patterns have left to the table of jobs: what `collStats` shows as their lag.

use quire_catalog::{Collection, Uuid};
use quire_document::Value;
use quire_error::Result;

use crate::Store;
use crate::ddl::PATTERN_BUILD;
use crate::rules::{DERIVED, Deferred};

/// The work that one pattern has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatternLag {
    /// The name of the pattern.
    pub pattern: String,
    /// The tasks that wait. The build counts as one.
    pub tasks: u64,
    /// When the oldest of them was added, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Why one of them has stopped, if one has. It is tried again from time to time.
    pub reason: Option<String>,
}

impl Store {
    /// Returns the work that the declared patterns of a collection have left, one entry for each.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn pattern_lag(&self, collection: &Collection) -> Result<Vec<PatternLag>> {
        let mut lags: Vec<PatternLag> = collection
            .patterns
            .declared
            .iter()
            .map(|pattern| PatternLag { pattern: pattern.name.clone(), ..PatternLag::default() })
            .collect();
        if lags.is_empty() {
            return Ok(lags);
        }
        for job in self.jobs(|_| {})? {
            let task = match job.id.kind.as_str() {
                DERIVED => Deferred::decode(job.parameters.as_doc()).ok().map(|found| found.task),
                PATTERN_BUILD => Some(job.parameters.clone()),
                _ => None,
            };
            let Some(task) = task else { continue };
            let owner = match task.get("owner").or_else(|| task.get("collection")) {
                Some(Value::Binary(owner)) => owner.bytes.try_into().ok().map(Uuid),
                _ => None,
            };
            let name = task.get("pattern").and_then(|name| name.as_str());
            let lag = lags.iter_mut().find(|lag| name == Some(&*lag.pattern));
            let Some(lag) = lag.filter(|_| owner == Some(collection.uuid)) else { continue };
            lag.tasks += 1;
            lag.since_ms = Some(lag.since_ms.map_or(job.created_ms, |ms| ms.min(job.created_ms)));
            let error = job.position.get("error").and_then(|error| error.as_str());
            lag.reason = lag.reason.take().or(error.map(str::to_owned));
        }
        Ok(lags)
    }
}
