//! The one primitive for waiting. Every operation has one `Interrupt`, and uses it for each of its
//! waits (for a lock, for backpressure, for new data). So a kill, a deadline, a lost client or a
//! shutdown ends every wait at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The reason why an operation must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// A command killed it (`killOp`, `killSessions`, `killCursors`).
    Killed,
    /// `maxTimeMS` or another deadline passed.
    DeadlineExceeded,
    /// The client has disconnected.
    Disconnected,
    /// The server is shutting down.
    ShuttingDown,
    /// The transaction that the operation belongs to has been open for too long.
    TransactionExpired,
}

const NO_DEADLINE: u64 = u64::MAX;

/// A kill switch, a deadline, and a condition to wait for. Each operation has one, shared by `Arc`.
#[derive(Debug)]
pub struct Interrupt {
    reason: AtomicU8,
    born: Instant,
    /// The deadline in nanoseconds after `born`.
    deadline: AtomicU64,
    gate: Mutex<u64>,
    changed: Condvar,
    /// The waits for other operations that go on now: for their transactions, or for keys that they
    /// have written.
    lock_waits: AtomicU32,
    /// The conflicts with other writers so far.
    conflicts: AtomicU32,
}

/// Marks that an operation waits for another one, until it is dropped.
#[derive(Debug)]
pub struct LockWait<'i>(&'i Interrupt);

impl Drop for LockWait<'_> {
    fn drop(&mut self) {
        self.0.lock_waits.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Returns an interrupt without a deadline.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            reason: AtomicU8::new(0),
            born: Instant::now(),
            deadline: AtomicU64::new(NO_DEADLINE),
            gate: Mutex::new(0),
            changed: Condvar::new(),
            lock_waits: AtomicU32::new(0),
            conflicts: AtomicU32::new(0),
        })
    }

    /// Returns an interrupt whose deadline is `after` from now.
    pub fn with_deadline(after: Duration) -> Arc<Self> {
        let this = Self::new();
        this.set_deadline(Some(Instant::now() + after));
        this
    }

    /// Sets or removes the deadline.
    pub fn set_deadline(&self, at: Option<Instant>) {
        let nanos = at.map_or(NO_DEADLINE, |at| {
            let after = at.saturating_duration_since(self.born).as_nanos();
            u64::try_from(after).unwrap_or(NO_DEADLINE)
        });
        self.deadline.store(nanos, Ordering::Release);
        self.notify();
    }

    /// Returns the deadline, if there is one.
    pub fn deadline(&self) -> Option<Instant> {
        match self.deadline.load(Ordering::Acquire) {
            NO_DEADLINE => None,
            nanos => Some(self.born + Duration::from_nanos(nanos)),
        }
    }

    /// Stops the operation. The first reason is kept.
    pub fn kill(&self, reason: Interruption) {
        let code = match reason {
            Interruption::Killed => 1,
            Interruption::DeadlineExceeded => 2,
            Interruption::Disconnected => 3,
            Interruption::ShuttingDown => 4,
            Interruption::TransactionExpired => 5,
        };
        let _ = self.reason.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        self.notify();
    }

    /// Fails if the operation must stop. Takes some nanoseconds without a deadline, and reads the
    /// clock with one, so callers use it once for each page or batch, not for each document.
    pub fn check(&self) -> Result<(), Interruption> {
        #[cfg(feature = "testing")]
        observe::checked(self);
        match self.reason.load(Ordering::Acquire) {
            0 => {}
            1 => return Err(Interruption::Killed),
            2 => return Err(Interruption::DeadlineExceeded),
            3 => return Err(Interruption::Disconnected),
            5 => return Err(Interruption::TransactionExpired),
            _ => return Err(Interruption::ShuttingDown),
        }
        let deadline = self.deadline.load(Ordering::Acquire);
        if deadline != NO_DEADLINE && self.born.elapsed().as_nanos() >= u128::from(deadline) {
            return Err(Interruption::DeadlineExceeded);
        }
        Ok(())
    }

    /// Waits until `ready` returns true, until `timeout`, or until an interruption, which is an
    /// error. Returns true if `ready` came first, false if the timeout did. The thread that makes
    /// `ready` true must call [`notify`](Self::notify) afterwards.
    pub fn wait(
        &self,
        timeout: Option<Duration>,
        mut ready: impl FnMut() -> bool,
    ) -> Result<bool, Interruption> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        let mut seen = self.gate.lock();
        loop {
            self.check()?;
            if ready() {
                return Ok(true);
            }
            let now = Instant::now();
            if until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            match (until, self.deadline()) {
                (None, None) => self.changed.wait(&mut seen),
                (a, b) => {
                    let next = a.into_iter().chain(b).min().unwrap_or(now);
                    self.changed.wait_until(&mut seen, next);
                }
            }
        }
    }

    /// Marks the operation as waiting for another one, until the result is dropped.
    pub fn wait_for_lock(&self) -> LockWait<'_> {
        self.lock_waits.fetch_add(1, Ordering::Relaxed);
        LockWait(self)
    }

    /// Returns true while the operation waits for another one.
    pub fn is_waiting_for_lock(&self) -> bool {
        self.lock_waits.load(Ordering::Relaxed) > 0
    }

    /// Counts a conflict with another writer.
    pub fn note_conflict(&self) {
        self.conflicts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of conflicts with other writers so far.
    pub fn conflicts(&self) -> u32 {
        self.conflicts.load(Ordering::Relaxed)
    }

    /// Wakes a waiter, which then evaluates its condition again.
    pub fn notify(&self) {
        *self.gate.lock() += 1;
        self.changed.notify_all();
    }
}

/// For tests that measure how much work is done between two checks.
#[cfg(feature = "testing")]
pub mod observe {
    use super::Interrupt;
    use std::cell::RefCell;

    /// What a test does at a check.
    pub type Observer = Box<dyn FnMut(&Interrupt)>;

    thread_local! {
        static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
    }

    /// Runs `work`; `observer` is called at the beginning of each check on this thread meanwhile.
    pub fn observed<T>(observer: Observer, work: impl FnOnce() -> T) -> T {
        OBSERVER.set(Some(observer));
        let result = work();
        OBSERVER.set(None);
        result
    }

    pub(super) fn checked(interrupt: &Interrupt) {
        OBSERVER.with_borrow_mut(|observer| {
            if let Some(observer) = observer {
                observer(interrupt);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_kill_ends_a_wait_and_the_first_reason_stays() {
        let interrupt = Interrupt::new();
        let other = Arc::clone(&interrupt);
        let waiter = std::thread::spawn(move || other.wait(None, || false));
        interrupt.kill(Interruption::Disconnected);
        interrupt.kill(Interruption::Killed);
        assert_eq!(waiter.join().unwrap(), Err(Interruption::Disconnected));
        assert_eq!(interrupt.check(), Err(Interruption::Disconnected));
    }

    #[test]
    fn deadline_timeout_and_condition() {
        let interrupt = Interrupt::with_deadline(Duration::from_millis(5));
        assert_eq!(interrupt.wait(None, || false), Err(Interruption::DeadlineExceeded));
        let interrupt = Interrupt::new();
        assert_eq!(interrupt.wait(Some(Duration::from_millis(1)), || false), Ok(false));
        let flag = Arc::new(AtomicBool::new(false));
        let (other, seen) = (Arc::clone(&interrupt), Arc::clone(&flag));
        let waiter = std::thread::spawn(move || other.wait(None, || seen.load(Ordering::SeqCst)));
        flag.store(true, Ordering::SeqCst);
        interrupt.notify();
        assert_eq!(waiter.join().unwrap(), Ok(true));
    }
}
