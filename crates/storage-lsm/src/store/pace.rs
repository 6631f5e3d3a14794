//! Slows writers down to the speed of the flushes when these are behind, and further the more
//! flushed tables wait for a merge. Without it, writers would run at full speed until too many
//! memtables or tables wait, and then stand still for a whole flush or merge.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::store::view::FRESH_RUNS_MAX;

/// The number of sealed memtables of one space from which on writers are slowed down, and the
/// number of runs of flushed tables beyond which they are.
const SEALED: usize = 2;
const FRESH_RUNS: usize = 8;
/// The bytes after which a writer pauses: for a millisecond if flushes write 128 MB a second.
const PIECE_BYTES: u64 = 128 << 10;
/// The longest pause, after a large batch or before the last runs.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The speed of flushes, and what was written since the last pause.
#[derive(Default)]
pub(crate) struct Pace {
    /// The mean of the last flushes, in bytes a second; 0 before the first one.
    speed: AtomicU64,
    unpaid: AtomicU64,
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

    /// Counts the `bytes` of a batch. Returns the pause that its writer owes; `None` if flushes and
    /// merges keep up, or if less than `PIECE_BYTES` were written since the last pause. `sealed`
    /// and `fresh_runs` are the most sealed memtables and the most runs of flushed tables of a
    /// space.
    pub fn pause(&self, bytes: u64, sealed: usize, fresh_runs: usize) -> Option<Duration> {
        let speed = self.speed.load(Ordering::Relaxed);
        if speed == 0 || (sealed < SEALED && fresh_runs <= FRESH_RUNS) {
            self.unpaid.store(0, Ordering::Relaxed);
            return None;
        }
        let left = FRESH_RUNS_MAX.saturating_sub(fresh_runs).clamp(1, FRESH_RUNS);
        let speed = speed as f64 * left as f64 / FRESH_RUNS as f64;
        let unpaid = self.unpaid.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unpaid < PIECE_BYTES {
            return None;
        }
        self.unpaid.store(0, Ordering::Relaxed);
        Some(Duration::from_secs_f64(unpaid as f64 / speed).min(PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_as_fast_as_the_flushes_while_these_are_behind() {
        let pace = Pace::default();
        assert_eq!(pace.pause(1 << 20, 9, 9), None, "no speed is known");
        pace.flushed(100 << 20, Duration::from_secs(1));
        assert_eq!(pace.pause(1 << 20, 1, 8), None, "they are not behind");
        for (sealed, runs, seconds) in [(2, 0, 1.0), (0, 12, 2.0), (2, 15, 8.0)] {
            let pauses = (0..1024 * 8).filter_map(|_| pace.pause(25 << 9, sealed, runs));
            let paused = pauses.sum::<Duration>().as_secs_f64();
            assert!((seconds * 0.9..seconds * 1.1).contains(&paused), "100 MB in {paused} s");
        }
        assert_eq!(pace.pause(1 << 30, 2, 0), Some(PAUSE_MAX));
    }
}
