//! A step of a job: one run of a scheduled job or a part of a large one (`scheduled.rs`), or some
//! changes of a job on changes (`triggered.rs`). `owner.rs` makes the connection with the owner's
//! rights, `transaction.rs` commits effects and position together, `spill.rs` divides large results.

mod owner;
mod scheduled;
mod spill;
mod transaction;
mod triggered;

pub use spill::{drop_left_results, drop_results};

use super::definition::{Definition, When};
use super::table::{self, Stored, find};
use crate::frame::job_kind::{StepContext, WholeStep};
use crate::frame::lane_name::{parts, shown};
use crate::frame::log::{LogLine, Severity};
use crate::frame::service::Service;
use quire_collections::{Job, JobId};
use quire_document::{Doc, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Durability};
use std::time::Instant;

/// A step while it runs.
struct Run<'r> {
    cx: &'r StepContext<'r>,
    definition: &'r Definition,
    /// The document of the definition. A step has no effect if another one is stored at its end.
    stored: Doc<'r>,
    /// The lane of the job's row.
    lane: u32,
    /// When the step must have ended.
    until: Instant,
}

/// Runs the next step of a job, and replaces `job` by its row after the step.
///
/// # Errors
/// Those of the run. Nothing of the failed attempt stays.
pub fn step(cx: &StepContext<'_>, job: &mut Job) -> Result<WholeStep> {
    let (key, lane) = parts(&job.id.name);
    let Some(Stored { definition, doc, rows }) = find(&cx.service.store, key)? else {
        return Ok(WholeStep::Gone);
    };
    let Some(row) = rows.into_iter().nth(lane as usize) else { return Ok(WholeStep::Gone) };
    *job = row;
    let until = Instant::now() + definition.plan.time_max;
    cx.interrupt.set_deadline(Some(until));
    let run = Run { cx, definition: &definition, stored: doc.as_doc(), lane, until };
    let ended = match &definition.plan.when {
        When::Schedule(schedule) => scheduled::step(&run, schedule, job),
        When::Changes(changes) => triggered::step(&run, changes, job),
    };
    match ended {
        Err(error) if error.code() == ErrorCode::UserNotFound => run.stop(job, error.message()),
        other => other,
    }
}

impl Run<'_> {
    /// Pauses the job, because it cannot go on. The reason stands in its definition and in the log.
    fn stop(&self, job: &Job, why: &str) -> Result<WholeStep> {
        let service = self.cx.service;
        let _writing = service.write_gate.enter(self.cx.interrupt)?;
        let durable = CommitOptions { durability: Durability::Synced, ..CommitOptions::default() };
        let (is_current, _) = service.store.write(&durable, self.cx.interrupt, |writer| {
            let is_current = table::is_current(writer, self.stored)?;
            if is_current {
                table::pause(writer, self.definition, Some(why))?;
            }
            Ok(is_current)
        })?;
        if !is_current {
            return Ok(WholeStep::Again);
        }
        service.log_job_stopped(&job.id, why);
        Ok(WholeStep::Gone)
    }

    /// Returns true if a failure of this attempt is the last one.
    fn is_last_attempt(&self) -> bool {
        self.cx.failures + 1 >= self.definition.plan.attempts
    }
}

impl Service {
    /// Logs that the server has paused a job.
    fn log_job_stopped(&self, id: &JobId, why: &str) {
        let reason = self.logged_values().text(why);
        let attributes = doc! { "job": (shown(&id.name).as_str()), "reason": reason };
        self.log_job(8425, "A job was paused, because it cannot go on", attributes);
    }

    /// Logs that a run, or an event, has failed too often.
    fn log_job_gave_up(&self, id: &JobId, error: &Error) {
        let error = self.logged_values().error(error);
        let attributes = doc! { "job": (shown(&id.name).as_str()), "error": (error.as_str()) };
        self.log_job(8426, "A run of a job was given up", attributes);
    }

    fn log_job(&self, id: u32, message: &str, attributes: DocBuf) {
        self.log().write(LogLine {
            severity: Severity::Error,
            component: "COMMAND",
            id,
            context: "UserJobs",
            message,
            attributes,
        });
    }
}

/// Returns the `let` of a run: `job`, and `event` for a change. The values are constants.
pub fn variables(
    definition: &Definition,
    due_ms: i64,
    runs: i64,
    event: Option<Doc<'_>>,
) -> DocBuf {
    let job = doc! { "name": (definition.name.as_str()), "due": Value::Date(due_ms), "run": runs };
    let mut variables = doc! { "job": { "$literal": &job } };
    if let Some(event) = event {
        variables.append("event", &doc! { "$literal": event });
    }
    variables
}

/// Returns the document of a run, or of an event, that was given up.
fn dead_letter(run: &Run<'_>, error: &Error, of: (&str, Value<'_>)) -> DocBuf {
    DocBuf::build(|letter| {
        letter.append("job", run.definition.name.as_str()).append(of.0, of.1);
        let mut shown = letter.document("error");
        shown.append("code", error.code().number()).append("message", error.message());
        shown.finish();
        letter.append("attempts", i64::from(run.cx.failures) + 1);
        letter.append("at", Value::Date(run.cx.service.wall_ms()));
    })
}

/// Returns the position with the fields of `changed` in place of its own.
pub fn with_fields(position: &DocBuf, changed: &DocBuf) -> DocBuf {
    DocBuf::build(|next| {
        for (name, value) in position.as_doc().fields() {
            if !changed.as_doc().contains(name) {
                next.append(name, value);
            }
        }
        for (name, value) in changed.as_doc().fields() {
            if !matches!(value, Value::Null) {
                next.append(name, value);
            }
        }
    })
}
