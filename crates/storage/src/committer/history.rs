//! The recent past. A reply tells the time of what it shows, and a later read may ask for that
//! time when newer commits exist. So the backend's snapshots of the last groups are kept:
//! [`VIEWS_MAX`] at most, as long as the window says, and while at most [`BYTES_MAX`] were written
//! since. They cost what the oldest of them retains. The conflict table keeps its entries for them,
//! because a transaction may begin on one, and dropped ranges are reclaimed after they are gone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::committer::Inner;
use crate::committer::views::View;
use crate::contract::{ClusterTime, Version};
use crate::error::{Result, StorageError};

/// Bytes committed since the oldest view that is kept.
const BYTES_MAX: u64 = 8 << 20;
/// Views that are kept: a busy server makes some thousand a second.
const VIEWS_MAX: usize = 10_000;

/// A view that a newer one has replaced.
pub(crate) struct Past<S> {
    pub version: Version,
    pub cluster_time: ClusterTime,
    /// The time of the first commit after it: the view is the state at every time before.
    until: ClusterTime,
    pub snap: Arc<S>,
    pub written_before: u64,
    since: Instant,
}

/// The views of the recent past, oldest first.
pub(crate) struct History<S> {
    past: VecDeque<Past<S>>,
    window: Duration,
    /// No time before the engine's beginning is known.
    begins: ClusterTime,
}

impl<S> History<S> {
    pub fn new(window: Duration, begins: ClusterTime) -> Self {
        Self { past: VecDeque::new(), window, begins }
    }

    /// Keeps a view that is replaced now. `until` is the time of the next commit, `written` the
    /// number of bytes committed since the engine was opened.
    pub fn keep(&mut self, view: &View<S>, until: ClusterTime, written: u64) {
        if self.window.is_zero() {
            return;
        }
        let Ok(snap) = view.raw() else { return };
        self.past.push_back(Past {
            version: view.version,
            cluster_time: view.cluster_time,
            until,
            snap,
            written_before: view.written_before,
            since: Instant::now(),
        });
        self.expire(written);
    }

    /// Forgets what has become too old.
    pub fn expire(&mut self, written: u64) {
        while let Some(oldest) = self.past.front() {
            let retained = written.saturating_sub(oldest.written_before);
            if retained <= BYTES_MAX
                && self.past.len() <= VIEWS_MAX
                && oldest.since.elapsed() < self.window
            {
                return;
            }
            self.past.pop_front();
        }
    }

    /// Forgets every state that was kept.
    pub fn clear(&mut self) {
        self.past = VecDeque::new();
    }

    /// The state at a time. None for a time that lies before the history, or between two commits
    /// of one group, which no reply has ever told.
    fn at(&self, time: ClusterTime) -> Option<&Past<S>> {
        if time < self.begins {
            return None;
        }
        let next = self.past.partition_point(|past| past.cluster_time <= time);
        self.past.get(next.checked_sub(1)?).filter(|past| time < past.until)
    }

    /// The oldest view that is kept.
    pub fn oldest(&self) -> Option<&Past<S>> {
        self.past.front()
    }
}

impl<B: Backend> Inner<B> {
    /// The state at a time: the latest one if nothing newer was committed, or one of the past.
    pub(crate) fn view_at(&self, time: ClusterTime) -> Result<Arc<View<B::Snap>>> {
        let latest = Arc::clone(&self.current.read());
        if latest.cluster_time == time {
            return Ok(latest);
        }
        if latest.cluster_time < time {
            // No commit on its way may get this time or an earlier one.
            let _between_groups = self.applying.lock();
            self.clock_floor.fetch_max(time.0, Ordering::AcqRel);
            let latest = Arc::clone(&self.current.read());
            if latest.cluster_time <= time {
                return Ok(latest);
            }
        }
        drop(latest);
        let history = self.history.lock();
        let past = history.at(time).ok_or(StorageError::SnapshotTooOld)?;
        Ok(View::of_the_past(&self.active, past))
    }

    /// How long the past stays readable.
    pub(crate) fn set_history(&self, window: Duration) {
        let written = self.meters.written_bytes.load(Ordering::Relaxed);
        let mut history = self.history.lock();
        history.window = window;
        history.expire(written);
    }

    /// The oldest version that a snapshot in use or the history stands on.
    pub(crate) fn oldest_version(&self) -> Option<u64> {
        let kept = self.history.lock().oldest().map(|past| past.version.as_u64());
        kept.into_iter().chain(self.active.oldest()).min()
    }

    /// The backend's snapshot of the oldest version for which it keeps later versions.
    pub(crate) fn oldest_snapshot(&self) -> Option<Arc<B::Snap>> {
        let kept = self.history.lock().oldest().map(|past| (past.version, Arc::clone(&past.snap)));
        let used = self.active.first_live().and_then(|view| Some((view.version, view.raw().ok()?)));
        kept.into_iter().chain(used).min_by_key(|(version, _)| *version).map(|(_, snap)| snap)
    }
}
