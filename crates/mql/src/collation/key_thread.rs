//! A thread that makes the key of a string of megabytes, while the operation waits for it and checks
//! the interrupt.
//!
//! The library returns to its caller only where it writes to the key, and a character without a
//! primary weight writes nothing before the end of the string. An operation that must end leaves the
//! thread behind, which ends with the next kilobyte of the key or with the key: after 0.3 s for 16
//! MiB of combining marks.

use crate::context::work::LOOK_UNITS;
use crate::context::work_or_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The longest string in bytes whose key an operation makes on its own thread. The time between two
/// checks is then at most 20 ms.
pub(super) const OWN_THREAD_BYTES_MAX: usize = 1 << 20;

/// The largest number of these threads. Beyond it operations make their keys themselves, so that
/// those left behind cannot become many.
const THREADS_MAX: usize = 8;

/// The time between two checks of the interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(5);

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Runs what `prepare` returns on a thread of its own, and returns its result. The argument of that
/// function becomes true when the operation has ended. Returns `None` if there is no thread for it or
/// if it panics.
pub(super) fn on_own_thread<T, Make>(prepare: impl FnOnce() -> Make) -> Option<T>
where
    T: Send + 'static,
    Make: FnOnce(&AtomicBool) -> T + Send + 'static,
{
    let permit = Permit::take()?;
    let make = prepare();
    let waiting = Waiting(Arc::new(AtomicBool::new(false)));
    let abandoned = Arc::clone(&waiting.0);
    let (sender, made) = mpsc::sync_channel(1);
    let run = move || {
        let _permit = permit;
        // The operation may have ended.
        let _ = sender.send(make(&abandoned));
    };
    thread::Builder::new().name("long key".to_owned()).spawn(run).ok()?;
    loop {
        match made.recv_timeout(LOOK_EVERY) {
            Ok(made) => return Some(made),
            Err(RecvTimeoutError::Timeout) => work_or_unwind(LOOK_UNITS + 1),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Tells the thread when the operation no longer waits, also when it unwinds.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One of [`THREADS_MAX`].
struct Permit;

impl Permit {
    fn take() -> Option<Self> {
        let one_more = |threads: usize| (threads < THREADS_MAX).then_some(threads + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}
