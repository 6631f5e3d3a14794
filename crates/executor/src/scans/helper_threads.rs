//! Helper threads of executions. All executions together never run more of them than the machine
//! has processors; an execution that gets none works alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::params::processors;

/// The number of running helper threads of all executions.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// The permission to run this number of threads besides the caller's, until it is dropped.
pub(crate) struct Helpers(usize);

impl Helpers {
    /// Reserves at most `wanted` threads, or fewer if fewer are free.
    pub fn acquire(wanted: usize) -> Helpers {
        let left = |busy: usize| processors().saturating_sub(busy).min(wanted);
        let take = |busy| Some(busy + left(busy));
        let before = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        Helpers(left(before.unwrap_or(usize::MAX)))
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.0
    }

    /// Runs `help` on each of the threads, which are named `name`, and `own` on the calling thread.
    /// Returns the result of `own` after all have ended. If the system cannot start a thread,
    /// `help` runs on fewer.
    pub fn run<T>(&self, name: &str, help: impl Fn() + Sync, own: impl FnOnce() -> T) -> T {
        let help = || {
            help();
            quire_document::memory::release();
        };
        thread::scope(|scope| {
            for _ in 0..self.0 {
                let thread = thread::Builder::new().name(name.to_owned());
                if thread.spawn_scoped(scope, help).is_err() {
                    break;
                }
            }
            own()
        })
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::Relaxed);
    }
}
