//! What the rules of a collection have to write after the commit that caused it
//! (`rules/deferred.rs`): each step does as much as the budget of a commit allows. What is left is
//! another job, which the same commit adds. A task that a document's contents stop waits, with its
//! reason, and is tried again.

use quire_document::doc;

use super::build_pattern::is_permanent;
use super::step::{Progress, Rest};
use crate::Writer;
use crate::failure::{Attempt, Failure};
use crate::job::Job;
use crate::rules::Deferred;

/// The wait before a stopped task is tried again.
const STOPPED_MS: i64 = 60_000;

/// Runs the task of a job of the kind `derived`.
///
/// # Errors
/// Those of the rule; `DataCorruptionDetected` for a job without a task.
pub fn derive_step(writer: &mut Writer, job: &Job) -> Attempt<Progress> {
    let deferred = Deferred::decode(job.parameters.as_doc())?;
    match writer.run_deferred(&deferred) {
        Ok(()) => Ok(Progress::end(1)),
        Err(Failure::Error(error)) if is_permanent(&error) => {
            let now_ms = i64::try_from(writer.now_ms()).unwrap_or(0);
            let text = error.to_string();
            let position = doc! { "error": text.as_str() };
            let rest = Rest::Until(now_ms.saturating_add(STOPPED_MS));
            Ok(Progress { position, done: 0, rest })
        }
        Err(failure) => Err(failure),
    }
}
