//! What the rules of a collection have to write after the commit that caused it
//! (`rules/deferred.rs`): each step does as much as the budget of a commit allows. What is left is
//! another job, which the same commit adds.

use super::step::Progress;
use crate::Writer;
use crate::failure::Attempt;
use crate::job::Job;
use crate::rules::Deferred;

/// Runs the task of a job of the kind `derived`.
///
/// # Errors
/// Those of the rule; `DataCorruptionDetected` for a job without a task.
pub fn derive_step(writer: &mut Writer, job: &Job) -> Attempt<Progress> {
    let deferred = Deferred::decode(job.parameters.as_doc())?;
    writer.run_deferred(&deferred)?;
    Ok(Progress::end(1))
}
