//! Helper threads of long scans and of index builds. All operations together never run more of them
//! than the machine has processors; an operation that gets none works alone.

use quire_document::memory;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of running helper threads of all operations.
static BUSY: AtomicUsize = AtomicUsize::new(0);

static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

/// Returns the number of processors of the machine.
pub fn processors() -> usize {
    *PROCESSORS
}

/// The permission to run this number of threads besides the caller's, until it is dropped.
pub struct Helpers(usize);

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
        let pool = memory::current_pool();
        let help = || {
            match &pool {
                Some(pool) => pool.within(&help),
                None => help(),
            }
            memory::release();
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
