//! The jobs that are under way in this process: the runner takes the next one from here, `currentOp`
//! and `serverStatus` show them, `killOp` stops a step.

use crate::frame::job_kind::{Awaited, JobKind};
use quire_collections::{ChunkSize, Job, JobId, STEP_ROWS_MAX};
use quire_document::DocBuf;
use quire_error::Error;
use quire_storage::{Interrupt, Interruption};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A step that takes longer is followed by one with fewer rows.
const STEP_TIME: Duration = Duration::from_millis(20);
/// The pause after the first failure of a job. Each later failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A job that is due later is looked at after this time.
const WAIT_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// A job that this process knows.
#[derive(Clone)]
pub struct Entry {
    /// The job after its last step.
    pub job: Job,
    /// True if the table has the job.
    pub is_stored: bool,
    /// The kind of the job.
    pub kind: &'static JobKind,
    /// The number that `killOp` takes.
    pub op: i64,
    /// When this process began with it.
    pub since: Instant,
    /// What the job waits for.
    pub state: State,
    /// The number of failures since the last step that succeeded.
    pub failures: u32,
    /// The text of the last failure, until a step succeeds.
    pub error: Option<String>,
    /// When the first attempt since the last step that succeeded began, in milliseconds since 1970;
    /// `None` until a step asks for it.
    began_ms: Option<i64>,
    /// A row, and the token up to which there was nothing to do behind its position. The position of
    /// a job on changes is stored when it has done something, and from time to time.
    read: Option<(Job, DocBuf)>,
    size: ChunkSize,
    /// The number of the turn in which it had its last step.
    turn: u64,
}

/// What a job waits for.
#[derive(Clone)]
pub enum State {
    /// It waits for its turn.
    Ready,
    /// A step runs, which this interrupt ends.
    Running(Arc<Interrupt>),
    /// It waits for a time: its own, or that of the next attempt after a failure.
    Until(Instant),
    /// It has had its share, and waits until [`JobList::end_rest`], or for commits.
    Resting(Option<Awaited>),
}

/// The counters of a kind.
#[derive(Clone, Copy, Default)]
pub struct KindCounts {
    /// The steps that were committed.
    pub steps: u64,
    /// The units of work of these steps.
    pub done: u64,
    /// The steps that failed.
    pub failures: u64,
    /// The jobs that have ended.
    pub ended: u64,
}

/// A job whose turn it is.
pub(crate) struct Turn {
    pub job: Job,
    pub is_stored: bool,
    pub kind: &'static JobKind,
    pub size: ChunkSize,
    pub interrupt: Arc<Interrupt>,
    pub failures: u32,
}

/// How a step ended.
pub(crate) enum StepEnd {
    /// It was committed, and the job goes on. `done` is the work of the step.
    Went { job: Job, is_stored: bool, done: u64, took: Duration },
    /// The job has ended, or was removed. `done` is the work of the step.
    Ended { done: u64 },
    /// It had no effect.
    Failed(Error),
    /// It was not begun, because jobs of its kind may not run now.
    NotBegun,
}

/// All jobs under way.
#[derive(Default)]
pub struct JobList(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    entries: BTreeMap<JobId, Entry>,
    counts: BTreeMap<&'static str, KindCounts>,
    turns: u64,
}

impl JobList {
    /// Adds a job, unless it is in the list. `op` is its number for `killOp`. The row of a job that
    /// commits by itself can have been changed by a command: it replaces the one in the list, unless
    /// a step runs.
    pub(crate) fn offer(
        &self,
        (job, is_stored): (Job, bool),
        kind: &'static JobKind,
        op: i64,
        now_ms: impl Fn() -> i64,
    ) {
        let mut inner = self.lock();
        inner.counts.entry(kind.name).or_default();
        if let Some(entry) = inner.entries.get_mut(&job.id) {
            let runs = matches!(entry.state, State::Running(_));
            if kind.is_whole() && !runs && entry.job != job {
                entry.state = due(job.due_ms, now_ms());
                entry.job = job;
                entry.forget_attempts();
            }
            return;
        }
        inner.entries.entry(job.id.clone()).or_insert_with(|| Entry {
            state: due(job.due_ms, now_ms()),
            job,
            is_stored,
            kind,
            op,
            since: Instant::now(),
            failures: 0,
            error: None,
            began_ms: None,
            read: None,
            size: ChunkSize::new(STEP_ROWS_MAX),
            turn: 0,
        });
    }

    /// Returns the ready job that has waited longest since its last step, of those for which `may_run`
    /// returns true, and marks it as running.
    pub(crate) fn next(&self, may_run: impl Fn(&JobKind) -> bool) -> Option<Turn> {
        let mut inner = self.lock();
        let now = Instant::now();
        let turn = inner.turns + 1;
        let ready = inner.entries.values_mut().filter(|entry| entry.is_ready(now));
        let next = ready.filter(|entry| may_run(entry.kind)).min_by_key(|entry| entry.turn)?;
        let interrupt = Interrupt::new();
        next.state = State::Running(Arc::clone(&interrupt));
        next.turn = turn;
        let (job, kind, size) = (next.job.clone(), next.kind, next.size);
        let (is_stored, failures) = (next.is_stored, next.failures);
        inner.turns = turn;
        Some(Turn { job, is_stored, kind, size, interrupt, failures })
    }

    /// Returns the earliest time at which a waiting job becomes ready.
    pub(crate) fn next_due(&self, may_run: impl Fn(&JobKind) -> bool) -> Option<Instant> {
        let inner = self.lock();
        let due = |entry: &Entry| match entry.state {
            State::Until(due) if may_run(entry.kind) => Some(due),
            _ => None,
        };
        inner.entries.values().filter_map(due).min()
    }

    /// Notes the end of a job's step. `size` is the size of the next one.
    /// `now_ms` reads the wall clock, while the list is locked, so that a change of the clock is not
    /// missed.
    pub(crate) fn end(
        &self,
        id: &JobId,
        mut size: ChunkSize,
        end: StepEnd,
        now_ms: impl Fn() -> i64,
    ) {
        let mut inner = self.lock();
        let Inner { entries, counts, .. } = &mut *inner;
        let Some(entry) = entries.get_mut(id) else { return };
        let counts = counts.entry(entry.kind.name).or_default();
        match end {
            StepEnd::Went { job, is_stored, done, took } => {
                counts.steps += 1;
                counts.done += done;
                match took > STEP_TIME {
                    true => size.lost(),
                    false => size.won(),
                }
                entry.state = due(job.due_ms, now_ms());
                (entry.job, entry.is_stored, entry.size) = (job, is_stored, size);
                entry.forget_attempts();
            }
            StepEnd::Ended { done } => {
                counts.steps += 1;
                counts.done += done;
                counts.ended += 1;
                entries.remove(id);
            }
            StepEnd::Failed(error) => {
                counts.failures += 1;
                let pause = FIRST_PAUSE.saturating_mul(1 << entry.failures.min(16));
                entry.state = State::Until(Instant::now() + pause.min(LONGEST_PAUSE));
                entry.failures = entry.failures.saturating_add(1);
                (entry.error, entry.size) = (Some(error.to_string()), size);
            }
            StepEnd::NotBegun => entry.state = State::Ready,
        }
    }

    /// Makes a job wait until [`end_rest`](Self::end_rest), or for commits until
    /// [`end_rest_of`](Self::end_rest_of).
    pub(crate) fn rest(&self, id: &JobId, awaited: Option<Awaited>) {
        if let Some(entry) = self.lock().entries.get_mut(id)
            && matches!(entry.state, State::Ready)
        {
            entry.state = State::Resting(awaited);
        }
    }

    /// Notes that a job with this row found nothing to do up to a token.
    pub(crate) fn note_read(&self, row: &Job, token: DocBuf) {
        if let Some(entry) = self.lock().entries.get_mut(&row.id) {
            entry.read = Some((row.clone(), token));
        }
    }

    /// Returns the last token that was noted for a job since it has this row.
    pub(crate) fn read_of(&self, row: &Job) -> Option<DocBuf> {
        let inner = self.lock();
        let (of, token) = inner.entries.get(&row.id)?.read.as_ref()?;
        (of == row).then(|| token.clone())
    }

    /// Makes the resting jobs of a kind ready.
    pub(crate) fn end_rest(&self, kind: &str) {
        for entry in self.lock().entries.values_mut() {
            if entry.kind.name == kind && matches!(entry.state, State::Resting(_)) {
                entry.state = State::Ready;
            }
        }
    }

    /// Makes a resting job ready.
    pub(crate) fn end_rest_of(&self, id: &JobId) {
        if let Some(entry) = self.lock().entries.get_mut(id)
            && matches!(entry.state, State::Resting(_))
        {
            entry.state = State::Ready;
        }
    }

    /// Calls `visit` for each job of a kind that waits for commits.
    pub(crate) fn each_awaiting(&self, kind: &str, mut visit: impl FnMut(&JobId, Awaited)) {
        let inner = self.lock();
        let from = inner.entries.range(JobId::new(kind, "")..);
        for (id, entry) in from.take_while(|(id, _)| id.kind == kind) {
            if let State::Resting(Some(awaited)) = entry.state {
                visit(id, awaited);
            }
        }
    }

    /// Returns true if a job is in the list.
    pub(crate) fn has(&self, id: &JobId) -> bool {
        self.lock().entries.contains_key(id)
    }

    /// Makes the list forget a job that does not run, because its row has changed: the table is read
    /// again. A step that runs conflicts with the change.
    pub(crate) fn forget(&self, id: &JobId) {
        let mut inner = self.lock();
        if let Some(entry) = inner.entries.get_mut(id) {
            match entry.state {
                State::Running(_) => entry.forget_attempts(),
                _ => drop(inner.entries.remove(id)),
            }
        }
    }

    /// Returns when the first attempt of a job since its last step that succeeded began. The attempt of
    /// `now_ms` is the first if none was noted.
    pub(crate) fn began(&self, id: &JobId, now_ms: i64) -> i64 {
        let mut inner = self.lock();
        inner.entries.get_mut(id).map_or(now_ms, |entry| *entry.began_ms.get_or_insert(now_ms))
    }

    /// Returns the text of the last failure of a job, until a step succeeds.
    pub fn error_of(&self, id: &JobId) -> Option<String> {
        self.lock().entries.get(id).and_then(|entry| entry.error.clone())
    }

    /// Computes the waits of jobs anew, because the wall clock may have been set.
    pub(crate) fn look_at_clock(&self, now_ms: i64) {
        for entry in self.lock().entries.values_mut() {
            if matches!(entry.state, State::Until(_)) && entry.failures == 0 {
                entry.state = due(entry.job.due_ms, now_ms);
            }
        }
    }

    /// Stops the step of the job with this number; it is tried again later. Returns false if there is
    /// no such job.
    pub fn kill(&self, op: i64) -> bool {
        let inner = self.lock();
        let found = inner.entries.values().find(|entry| entry.op == op);
        if let Some(State::Running(interrupt)) = found.map(|entry| &entry.state) {
            interrupt.kill(Interruption::Killed);
        }
        found.is_some()
    }

    /// Ends the step that runs, because the server stops.
    pub(crate) fn stop(&self) {
        for entry in self.lock().entries.values() {
            if let State::Running(interrupt) = &entry.state {
                interrupt.kill(Interruption::ShuttingDown);
            }
        }
    }

    /// Forgets all jobs: the runners have ended. The table keeps those that it has.
    pub(crate) fn clear(&self) {
        self.lock().entries.clear();
    }

    /// Returns all jobs, ordered by kind and name.
    pub fn list(&self) -> Vec<Entry> {
        self.lock().entries.values().cloned().collect()
    }

    /// Returns true if `test` does for a job of a kind.
    pub(crate) fn any(&self, kind: &str, mut test: impl FnMut(&Entry) -> bool) -> bool {
        let inner = self.lock();
        let from = inner.entries.range(JobId::new(kind, "")..);
        from.take_while(|(id, _)| id.kind == kind).any(|(_, entry)| test(entry))
    }

    /// Returns the counters of each kind, and the number of its jobs.
    pub fn counts(&self) -> Vec<(&'static str, KindCounts, usize)> {
        let inner = self.lock();
        let jobs = |kind: &str| inner.entries.keys().filter(|id| id.kind == kind).count();
        inner.counts.iter().map(|(kind, counts)| (*kind, *counts, jobs(kind))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Forgets the attempts since the last step that succeeded.
    fn forget_attempts(&mut self) {
        (self.failures, self.error, self.began_ms) = (0, None, None);
    }

    fn is_ready(&self, now: Instant) -> bool {
        match self.state {
            State::Ready => true,
            State::Until(due) => due <= now,
            State::Running(_) | State::Resting(_) => false,
        }
    }
}

/// Returns the state of a job whose next step is due at a time of the wall clock.
fn due(due_ms: i64, now_ms: i64) -> State {
    match u64::try_from(due_ms.saturating_sub(now_ms)) {
        Ok(ms @ 1..) if due_ms != 0 => {
            State::Until(Instant::now() + Duration::from_millis(ms).min(WAIT_MAX))
        }
        _ => State::Ready,
    }
}
