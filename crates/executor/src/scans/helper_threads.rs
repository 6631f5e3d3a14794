//! Threads that help executions. Never more of them run than the machine has processors, over all
//! executions: who finds none left works alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::params::processors;

static BUSY: AtomicUsize = AtomicUsize::new(0);
/// Permission to run this number of threads besides the caller's own, until it is dropped.
pub(crate) struct Helpers(usize);

impl Helpers {
    /// As many as are left, at most `wanted`.
    pub fn acquire(wanted: usize) -> Helpers {
        let left = |busy: usize| processors().saturating_sub(busy).min(wanted);
        let take = |busy| Some(busy + left(busy));
        let before = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        Helpers(left(before.unwrap_or(usize::MAX)))
    }

    /// How many threads.
    pub fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::Relaxed);
    }
}
