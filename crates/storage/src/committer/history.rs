//! Views of recent commits. A reply contains the time of the data that it shows, and a later read
//! may request that time when newer commits exist. Therefore the backend's snapshots of recent
//! groups are kept: for the length of the window, at most [`VIEWS_MAX`] of them, and until
//! [`BYTES_MAX`] were written since. Their cost is what the oldest of them retains. The conflict
//! table keeps its entries for them, because a transaction may begin on one, and dropped ranges are
//! reclaimed only after the views are gone.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::committer::Inner;
use crate::committer::views::View;
use crate::contract::{ClusterTime, Version};
use crate::error::{Result, StorageError};

/// The most bytes committed since the oldest view in the history.
const BYTES_MAX: u64 = 8 << 20;
/// The most views in the history. A busy server creates some thousand views a second.
const VIEWS_MAX: usize = 10_000;

/// A view that a newer one has replaced.
pub(crate) struct Past<S> {
    pub version: Version,
    pub cluster_time: ClusterTime,
    /// The time of the first commit after the view. The view is the state at every time before it.
    until: ClusterTime,
    pub snap: Arc<S>,
    pub written_before: u64,
    since: Instant,
}

/// The views of recent commits, oldest first.
pub(crate) struct History<S> {
    past: VecDeque<Past<S>>,
    window: Duration,
    /// Times before this one are unknown: the engine was opened then.
    begins: ClusterTime,
}

impl<S> History<S> {
    pub fn new(window: Duration, begins: ClusterTime) -> Self {
        Self { past: VecDeque::new(), window, begins }
    }

    /// Keeps a view that is about to be replaced. `until` is the time of the next commit, `written`
    /// the number of bytes committed since the engine was opened.
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

    /// Discards views that are too old.
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

    /// Discards all views.
    pub fn clear(&mut self) {
        self.past = VecDeque::new();
    }

    /// Returns the view of a time. Returns `None` for a time before the history, or between two
    /// commits of one group, which no reply contains.
    fn at(&self, time: ClusterTime) -> Option<&Past<S>> {
        if time < self.begins {
            return None;
        }
        let next = self.past.partition_point(|past| past.cluster_time <= time);
        self.past.get(next.checked_sub(1)?).filter(|past| time < past.until)
    }

    /// Returns the oldest view in the history.
    pub fn oldest(&self) -> Option<&Past<S>> {
        self.past.front()
    }
}

impl<B: Backend> Inner<B> {
    /// Returns the view of a time: the latest one if there is no newer commit, or one of the
    /// history.
    pub(crate) fn view_at(&self, time: ClusterTime) -> Result<Arc<View<B::Snap>>> {
        let latest = Arc::clone(&self.current.read());
        if latest.cluster_time == time {
            return Ok(latest);
        }
        if latest.cluster_time < time {
            // No commit in progress may get this time or an earlier one.
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

    /// Sets the window of the history.
    pub(crate) fn set_history(&self, window: Duration) {
        let written = self.meters.written_bytes.load(Ordering::Relaxed);
        let mut history = self.history.lock();
        history.window = window;
        history.expire(written);
    }

    /// Returns the oldest version that an open snapshot or the history uses.
    pub(crate) fn oldest_version(&self) -> Option<u64> {
        let kept = self.history.lock().oldest().map(|past| past.version.as_u64());
        kept.into_iter().chain(self.active.oldest()).min()
    }

    /// Returns the oldest of the snapshots for which the backend keeps later versions.
    pub(crate) fn oldest_snapshot(&self) -> Option<Arc<B::Snap>> {
        let kept = self.history.lock().oldest().map(|past| (past.version, Arc::clone(&past.snap)));
        let used = self.active.first_live().and_then(|view| Some((view.version, view.raw().ok()?)));
        kept.into_iter().chain(used).min_by_key(|(version, _)| *version).map(|(_, snap)| snap)
    }
}
