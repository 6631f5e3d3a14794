//! The row of a kind of jobs: what a step does, and how jobs of the kind are shown. The table of the
//! server's kinds is in `jobs/kinds.rs`.

use crate::frame::executions::interrupt_check;
use crate::frame::service::Service;
use quire_collections::{Attempt, Job, Progress, Writer};
use quire_document::ArrayBuf;
use quire_error::Result;
use quire_executor::{BatchLimits, OpenViews, open};
use quire_mql::context::interruptible;
use quire_planner::{AggregateRequest, ReadRequest, on_view};
use quire_storage::{Interrupt, Version, Watched};
use std::sync::Arc;
use std::time::Duration;

/// A kind of jobs.
pub struct JobKind {
    /// The name in the table of jobs.
    pub name: &'static str,
    /// One sentence that says what its jobs do.
    pub summary: &'static str,
    /// The name in log lines and in `currentOp`, as of a thread.
    pub thread: &'static str,
    /// The kind of operation that `currentOp` shows.
    pub op: &'static str,
    /// How long a step may take. A step that waits longer fails, and is tried again later.
    pub step_time_max: Duration,
    /// Returns true if jobs of the kind may run now.
    pub may_run: fn(&Service) -> bool,
    /// Returns the namespace that a job works on; empty if there is none.
    pub namespace: fn(&Service, &Job) -> String,
    /// What a step does.
    pub work: Work,
    /// Counts the work of a step that was committed.
    pub count: fn(&Service, u64),
}

/// The work of a step.
#[derive(Clone, Copy)]
pub enum Work {
    /// The next piece of work, in the step's transaction. It runs again after a conflict.
    Step(fn(&StepContext<'_>, &mut Writer, &Job) -> Attempt<Progress>),
    /// Work that commits by itself, in one commit with the job's row, which it replaces. It can take
    /// long, so that it runs on threads of its own.
    Whole(fn(&StepContext<'_>, &mut Job) -> Result<WholeStep>),
}

/// The durable commits that a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// The last version that it has seen.
    pub past: Version,
    pub watched: Watched,
}

/// What became of a job in a step that commits by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeStep {
    /// The job goes on when it is due.
    Goes,
    /// The job waits for commits.
    Waits(Awaited),
    /// The row was changed meanwhile. The step had no effect, and another one follows.
    Again,
    /// The table does not have the job any more.
    Gone,
}

impl JobKind {
    /// Returns true if steps of the kind run on threads of their own.
    pub fn is_whole(&self) -> bool {
        matches!(self.work, Work::Whole(_))
    }
}

/// What a step has besides its writer and its job.
pub struct StepContext<'s> {
    /// The server whose data the step changes.
    pub service: &'s Arc<Service>,
    /// Ends the step early.
    pub interrupt: &'s Arc<Interrupt>,
    /// The largest number of documents that the step should write. Smaller after conflicts and after
    /// steps that took long.
    pub rows_max: usize,
    /// The number of failed attempts before this one.
    pub failures: u32,
}

impl StepContext<'_> {
    /// Runs a pipeline on the state that the step's writer sees, and returns its first documents, as
    /// many as `limits` allow. The namespace may be a view. The pipeline needs no connection.
    ///
    /// # Errors
    /// The errors of the pipeline and of an interrupt.
    pub fn aggregate(
        &self,
        writer: &Writer,
        request: &AggregateRequest,
        limits: BatchLimits,
    ) -> Result<ArrayBuf> {
        let check = interrupt_check(self.interrupt);
        interruptible(&check, || {
            let mut views = OpenViews::Pinned(writer.view());
            let view = writer.catalog().resolve(&request.namespace)?;
            let request = ReadRequest::Aggregate(request);
            let resolved = view.map(|view| on_view(&request, &view)).transpose()?;
            let request = resolved.as_ref().map_or(request, ReadRequest::Aggregate);
            let params = self.service.exec_params(self.interrupt, self.service.read_clock());
            let mut execution = open(request, &views, params)?;
            let mut ended = Ok(());
            let rows = ArrayBuf::build(|out| {
                let batch = execution.next_batch(&mut views, self.interrupt, limits, out);
                ended = batch.map(|_| ());
            });
            ended.map(|()| rows)
        })
    }
}
