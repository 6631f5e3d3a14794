//! Bounds the memory of messages in progress, over all connections. Without it every client could
//! have one of the largest messages in memory at the same time.

use crate::clients::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Messages up to this size are not counted: the limit on connections bounds them.
pub(crate) const UNCOUNTED_BYTES: u64 = 64 << 10;

/// If nothing was returned for this long, the first waiter continues above the bound: the holders
/// may wait for something that only it can end, such as a transaction's lock.
const STALL: Duration = Duration::from_secs(1);
/// The interval at which the first waiter checks whether the server stops, and the others.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const OTHERS_LOOK_EVERY: Duration = Duration::from_secs(1);

/// A number of bytes to share, in the order of the requests.
pub(crate) struct Budget {
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    used: u64,
    waiting: VecDeque<u64>,
    next_ticket: u64,
    /// The time when bytes were last returned, or granted above the bound.
    moved: Instant,
}

/// Bytes of a budget. Dropping the value returns them.
pub(crate) struct Share<'b> {
    budget: &'b Budget,
    bytes: u64,
}

impl Budget {
    /// Returns a budget of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Budget {
        let waiting = VecDeque::new();
        let state = State { used: 0, waiting, next_ticket: 0, moved: Instant::now() };
        Budget { bytes_max, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes `bytes`, and waits until they are available. A request for more than the whole budget
    /// is granted when no other bytes are taken. `None` if the server stops first. Requests up to
    /// [`UNCOUNTED_BYTES`] are free.
    pub fn take(&self, bytes: u64, stopping: &AtomicBool) -> Option<Share<'_>> {
        if bytes <= UNCOUNTED_BYTES {
            return Some(Share { budget: self, bytes: 0 });
        }
        let mut state = lock(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(ticket);
        loop {
            if stopping.load(Ordering::Acquire) {
                state.waiting.retain(|waiting| *waiting != ticket);
                self.changed.notify_all();
                return None;
            }
            let is_first = state.waiting.front() == Some(&ticket);
            let fits = state.used == 0 || state.used.saturating_add(bytes) <= self.bytes_max;
            if is_first && (fits || state.moved.elapsed() >= STALL) {
                state.waiting.pop_front();
                state.used += bytes;
                state.moved = Instant::now();
                self.changed.notify_all();
                return Some(Share { budget: self, bytes });
            }
            let look_every = if is_first { LOOK_EVERY } else { OTHERS_LOOK_EVERY };
            let waited = self.changed.wait_timeout(state, look_every);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns true if kept buffers should be freed: others wait, or soon will.
    pub fn is_scarce(&self) -> bool {
        let state = lock(&self.state);
        !state.waiting.is_empty() || state.used > self.bytes_max / 2
    }

    /// Returns true if a request waits.
    pub fn is_awaited(&self) -> bool {
        !lock(&self.state).waiting.is_empty()
    }

    /// Returns how many more bytes are taken than the budget has.
    pub fn excess(&self) -> u64 {
        lock(&self.state).used.saturating_sub(self.bytes_max)
    }

    /// Takes `bytes` at once, if necessary above the bound: for memory that is in use already.
    pub fn note(&self, bytes: u64) -> Share<'_> {
        let bytes = if bytes <= UNCOUNTED_BYTES { 0 } else { bytes };
        if bytes > 0 {
            lock(&self.state).used += bytes;
        }
        Share { budget: self, bytes }
    }
}

impl Share<'_> {
    /// Returns the bytes of the share.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut state = lock(&self.budget.state);
            state.used -= self.bytes;
            state.moved = Instant::now();
            drop(state);
            self.budget.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const MIB: u64 = 1 << 20;

    #[test]
    fn requests_beyond_the_budget_wait_until_there_is_room_or_nothing_moves() {
        let (budget, run, stop) =
            (Budget::new(10 * MIB), AtomicBool::new(false), AtomicBool::new(true));
        let first = budget.take(8 * MIB, &run);
        assert!(first.is_some() && budget.take(UNCOUNTED_BYTES, &run).is_some());
        assert!(budget.take(3 * MIB, &stop).is_none());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.take(3 * MIB, &run).map(|share| share.bytes()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!second.is_finished());
            drop(first);
            assert_eq!(second.join().ok().flatten(), Some(3 * MIB));
        });
        // Above the bound, after nothing was returned for a while.
        let _large = budget.take(99 * MIB, &run);
        let since = Instant::now();
        assert!(budget.take(MIB, &run).is_some());
        assert!(since.elapsed() >= STALL - LOOK_EVERY);
        assert_eq!(budget.note(MIB).bytes(), MIB);
    }

    /// A regression test: 48 clients that replaced documents of 15 MB took 4.3 GB.
    #[test]
    fn messages_under_way_stay_within_the_budget() {
        let (budget, run) = (Budget::new(128 * MIB), AtomicBool::new(false));
        let (held, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..48 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        let share = budget.take(15 * MIB, &run);
                        let now = held.fetch_add(15 * MIB, Ordering::Relaxed) + 15 * MIB;
                        most.fetch_max(now, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(1));
                        held.fetch_sub(15 * MIB, Ordering::Relaxed);
                        drop(share);
                    }
                });
            }
        });
        let most = most.into_inner() / MIB;
        // One more if this process was stopped for a second.
        assert!((15..=128 + 15).contains(&most), "{most} MiB were held at once");
        assert_eq!(lock(&budget.state).used, 0);
    }
}
