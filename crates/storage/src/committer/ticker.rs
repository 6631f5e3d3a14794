//! The ticker thread: every 100 ms it forces buffered commits to stable storage, enforces the caps
//! on snapshots, and starts to reclaim dropped ranges that no snapshot needs any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::backend::{Backend, Reclaimed};
use crate::committer::{Inner, PendingDrop};
use crate::contract::{CommitBatch, DropRange, Durability, Op, Space};
use crate::error::Result;

/// Wakes the ticker when the engine closes, or when a thread waits for the next round.
#[derive(Default)]
pub(crate) struct StopSignal {
    state: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Default)]
struct Signal {
    stopped: bool,
    /// A thread waits for the next round.
    wake: bool,
}

impl StopSignal {
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Makes the next round begin at once.
    pub fn wake(&self) {
        self.state.lock().wake = true;
        self.changed.notify_all();
    }

    /// Sleeps until the next round. Returns true if the engine closes.
    fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.stopped && !state.wake {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.wake = false;
        state.stopped
    }
}

/// The time of the next attempt to reclaim: after 1 s, then after pauses that double up to 60 s.
#[derive(Default)]
pub(crate) struct Retries {
    due: Option<Instant>,
    pause: Duration,
}

impl Retries {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);

    fn is_due(&self) -> bool {
        self.due.is_none_or(|due| due <= Instant::now())
    }

    fn after(&mut self, all_done: bool) {
        if all_done {
            return self.now();
        }
        self.pause = (self.pause * 2).clamp(Self::FIRST, Self::LONGEST);
        self.due = Some(Instant::now() + self.pause);
    }

    /// Makes the next attempt due at the next tick, because there is new work.
    pub fn now(&mut self) {
        *self = Self::default();
    }
}

/// Starts the ticker.
pub(crate) fn start<B: Backend>(inner: &Arc<Inner<B>>, every: Duration) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    let thread = std::thread::Builder::new().name("quire-ticker".into());
    Ok(thread.spawn(move || {
        while !inner.stop.sleep(every) {
            // A failed sync has poisoned the engine, which every later call reports.
            let _ = inner.tick(false);
            Inner::start_reclaim(&inner);
        }
    })?)
}

impl<B: Backend> Inner<B> {
    /// Does one round, without reclaiming. With `patient` it waits for a group that is being
    /// written.
    pub(crate) fn tick(&self, patient: bool) -> Result<()> {
        let latest = self.latest().0.as_u64();
        let synced = self.sync_up_to(latest);
        if let Err(error) = self.backend.look() {
            self.poison(&error.to_string());
        }
        self.enforce_caps();
        self.history.lock().expire(self.meters.written_bytes.load(Ordering::Relaxed));
        self.refresh(patient);
        synced
    }

    /// Gives the latest view a new snapshot of the backend, which retains less, and discards the
    /// versions that no snapshot needs any more.
    fn refresh(&self, patient: bool) {
        // The ticker does not wait for a group that is being written, because the next tick comes
        // soon.
        let between_groups =
            if patient { Some(self.applying.lock()) } else { self.applying.try_lock() };
        if between_groups.is_none() {
            return;
        }
        let current = Arc::clone(&self.current.read());
        if let Ok(snap) = self.backend.snapshot() {
            current.refresh(snap);
        }
        drop(current);
        if let Some(oldest) = self.oldest_snapshot() {
            self.backend.housekeeping(&oldest);
        }
    }

    /// Returns the dropped ranges that no snapshot needs any more.
    fn reclaimable(&self) -> Vec<PendingDrop> {
        let drops = self.drops.lock();
        if drops.is_empty() {
            return Vec::new();
        }
        let oldest = self.oldest_version().unwrap_or(u64::MAX);
        drops.iter().filter(|drop| drop.version <= oldest).cloned().collect()
    }

    /// Returns true if a range that no snapshot needs any more still occupies space.
    fn has_space_to_reclaim(&self) -> bool {
        let drops = self.drops.lock();
        let mut unfreed = drops.iter().filter(|drop| !drop.freed).peekable();
        if unfreed.peek().is_none() {
            return false;
        }
        let oldest = self.oldest_version().unwrap_or(u64::MAX);
        unfreed.any(|drop| drop.version <= oldest)
    }

    /// Returns the dropped ranges whose space is not reclaimed.
    pub(crate) fn unfreed(&self) -> Vec<DropRange> {
        let drops = self.drops.lock();
        drops.iter().filter(|drop| !drop.freed).map(|drop| drop.range.clone()).collect()
    }

    /// Starts a thread for slow work, if there is any and no such thread runs.
    fn start_reclaim(inner: &Arc<Self>) {
        let drops = inner.retries.lock().is_due() && inner.has_space_to_reclaim();
        if inner.broken.load(Ordering::Acquire) || !(drops || inner.backend.wants_work()) {
            return;
        }
        let mut slot = inner.reclaimer.lock();
        if slot.as_ref().is_some_and(|running| !running.is_finished()) {
            return;
        }
        if let Some(finished) = slot.take() {
            let _ = finished.join();
        }
        let shared = Arc::clone(inner);
        let thread = std::thread::Builder::new().name("quire-reclaim".into());
        *slot = thread
            .spawn(move || {
                // A range that fails here stays recorded, and a later tick tries again.
                if drops {
                    let _ = shared.reclaim();
                }
                let _ = shared.backend.work(&|| shared.stop.is_stopped());
            })
            .ok();
    }

    /// Reclaims the space of dropped ranges and removes the records of those that are permanently
    /// gone. A range that still occupies space is tried again after a pause, a freed one together
    /// with the next range or after a restart.
    pub(crate) fn reclaim(&self) -> Result<()> {
        let _one_at_a_time = self.reclaiming.lock();
        let drops = self.reclaimable();
        if drops.is_empty() {
            return Ok(());
        }
        let ranges: Vec<_> = drops.iter().map(|drop| drop.range.clone()).collect();
        let apply = |ops: Vec<Op>| self.apply_own(ops);
        let stop = || self.stop.is_stopped();
        let done = self.backend.reclaim(&ranges, &apply, &stop);
        let all_done = done.as_ref().is_ok_and(|done| !done.contains(&Reclaimed::Left));
        self.retries.lock().after(all_done);
        let done = done?;
        let records = |what: Reclaimed| -> HashSet<Bytes> {
            let of = drops.iter().zip(&done).filter(|(_, done)| **done == what);
            of.map(|(drop, _)| drop.record.clone()).collect()
        };
        let (freed, gone) = (records(Reclaimed::Freed), records(Reclaimed::Gone));
        for drop in self.drops.lock().iter_mut() {
            drop.freed |= freed.contains(&drop.record);
        }
        if !freed.is_empty() {
            self.refresh(true);
        }
        if gone.is_empty() {
            return Ok(());
        }
        let forget = |key: &Bytes| Op { space: Space::Meta, key: key.clone(), value: None };
        self.apply_own(gone.iter().map(forget).collect())?;
        self.drops.lock().retain(|drop| !gone.contains(&drop.record));
        Ok(())
    }

    /// Commits changes of the engine itself. They have no conflicts and need no sync.
    fn apply_own(&self, ops: Vec<Op>) -> Result<()> {
        let durability = Durability::Buffered;
        self.commit(CommitBatch { ops, durability, ..CommitBatch::default() }).map(|_| ())
    }
}
