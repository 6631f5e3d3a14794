//! The engine's own thread: every 100 ms it forces buffered commits to stable storage, enforces
//! the caps on snapshots, and starts the reclaiming of dropped ranges once no snapshot is older.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::backend::Backend;
use crate::contract::{CommitBatch, Durability, Op, Space};
use crate::error::Result;
use crate::pipeline::{Inner, PendingDrop};

/// Ends the ticker's sleep when the engine closes.
#[derive(Default)]
pub(crate) struct StopSignal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub fn stop(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    pub fn is_stopped(&self) -> bool {
        *self.stopped.lock()
    }

    /// Sleeps; true if the engine closes.
    fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut stopped = self.stopped.lock();
        while !*stopped {
            if self.changed.wait_until(&mut stopped, until).timed_out() {
                break;
            }
        }
        *stopped
    }
}

/// Starts the ticker.
pub(crate) fn start<B: Backend>(inner: &Arc<Inner<B>>, every: Duration) -> Result<JoinHandle<()>> {
    let inner = Arc::clone(inner);
    let thread = std::thread::Builder::new().name("quire-ticker".into());
    Ok(thread.spawn(move || {
        while !inner.stop.sleep(every) {
            // A failed sync has poisoned the engine, which every later call reports.
            let _ = inner.tick();
            Inner::start_reclaim(&inner);
        }
    })?)
}

impl<B: Backend> Inner<B> {
    /// One round without reclaiming.
    pub(crate) fn tick(&self) -> Result<()> {
        let latest = self.latest().0.as_u64();
        let synced = self.sync_up_to(latest);
        self.enforce_caps();
        if let Some(_numbers) = self.applying.try_lock() {
            let current = Arc::clone(&self.current.read());
            if let Ok(snap) = self.backend.snapshot() {
                current.refresh(snap);
            }
            drop(current);
            if let Some(Ok(oldest)) = self.active.first().map(|view| view.raw()) {
                self.backend.housekeeping(&oldest);
            }
        }
        synced
    }

    /// The dropped ranges that no snapshot can need any more.
    fn reclaimable(&self) -> Vec<PendingDrop> {
        let drops = self.drops.lock();
        if drops.is_empty() {
            return Vec::new();
        }
        let oldest = self.active.oldest().unwrap_or(u64::MAX);
        drops.iter().filter(|drop| drop.version <= oldest).cloned().collect()
    }

    /// Starts a thread for reclaiming if there is something to do and none runs.
    fn start_reclaim(inner: &Arc<Self>) {
        if inner.broken.load(Ordering::Acquire) || inner.reclaimable().is_empty() {
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
                // What fails here stays recorded and is tried again by a later tick.
                let _ = shared.reclaim();
            })
            .ok();
    }

    /// Gives back the space of dropped ranges, then forgets their records.
    pub(crate) fn reclaim(&self) -> Result<()> {
        let _one_at_a_time = self.reclaiming.lock();
        let drops = self.reclaimable();
        if drops.is_empty() {
            return Ok(());
        }
        let ranges: Vec<_> = drops.iter().map(|drop| drop.range.clone()).collect();
        let apply = |ops: Vec<Op>| self.apply_own(ops);
        let stop = || self.stop.is_stopped();
        if !self.backend.reclaim(&ranges, &apply, &stop)? {
            return Ok(());
        }
        let records: Vec<Bytes> = drops.into_iter().map(|drop| drop.record).collect();
        let forget = |key: &Bytes| Op { space: Space::Meta, key: key.clone(), value: None };
        self.apply_own(records.iter().map(forget).collect())?;
        self.drops.lock().retain(|drop| !records.contains(&drop.record));
        Ok(())
    }

    /// A commit of the engine's own: nothing to clash with, no hurry.
    fn apply_own(&self, ops: Vec<Op>) -> Result<()> {
        let durability = Durability::Buffered;
        self.commit(CommitBatch { ops, durability, ..CommitBatch::default() }).map(|_| ())
    }
}
