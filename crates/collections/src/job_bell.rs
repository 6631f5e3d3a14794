//! The bell that wakes the runner of jobs: a commit that adds a job rings it, so that no thread has to
//! look into the table from time to time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quire_storage::Interrupt;

/// Counts the reasons to look into the table of jobs, and wakes the runners.
#[derive(Default)]
pub struct JobBell {
    rung: AtomicU64,
    nudged: AtomicU64,
    listeners: Mutex<Vec<Arc<Interrupt>>>,
}

impl JobBell {
    /// Wakes all listeners.
    pub fn ring(&self) {
        self.rung.fetch_add(1, Ordering::AcqRel);
        self.listeners.lock().iter().for_each(|listener| listener.notify());
    }

    /// Wakes all listeners, for jobs that they know already.
    pub fn nudge(&self) {
        self.nudged.fetch_add(1, Ordering::AcqRel);
        self.listeners.lock().iter().for_each(|listener| listener.notify());
    }

    /// Returns the number of calls of [`nudge`](Self::nudge).
    pub fn nudged(&self) -> u64 {
        self.nudged.load(Ordering::Acquire)
    }

    /// Returns how often the bell has rung. A runner reads it before it looks into the table.
    pub fn rung(&self) -> u64 {
        self.rung.load(Ordering::Acquire)
    }

    /// Notifies `listener` at each later ring, until [`leave`](Self::leave).
    pub fn listen(&self, listener: &Arc<Interrupt>) {
        self.listeners.lock().push(Arc::clone(listener));
    }

    /// Ends what [`listen`](Self::listen) began.
    pub fn leave(&self, listener: &Arc<Interrupt>) {
        self.listeners.lock().retain(|other| !Arc::ptr_eq(other, listener));
    }
}
