//! The runner of jobs: one thread that runs a step of the job that has waited longest, then of the
//! next. It sleeps until a job is due or the bell rings.

use super::expiry::Passes;
use crate::frame::job_kind::{JobKind, StepContext};
use crate::frame::job_list::{StepEnd, Turn};
use crate::frame::log::{LogLine, Severity};
use crate::frame::service::{Service, now_ms};
use quire_collections::{Job, Stepped, reap_job};
use quire_document::DocBuf;
use quire_document::memory;
use quire_error::{Error, Result};
use quire_storage::Interrupt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval between two scans of the records of retryable writes. MongoDB:
/// `logicalSessionRefreshMillis`.
const RETRY_RECORDS_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The pause before the table is read again after an error.
const RELOAD_PAUSE: Duration = Duration::from_secs(1);

/// The state of the runner.
pub(super) struct Runner {
    pub service: Arc<Service>,
    kinds: Vec<&'static JobKind>,
    stop: Arc<Interrupt>,
    /// The rings of the bell that this thread has answered.
    answered: u64,
    /// When the table must be read again.
    reload: Option<Instant>,
    /// When the records of retryable writes are due.
    retry_records: Instant,
}

impl Runner {
    pub fn new(service: Arc<Service>, kinds: Vec<&'static JobKind>, stop: Arc<Interrupt>) -> Self {
        let now = Instant::now();
        let retry_records = now + RETRY_RECORDS_PAUSE;
        Runner { service, kinds, stop, answered: 0, reload: Some(now), retry_records }
    }

    /// Runs steps until the server stops.
    pub fn run(mut self) {
        let store = Arc::clone(&self.service.store);
        let bell = store.job_bell();
        bell.listen(&self.stop);
        let mut passes = Passes::new();
        while self.stop.check().is_ok() {
            let now = Instant::now();
            let rung = bell.rung();
            if rung != self.answered || self.reload.is_some_and(|due| due <= now) {
                self.answered = rung;
                self.load();
            }
            if self.retry_records <= now {
                self.retry_records = now + RETRY_RECORDS_PAUSE;
                self.offer(reap_job(now_ms()), false);
            }
            let look = passes.look(&self);
            if let Some(turn) = self.service.jobs.next(|kind| (kind.may_run)(&self.service)) {
                self.step(turn, &mut passes);
                continue;
            }
            let due = self.service.jobs.next_due(|kind| (kind.may_run)(&self.service));
            let next =
                [Some(self.retry_records), self.reload, look, due].into_iter().flatten().min();
            let pause = next.map(|next| next.saturating_duration_since(Instant::now()));
            let answered = self.answered;
            let _ = self.stop.wait(pause, || bell.rung() != answered);
        }
        bell.leave(&self.stop);
        self.service.jobs.clear();
    }

    /// Adds the jobs of the table to those under way. A job of a kind that this version does not know
    /// stays in the table.
    fn load(&mut self) {
        let jobs = self.service.store.jobs(|_| {});
        self.reload = jobs.is_err().then(|| Instant::now() + RELOAD_PAUSE);
        for job in jobs.unwrap_or_default() {
            self.offer(job, true);
        }
    }

    /// Adds a job to those under way.
    pub fn offer(&self, job: Job, is_stored: bool) {
        if let Some(kind) = self.kinds.iter().find(|kind| kind.name == job.id.kind) {
            self.service.jobs.offer(job, is_stored, kind, self.service.operations.next_id());
        }
    }

    /// Runs a step of a job.
    fn step(&self, turn: Turn, passes: &mut Passes) {
        // Waits while `fsync` blocks writes. An error means that the server stops.
        let Ok(_writing) = self.service.write_gate.enter(&self.stop) else { return };
        let began = Instant::now();
        let Turn { mut job, mut is_stored, kind, mut size, interrupt } = turn;
        // A block of users' writes may have begun since the job was chosen.
        if !(kind.may_run)(&self.service) {
            return self.service.jobs.end(&job.id, size, StepEnd::NotBegun);
        }
        let before = job.done;
        interrupt.set_deadline(Some(began + kind.step_time_max));
        if self.stop.check().is_err() {
            return;
        }
        let mut is_again = false;
        let work = || {
            self.service.store.step_job(&mut job, &mut is_stored, &interrupt, |writer, job| {
                if std::mem::replace(&mut is_again, true) {
                    size.lost();
                }
                let (service, interrupt) = (&self.service, &interrupt);
                (kind.step)(&StepContext { service, interrupt, rows_max: size.rows() }, writer, job)
            })
        };
        let ended = self.service.memory().within(|| {
            let ended = catch_unwind(AssertUnwindSafe(work));
            memory::release();
            ended
        });
        let ended: Result<Stepped> = ended.unwrap_or_else(|_| {
            self.service.metrics.internal_errors.add(1);
            Err(Error::internal("a step of a job panicked"))
        });
        // A step that the stop interrupted is not a failure of its job. One that committed counts.
        if ended.is_err() && self.stop.check().is_err() {
            return;
        }
        let (id, took) = (job.id.clone(), began.elapsed());
        let done = u64::try_from(job.done.saturating_sub(before)).unwrap_or(0);
        let end = match ended {
            Ok(Stepped::Goes) => StepEnd::Went { job, is_stored, done, took },
            Ok(Stepped::Ended | Stepped::Gone) => StepEnd::Ended { done },
            Err(error) => {
                self.log_failure(kind, &job, &error);
                StepEnd::Failed(error)
            }
        };
        (kind.count)(&self.service, done);
        self.service.jobs.end(&id, size, end);
        passes.stepped(&self.service, &id, done, took);
    }

    /// Logs why a step failed; it is tried again after a pause.
    fn log_failure(&self, kind: &JobKind, job: &Job, error: &Error) {
        let attributes = DocBuf::build(|writer| {
            writer.append("error", error.to_string().as_str());
            writer.append("namespace", (kind.namespace)(&self.service, job).as_str());
            writer.append("kind", job.id.kind.as_str()).append("job", job.id.name.as_str());
        });
        self.service.log().write(LogLine {
            severity: Severity::Error,
            component: "INDEX",
            id: 5400703,
            context: kind.thread,
            message: "Error running a job",
            attributes,
        });
    }
}
