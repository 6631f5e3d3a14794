//! Group commit with leader and followers, without a timer. A commit that finds no leader becomes
//! the leader: it takes the whole queue, checks conflicts in order, merges the remaining commits
//! into one batch, forces it to stable storage once if any commit requires it, publishes it, passes
//! the leadership on, and wakes all. The next group gathers while the leader waits for the disk. A
//! commit without others waits for no one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::backend::{Backend, Room};
use crate::committer::records::GroupEnd;
use crate::committer::views::View;
use crate::committer::{Inner, Numbers, PendingDrop, records};
use crate::contract::{
    ClusterTime, CommitBatch, Committed, Counts, Durability, LinePlace, LockOwner, Op, Space,
    Version,
};
use crate::error::{Conflict, Result, StorageError};
use crate::interrupt::Interrupt;
use crate::publish::OnPublish;
use crate::watch::Touched;

/// The most commits in a group.
const GROUP_COMMITS_MAX: usize = 1000;
/// The most bytes in a group, unless its first commit alone is larger.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// The waiting commits, and whether one of them is the leader.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Arc<Ticket>>,
    leading: bool,
}

/// A commit in the queue or in a group.
pub(crate) struct Ticket {
    batch: Mutex<CommitBatch>,
    state: Mutex<TicketState>,
    changed: Condvar,
}

enum TicketState {
    Waiting,
    Lead,
    Done(Result<Committed>),
}

impl Ticket {
    fn set(&self, state: TicketState) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }

    /// Waits. Returns the result, or `None` if the commit must become the leader.
    fn wait(&self) -> Option<Result<Committed>> {
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, TicketState::Waiting) {
                TicketState::Waiting => self.changed.wait(&mut state),
                TicketState::Lead => return None,
                TicketState::Done(result) => return Some(result),
            }
        }
    }
}

/// The content of a group that is about to be written.
#[derive(Default)]
struct Merged {
    ops: Vec<Op>,
    sync: bool,
    /// The new counters of collections, in ascending order of their ids.
    counts: SmallVec<[(u32, Counts); 2]>,
    forgotten: Vec<u32>,
    drops: Vec<PendingDrop>,
    /// Owners of locks, and places in lines, to release once the group is visible.
    released: Vec<(Option<LockOwner>, Option<LinePlace>)>,
    bytes: u64,
    commits: u64,
    /// The cluster time of the first commit.
    first_time: Option<ClusterTime>,
    /// The collections whose documents it writes.
    touched: Touched,
    /// The functions to call when the group becomes visible.
    hooks: Vec<(Committed, OnPublish)>,
}

impl Merged {
    /// Returns the position of a collection's counters, or the position at which to insert them.
    fn find_counts(&self, collection: u32) -> std::result::Result<usize, usize> {
        self.counts.binary_search_by_key(&collection, |(number, _)| *number)
    }
}

/// The bases of the commits in progress, each with the number of its commits, in ascending order.
/// There are at most as many as threads that commit, and most are the latest version.
#[derive(Default)]
pub(crate) struct Bases(Vec<(u64, usize)>);

impl Bases {
    fn find(&self, base: u64) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&base, |(base, _)| *base)
    }

    fn add(&mut self, base: u64) {
        match self.find(base) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (base, 1)),
        }
    }

    fn remove(&mut self, base: u64) {
        let Ok(at) = self.find(base) else { return };
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }

    fn oldest(&self) -> Option<u64> {
        self.0.first().map(|(base, _)| *base)
    }
}

/// Keeps a commit's base among the bases in progress until it is dropped.
struct PinnedBase<'a> {
    bases: &'a Mutex<Bases>,
    base: u64,
}

impl Drop for PinnedBase<'_> {
    fn drop(&mut self) {
        self.bases.lock().remove(self.base);
    }
}

/// Sends the results of a group. If the leader panics, it answers all commits with an error and
/// poisons the engine.
struct Leadership<'a, B: Backend> {
    inner: &'a Inner<B>,
    group: Vec<Arc<Ticket>>,
    results: Vec<Result<Committed>>,
}

impl<B: Backend> Drop for Leadership<'_, B> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.inner.poison("a panic inside the committer");
        }
        let lost = || Err(StorageError::OutcomeUnknown("a panic in the committer".into()));
        {
            let mut queue = self.inner.queue.lock();
            match queue.waiting.front() {
                Some(next) => next.set(TicketState::Lead),
                None => queue.leading = false,
            }
        }
        let mut results = std::mem::take(&mut self.results).into_iter();
        for ticket in &self.group {
            ticket.set(TicketState::Done(results.next().unwrap_or_else(lost)));
        }
    }
}

impl<B: Backend> Inner<B> {
    /// Commits a batch as a member of a group. If it must be durable, forces it to stable storage
    /// unless the group did so.
    pub(crate) fn commit(&self, batch: CommitBatch) -> Result<Committed> {
        let durability = batch.durability;
        let committed = self.commit_visibly(batch)?;
        if durability == Durability::Synced {
            // The commit is already visible, and may be on disk even if this fails.
            let synced = self.sync_for_commit(committed.version.as_u64());
            synced.map_err(StorageError::after_commit)?;
        }
        Ok(committed)
    }

    fn commit_visibly(&self, batch: CommitBatch) -> Result<Committed> {
        self.check_writable()?;
        self.check_early(&batch)?;
        match self.backend.room() {
            Room::None => return Err(StorageError::Full),
            Room::Reserve if batch.adds_data() => return Err(StorageError::Full),
            Room::Reserve | Room::Enough => {}
        }
        let _base = self.pin_base(batch.base.as_u64());
        // A drop frees space, which may end the pressure.
        if !batch.admitted && batch.drops.is_empty() {
            self.wait_for_pressure(batch.interrupt.as_deref())?;
        }
        let ticket = Arc::new(Ticket {
            batch: Mutex::new(batch),
            state: Mutex::new(TicketState::Waiting),
            changed: Condvar::new(),
        });
        let lead = {
            let mut queue = self.queue.lock();
            queue.waiting.push_back(Arc::clone(&ticket));
            !std::mem::replace(&mut queue.leading, true)
        };
        if !lead && let Some(result) = ticket.wait() {
            return result;
        }
        let group = self.take_group();
        let mut leadership = Leadership { inner: self, group, results: Vec::new() };
        leadership.results = self.run_group(&leadership.group);
        drop(leadership);
        let lost = || Err(StorageError::OutcomeUnknown("its answer was lost".into()));
        ticket.wait().unwrap_or_else(lost)
    }

    /// Rejects a commit early if another writer has reserved one of its keys, so that it does not
    /// occupy a slot in the group. A commit that conflicts with a newer version of a key is not
    /// rejected here: it should fail only when that version is visible, because an earlier retry
    /// would conflict again.
    fn check_early(&self, batch: &CommitBatch) -> Result<()> {
        self.keys.lock().check_turn(batch).inspect_err(|_| {
            self.meters.conflicts.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Releases the locks of a transaction and a place in a line, and wakes waiters.
    pub(crate) fn release(&self, owner: Option<LockOwner>, turn: Option<LinePlace>) {
        let woken = self.keys.lock().release(owner, turn);
        for waiter in woken {
            waiter.notify();
        }
    }

    /// Keeps the conflict information for commits on this base until the result is dropped. Returns
    /// `None` if the base's snapshot was already revoked.
    fn pin_base(&self, base: u64) -> Option<PinnedBase<'_>> {
        self.bases.lock().add(base);
        let pinned = PinnedBase { bases: &self.bases, base };
        self.active.contains(base).then_some(pinned)
    }

    /// Removes the next group from the queue. The leader's own commit is always its first.
    fn take_group(&self) -> Vec<Arc<Ticket>> {
        let mut queue = self.queue.lock();
        let mut group = Vec::with_capacity(queue.waiting.len().min(GROUP_COMMITS_MAX));
        let mut bytes = 0;
        while let Some(next) = queue.waiting.front() {
            bytes += next.batch.lock().byte_len();
            if !group.is_empty() && (bytes > GROUP_BYTES_MAX || group.len() >= GROUP_COMMITS_MAX) {
                break;
            }
            group.extend(queue.waiting.pop_front());
        }
        group
    }

    fn run_group(&self, group: &[Arc<Ticket>]) -> Vec<Result<Committed>> {
        let mut numbers = self.applying.lock();
        if let Err(error) = self.check_writable() {
            return group.iter().map(|_| Err(error.clone())).collect();
        }
        let before = *numbers;
        let mut merged = Merged::default();
        let results = self.admit_all(group, &mut numbers, &mut merged);
        if merged.commits == 0 {
            return results;
        }
        self.add_records(&mut merged, &numbers, before.version);
        if merged.hooks.is_empty() && merged.drops.is_empty() {
            merged.touched = self.watches.touched(&merged.ops);
        }
        let sync = merged.sync;
        if let Err(error) = self.backend.apply(std::mem::take(&mut merged.ops), sync) {
            *numbers = before;
            if error == StorageError::Full {
                self.keys.lock().take_back(before.version);
                return all_failed(results, &error);
            }
            self.poison(&error.to_string());
            return in_doubt(results, error);
        }
        match self.publish(merged, &numbers) {
            Ok(()) => results,
            Err(error) => in_doubt(results, error.after_commit()),
        }
    }

    /// Checks each commit for conflicts and merges those without.
    fn admit_all(
        &self,
        group: &[Arc<Ticket>],
        numbers: &mut Numbers,
        merged: &mut Merged,
    ) -> Vec<Result<Committed>> {
        let now_ms = self.options.clock.now_ms();
        let floor = ClusterTime(self.clock_floor.load(Ordering::Acquire));
        // A transaction may begin on a view of the history, and conflicts with commits after that
        // view.
        let oldest = self.oldest_version().unwrap_or(numbers.version);
        let oldest_base = self.bases.lock().oldest().unwrap_or(oldest);
        let mut keys = self.keys.lock();
        keys.prune(oldest.min(oldest_base).min(numbers.version));
        let mut results = Vec::with_capacity(group.len());
        for ticket in group {
            let mut batch = std::mem::take(&mut *ticket.batch.lock());
            let admitted = match keys.admit(&batch) {
                Ok(()) if self.backend.inject_conflict(&batch) => Err(injected(&batch)),
                other => other,
            };
            if let Err(error) = admitted {
                self.meters.conflicts.fetch_add(1, Ordering::Relaxed);
                results.push(Err(error));
                continue;
            }
            numbers.version += 1;
            numbers.cluster_time = numbers.cluster_time.max(floor).next(now_ms);
            keys.record(numbers.version, &batch.checks);
            keys.record_marks(numbers.version, &batch.marks);
            let version = Version::from_u64(numbers.version);
            let committed = Committed { version, cluster_time: numbers.cluster_time };
            results.push(Ok(committed));
            if let Some(hook) = batch.on_publish.take() {
                merged.hooks.push((committed, hook));
            }
            self.merge(batch, numbers, merged);
        }
        // If writers wait for keys, the group is published before it is synced: they need it to be
        // visible, not durable.
        merged.sync &= keys.lines.is_empty();
        results
    }

    fn merge(&self, batch: CommitBatch, numbers: &Numbers, merged: &mut Merged) {
        merged.commits += 1;
        merged.first_time.get_or_insert(numbers.cluster_time);
        merged.bytes += batch.byte_len() as u64;
        merged.sync |= batch.durability == Durability::Synced;
        if batch.owner.is_some() || batch.turn.is_some() {
            merged.released.push((batch.owner, batch.turn));
        }
        if merged.ops.is_empty() {
            merged.ops = batch.ops;
        } else {
            merged.ops.extend(batch.ops);
        }
        for (index, record) in (0..).zip(batch.log) {
            let key = records::log_key(numbers.version, index);
            let value = Some(records::log_value(numbers.cluster_time, &record));
            merged.ops.push(Op { space: Space::Log, key, value });
        }
        for delta in batch.counts {
            let found = merged.find_counts(delta.collection);
            if delta.forget {
                if let Ok(at) = found {
                    merged.counts.remove(at);
                }
                merged.forgotten.push(delta.collection);
                continue;
            }
            let at = found.unwrap_or_else(|at| {
                let before = match merged.forgotten.contains(&delta.collection) {
                    true => Counts::default(),
                    false => self.counts.lock().get(&delta.collection).copied().unwrap_or_default(),
                };
                merged.counts.insert(at, (delta.collection, before));
                at
            });
            let (_, counts) = &mut merged.counts[at];
            counts.documents = counts.documents.saturating_add_signed(delta.documents);
            counts.bytes = counts.bytes.saturating_add_signed(delta.bytes);
        }
        for (index, range) in (0..).zip(batch.drops) {
            let (record, value) = records::dropped(numbers.version, index, &range);
            merged.ops.push(Op { space: Space::Meta, key: record.clone(), value: Some(value) });
            let version = numbers.version;
            merged.drops.push(PendingDrop { version, record, range, freed: false });
        }
    }

    /// Adds the engine's own records: the counters, which include version and time, or a record of
    /// these two.
    fn add_records(&self, merged: &mut Merged, numbers: &Numbers, before: u64) {
        let Numbers { version, cluster_time: time } = *numbers;
        let durable = self.durable.load(Ordering::Acquire);
        let end = GroupEnd { version, time, before, durable };
        for collection in &merged.forgotten {
            if merged.find_counts(*collection).is_err() {
                let key = records::counts_key(*collection);
                merged.ops.push(Op { space: Space::Meta, key, value: None });
            }
        }
        for (collection, counts) in &merged.counts {
            let key = records::counts_key(*collection);
            let value = Some(records::counts_value(*counts, end));
            merged.ops.push(Op { space: Space::Meta, key, value });
        }
        if merged.counts.is_empty() || !merged.forgotten.is_empty() {
            let (key, value) = records::state(end);
            merged.ops.push(Op { space: Space::Meta, key, value: Some(value) });
        }
    }

    /// Publishes an applied group.
    fn publish(&self, merged: Merged, numbers: &Numbers) -> Result<()> {
        {
            let mut counts = self.counts.lock();
            for collection in &merged.forgotten {
                counts.remove(collection);
            }
            counts.extend(merged.counts);
        }
        if !merged.drops.is_empty() {
            self.drops.lock().extend(merged.drops);
            self.retries.lock().now();
        }
        let meters = &self.meters;
        meters.commits.fetch_add(merged.commits, Ordering::Relaxed);
        meters.groups.fetch_add(1, Ordering::Relaxed);
        let written =
            meters.written_bytes.fetch_add(merged.bytes, Ordering::Relaxed) + merged.bytes;
        if merged.sync {
            meters.fsyncs.fetch_add(1, Ordering::Relaxed);
            self.note_durable(numbers.version);
        }
        let snap = self.backend.snapshot().inspect_err(|error| self.poison(&error.to_string()))?;
        let Numbers { version, cluster_time } = *numbers;
        let view = View::new(&self.active, version, cluster_time, snap, written);
        let until = merged.first_time.unwrap_or(cluster_time);
        // The old view enters the history before it is replaced, so that a reader finds its time in
        // one of the two.
        self.history.lock().keep(&self.current.read(), until, written);
        let mut previous = view;
        let mut swap = || std::mem::swap(&mut *self.current.write(), &mut previous);
        run_hooks(&mut merged.hooks.into_iter(), &mut swap);
        previous.supersede();
        drop(previous);
        self.watches.announce(Version::from_u64(version), &merged.touched);
        for (owner, turn) in merged.released {
            self.release(owner, turn);
        }
        if self.active.over(self.options.snapshot_retained_bytes_max, written) {
            self.enforce_caps();
        }
        Ok(())
    }

    /// Waits for backpressure before the commit is queued, so that no leader has to wait in the
    /// backend. Fails with `Full` if the disk has no room for what it waits for.
    pub(crate) fn wait_for_pressure(&self, interrupt: Option<&Interrupt>) -> Result<()> {
        let pause = self.backend.pause();
        if pause.is_none() && !self.backend.under_pressure() {
            return Ok(());
        }
        let since = Instant::now();
        let own = Interrupt::new();
        let interrupt = interrupt.unwrap_or(&own);
        let paused = pause.map_or(Ok(false), |_| interrupt.wait(pause, || false));
        let waited = match paused {
            Ok(_) => self.wait_while_behind(interrupt),
            Err(why) => Err(why.into()),
        };
        let us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.meters.pressure_us.fetch_add(us, Ordering::Relaxed);
        waited
    }

    /// Waits until flushes and merges are no longer too far behind.
    fn wait_while_behind(&self, interrupt: &Interrupt) -> Result<()> {
        let step = Some(Duration::from_millis(2));
        while self.backend.under_pressure() {
            self.check_writable()?;
            if self.backend.is_stuck() {
                return Err(StorageError::Full);
            }
            interrupt.wait(step, || !self.backend.under_pressure())?;
        }
        Ok(())
    }

    /// Returns version and cluster time of the latest published commit.
    pub(crate) fn latest(&self) -> (Version, ClusterTime) {
        let current = self.current.read();
        (current.version, current.cluster_time)
    }
}

/// Calls the hooks of a group, nested in each other, with the publication of the group inside the
/// innermost.
fn run_hooks(hooks: &mut dyn Iterator<Item = (Committed, OnPublish)>, swap: &mut dyn FnMut()) {
    match hooks.next() {
        Some((committed, OnPublish(hook))) => hook(committed, &mut || run_hooks(hooks, swap)),
        None => swap(),
    }
}

/// Returns the results of a group whose write failed. The outcome is certain only if the backend
/// did not begin to write.
fn in_doubt(results: Vec<Result<Committed>>, error: StorageError) -> Vec<Result<Committed>> {
    let error = match error {
        sure @ (StorageError::Unavailable(_) | StorageError::Closed) => sure,
        other => other.after_commit(),
    };
    all_failed(results, &error)
}

/// Replaces successes by an error.
fn all_failed(results: Vec<Result<Committed>>, error: &StorageError) -> Vec<Result<Committed>> {
    let answer = |result: Result<Committed>| result.and_then(|_| Err(error.clone()));
    results.into_iter().map(answer).collect()
}

fn injected(batch: &CommitBatch) -> StorageError {
    let check = batch.checks.first();
    StorageError::Conflict(Box::new(Conflict {
        space: check.map_or(Space::Meta, |check| check.space),
        key: check.map(|check| check.key.clone()).unwrap_or_default(),
        hash: check.map_or(0, |check| check.hash),
        held: false,
    }))
}
