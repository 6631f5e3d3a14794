//! Slows writers down to the speed of the flushes when these are behind, and further the more
//! flushed tables wait for a merge. Without it, writers would run at full speed until too many
//! memtables or tables wait, and then stand still for a whole flush or merge.
//!
//! Each batch that is written while flushes are behind moves a time into the future, by as long as
//! the flushes need for its bytes. A commit waits for that time before it is queued, so no commit
//! waits behind a pause of another one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::store::view::FRESH_RUNS_MAX;

/// The number of sealed memtables of one space from which on writers are slowed down, and the
/// number of runs of flushed tables beyond which they are.
const SEALED: usize = 2;
const FRESH_RUNS: usize = 8;
/// A shorter pause is not made. It is what 128 KB take if flushes write 128 MB a second.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause, after a large batch or before the last runs.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The speed of flushes, and the time from which on commits may be queued.
pub(crate) struct Pace {
    /// The mean of the last flushes, in bytes a second; 0 before the first one.
    speed: AtomicU64,
    born: Instant,
    /// The time before which no commit is queued, in nanoseconds after `born`; 0 while flushes and
    /// merges keep up.
    free_at: AtomicU64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { speed: AtomicU64::new(0), born: Instant::now(), free_at: AtomicU64::new(0) }
    }
}

impl Pace {
    /// Notes a flush of a memtable.
    pub fn flushed(&self, bytes: u64, took: Duration) {
        let speed = (bytes as f64 / took.as_secs_f64().max(1e-6)) as u64;
        let mean = match self.speed.load(Ordering::Relaxed) {
            0 => speed,
            before => before - before / 4 + speed / 4,
        };
        self.speed.store(mean, Ordering::Relaxed);
    }

    /// Counts the `bytes` of a batch. `sealed` and `fresh_runs` are the most sealed memtables and the
    /// most runs of flushed tables of a space. Calls must not overlap.
    pub fn wrote(&self, bytes: u64, sealed: usize, fresh_runs: usize) {
        let speed = self.speed.load(Ordering::Relaxed);
        if speed == 0 || (sealed < SEALED && fresh_runs <= FRESH_RUNS) {
            if self.free_at.load(Ordering::Relaxed) != 0 {
                self.free_at.store(0, Ordering::Relaxed);
            }
            return;
        }
        let left = FRESH_RUNS_MAX.saturating_sub(fresh_runs).clamp(1, FRESH_RUNS);
        let speed = speed as f64 * left as f64 / FRESH_RUNS as f64;
        self.charge(self.now(), (bytes as f64 / speed * 1e9) as u64);
    }

    /// Moves the time from which on commits may be queued by `cost` nanoseconds.
    fn charge(&self, now: u64, cost: u64) {
        let from = self.free_at.load(Ordering::Relaxed).max(now);
        let latest = now.saturating_add(PAUSE_MAX.as_nanos() as u64);
        self.free_at.store(from.saturating_add(cost).min(latest), Ordering::Relaxed);
    }

    /// Returns the time for which a commit waits before it is queued; `None` if it need not.
    #[inline]
    pub fn pause(&self) -> Option<Duration> {
        match self.free_at.load(Ordering::Relaxed) {
            0 => None,
            free_at => pause_until(free_at, self.now()),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn pause_until(free_at: u64, now: u64) -> Option<Duration> {
    let pause = Duration::from_nanos(free_at.saturating_sub(now));
    (pause >= PAUSE_MIN).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_queued_as_fast_as_flushes_write_while_these_are_behind() {
        let pace = Pace::default();
        pace.wrote(1 << 20, 9, 9);
        assert_eq!(pace.pause(), None, "no speed is known");
        pace.flushed(100 << 20, Duration::from_secs(1));
        pace.wrote(1 << 20, 1, 8);
        assert_eq!(pace.pause(), None, "they are not behind");
        pace.wrote(1 << 30, 2, 0);
        assert!(pace.pause().is_some_and(|pause| pause <= PAUSE_MAX), "the longest pause");
        pace.wrote(1, 0, 0);
        assert_eq!(pace.pause(), None, "they have caught up");
    }

    #[test]
    fn the_pauses_of_all_commits_add_up_to_what_their_bytes_take() {
        let pace = Pace::default();
        let (mut now, cost) = (1, 300_000);
        for _ in 0..1000 {
            // Writing itself takes a tenth of what the flushes need.
            now += cost / 10;
            pace.charge(now, cost);
            let pause = pause_until(pace.free_at.load(Ordering::Relaxed), now);
            now += pause.map_or(0, |pause| pause.as_nanos() as u64);
        }
        let wanted = 1000 * cost;
        assert!((wanted * 9 / 10..=wanted * 11 / 10).contains(&now), "{now} of {wanted}");
    }
}
