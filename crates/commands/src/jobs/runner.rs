//! The runner of jobs: one thread that runs a step of the job that has waited longest, then of the
//! next. It sleeps until a job is due or the bell rings.

use super::expiry::Passes;
use super::kinds::{DERIVED, TTL};
use crate::frame::job_kind::{JobKind, StepContext, WholeStep, Work};
use crate::frame::job_list::{StepEnd, Turn};
use crate::frame::lane_name::shown;
use crate::frame::log::{LogLine, Severity};
use crate::frame::recorder::Known;
use crate::frame::service::{Service, now_ms};
use quire_advisor::workload::{Cause, Kind};
use quire_collections::{Attempt, Job, Progress, Stepped, Writer, reap_job};
use quire_document::memory;
use quire_document::{Doc, DocBuf};
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

/// The work of a step within a writer.
type StepWork = fn(&StepContext<'_>, &mut Writer, &Job) -> Attempt<Progress>;
/// The work of a step that commits by itself.
type WholeWork = fn(&StepContext<'_>, &mut Job) -> Result<WholeStep>;

/// The interval at which the wall clock is looked at, in case it was set, while a job waits for it.
const CLOCK_PAUSE: Duration = Duration::from_secs(60);

/// The jobs that a runner takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Jobs of the server itself, whose steps are short.
    Own,
    /// Jobs of users, whose steps can take long.
    Users,
}

/// The state of the runner.
pub(super) struct Runner {
    pub service: Arc<Service>,
    kinds: Vec<&'static JobKind>,
    lane: Lane,
    nudged: u64,
    /// When the wall clock is looked at next.
    clock: Instant,
    stop: Arc<Interrupt>,
    /// The rings of the bell that this thread has answered.
    answered: u64,
    /// When the table must be read again.
    reload: Option<Instant>,
    /// When the records of retryable writes are due.
    retry_records: Instant,
}

impl Runner {
    pub fn new(
        service: Arc<Service>,
        kinds: Vec<&'static JobKind>,
        lane: Lane,
        stop: Arc<Interrupt>,
    ) -> Self {
        let now = Instant::now();
        let (retry_records, clock) = (now + RETRY_RECORDS_PAUSE, now + CLOCK_PAUSE);
        let (answered, nudged, reload) = (0, 0, Some(now));
        Runner { service, kinds, lane, nudged, clock, stop, answered, reload, retry_records }
    }

    /// Returns true if the runner takes jobs of a kind now.
    fn takes(&self, kind: &JobKind) -> bool {
        kind.is_whole() == (self.lane == Lane::Users) && (kind.may_run)(&self.service)
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
            self.nudged = bell.nudged();
            if rung != self.answered || self.reload.is_some_and(|due| due <= now) {
                self.answered = rung;
                // One runner reads the table for all of them, and its steps are short.
                match self.lane {
                    Lane::Own => self.load(),
                    Lane::Users => self.reload = None,
                }
            }
            let look = self.keep_times(now, &mut passes);
            if let Some(turn) = self.service.jobs.next(|kind| self.takes(kind)) {
                match turn.kind.work {
                    Work::Step(work) => self.step(turn, work, &mut passes),
                    Work::Whole(work) => self.whole_step(turn, work),
                }
                continue;
            }
            let due = self.service.jobs.next_due(|kind| self.takes(kind));
            let clock = due.map(|_| self.clock).filter(|_| self.lane == Lane::Users);
            let next = [self.reload, look, due, clock].into_iter().flatten().min();
            let pause = next.map(|next| next.saturating_duration_since(Instant::now()));
            let seen = (self.answered, self.nudged);
            let _ = self.stop.wait(pause, || (bell.rung(), bell.nudged()) != seen);
        }
        bell.leave(&self.stop);
    }

    /// Does what is due by time: passes of expiry, the scan of the records of retryable writes, a look
    /// at the wall clock. Returns when to look again.
    fn keep_times(&mut self, now: Instant, passes: &mut Passes) -> Option<Instant> {
        if self.lane == Lane::Users {
            if self.clock <= now {
                self.clock = now + CLOCK_PAUSE;
                self.service.jobs.look_at_clock(self.service.wall_ms());
            }
            return None;
        }
        if self.retry_records <= now {
            self.retry_records = now + RETRY_RECORDS_PAUSE;
            self.offer(reap_job(now_ms()), false);
        }
        let look = passes.look(self);
        Some(look.map_or(self.retry_records, |look| look.min(self.retry_records)))
    }

    /// Adds the jobs of the table to those under way. A job of a kind that this version does not know
    /// stays in the table.
    fn load(&mut self) {
        let jobs = self.service.store.jobs(|_| {});
        self.reload = jobs.is_err().then(|| Instant::now() + RELOAD_PAUSE);
        for job in jobs.unwrap_or_default() {
            self.offer(job, true);
        }
        // The other runners look at the jobs that are new.
        self.service.store.job_bell().nudge();
    }

    /// Adds a job to those under way.
    pub fn offer(&self, job: Job, is_stored: bool) {
        let service = &self.service;
        if let Some(kind) = self.kinds.iter().find(|kind| kind.name == job.id.kind) {
            let op = service.operations.next_id();
            service.jobs.offer((job, is_stored), kind, op, || service.wall_ms());
        }
    }

    /// Runs a step of a job that commits by itself.
    fn whole_step(&self, turn: Turn, work: WholeWork) {
        let (began, service) = (Instant::now(), &self.service);
        let Turn { mut job, kind, size, interrupt, failures, .. } = turn;
        let before = job.done;
        interrupt.set_deadline(Some(began + kind.step_time_max));
        if self.stop.check().is_err() {
            return;
        }
        let cx = StepContext { service, interrupt: &interrupt, rows_max: size.rows(), failures };
        let ended = catch_unwind(AssertUnwindSafe(|| work(&cx, &mut job)));
        memory::release();
        let ended = ended.unwrap_or_else(|_| {
            service.metrics.internal_errors.add(1);
            Err(Error::internal("a step of a job panicked"))
        });
        if ended.is_err() && self.stop.check().is_err() {
            return;
        }
        let (id, took) = (job.id.clone(), began.elapsed());
        let done = u64::try_from(job.done.saturating_sub(before)).unwrap_or(0);
        let waits = match ended {
            Ok(WholeStep::Waits(awaited)) => Some(awaited),
            _ => None,
        };
        let end = match ended {
            Ok(WholeStep::Again) => StepEnd::Went { job, is_stored: true, done: 0, took },
            Ok(WholeStep::Goes | WholeStep::Waits(_)) => {
                StepEnd::Went { job, is_stored: true, done, took }
            }
            Ok(WholeStep::Gone) => StepEnd::Ended { done },
            Err(error) => {
                self.log_failure(kind, &job, &error);
                StepEnd::Failed(error)
            }
        };
        let is_gone = matches!(end, StepEnd::Ended { .. });
        service.jobs.end(&id, size, end, || service.wall_ms());
        if waits.is_some() {
            service.jobs.rest(&id, waits);
            // The thread that wakes triggers may not watch for this one yet.
            service.store.job_bell().nudge();
        }
        if is_gone {
            // A job of the same name can have been created meanwhile.
            service.store.job_bell().ring();
        }
    }

    /// Runs a step of a job.
    fn step(&self, turn: Turn, work: StepWork, passes: &mut Passes) {
        // Waits while `fsync` blocks writes. An error means that the server stops.
        let Ok(_writing) = self.service.write_gate.enter(&self.stop) else { return };
        let began = Instant::now();
        let Turn { mut job, mut is_stored, kind, mut size, interrupt, failures } = turn;
        // A block of users' writes may have begun since the job was chosen.
        if !(kind.may_run)(&self.service) {
            let now_ms = || self.service.wall_ms();
            return self.service.jobs.end(&job.id, size, StepEnd::NotBegun, now_ms);
        }
        let before = job.done;
        interrupt.set_deadline(Some(began + kind.step_time_max));
        if self.stop.check().is_err() {
            return;
        }
        let mut is_again = false;
        let run = || {
            self.service.store.step_job(&mut job, &mut is_stored, &interrupt, |writer, job| {
                if std::mem::replace(&mut is_again, true) {
                    size.lost();
                }
                let (service, interrupt) = (&self.service, &interrupt);
                let rows_max = size.rows();
                work(&StepContext { service, interrupt, rows_max, failures }, writer, job)
            })
        };
        let ended = self.service.memory().within(|| {
            let ended = catch_unwind(AssertUnwindSafe(run));
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
        let namespace = (kind.namespace)(&self.service, &job);
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
        // What a rule's job writes is charged where it is written.
        if done > 0 && kind.name != DERIVED {
            charge(&self.service, kind, &namespace, done, took);
        }
        self.service.jobs.end(&id, size, end, || self.service.wall_ms());
        passes.stepped(&self.service, &id, done, took);
    }

    /// Logs why a step failed; it is tried again after a pause.
    fn log_failure(&self, kind: &JobKind, job: &Job, error: &Error) {
        let attributes = DocBuf::build(|writer| {
            writer.append("error", self.service.logged_values().error(error).as_str());
            writer.append("namespace", (kind.namespace)(&self.service, job).as_str());
            writer.append("kind", job.id.kind.as_str()).append("job", shown(&job.id.name).as_str());
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

/// Charges the work of a step to its cause in the counts of the recorder.
fn charge(service: &Service, kind: &JobKind, namespace: &str, done: u64, took: Duration) {
    let cause = match kind.name {
        TTL => Cause::Ttl,
        _ => Cause::Job,
    };
    let writes = if kind.op == "remove" { Kind::Delete } else { Kind::Update };
    let known = Known::own(writes, cause, namespace, Doc::empty());
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    service.recorder.note_own(known, done, micros);
}
