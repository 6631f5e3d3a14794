//! The cluster time of a server: what clients receive, and how far ahead of the wall clock they may
//! advance it. After the wall clock was ahead and was set back, drivers send times that are far ahead
//! of it. So the latest date of the wall clock is stored.

use quire_collections::Store;
use quire_document::{Timestamp, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{Clock, ClusterTime, CommitOptions, Engine};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How far ahead of the wall clock a client may advance the cluster time, in seconds. MongoDB:
/// `maxAcceptableLogicalClockDriftSecs`.
const DRIFT_SECS_MAX: i64 = 365 * DAY_SECS;

const DAY_SECS: i64 = 24 * 60 * 60;

/// The name of the stored setting.
const SETTING: &str = "clock";

/// The cluster time of one server. It never goes back.
pub(crate) struct ClusterClock {
    engine: Arc<dyn Engine>,
    store: Arc<Store>,
    wall: Arc<dyn Clock>,
    /// The latest cluster time that was sent to or received from clients.
    exchanged: AtomicU64,
    /// The stored date: the latest that the wall clock has shown, rounded up by as much as a day, in
    /// seconds since 1970.
    wall_secs_max: AtomicI64,
    storing: Mutex<()>,
    /// The times of clients that were too far ahead.
    refused: AtomicU64,
}

impl ClusterClock {
    /// Returns the cluster time of a server that starts, with the stored date.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn open(
        engine: &Arc<dyn Engine>,
        store: &Arc<Store>,
        wall: Arc<dyn Clock>,
    ) -> Result<ClusterClock> {
        let stored = store.setting(SETTING)?;
        let latest = match stored.as_ref().and_then(|stored| stored.get("latest")) {
            Some(Value::Date(ms)) => ms,
            _ => 0,
        };
        Ok(ClusterClock {
            engine: Arc::clone(engine),
            store: Arc::clone(store),
            wall,
            exchanged: AtomicU64::new(0),
            wall_secs_max: AtomicI64::new(latest / 1000),
            storing: Mutex::default(),
            refused: AtomicU64::new(0),
        })
    }

    /// Returns the time of the last commit, or a later one that a client knows; never before the
    /// start of this process.
    pub fn now(&self) -> Timestamp {
        let exchanged = self.exchanged.load(Ordering::Acquire);
        Timestamp::from_u64(self.engine.cluster_time().0.max(exchanged))
    }

    /// Advances the cluster time to the wall clock.
    pub fn start(&self) {
        let wall = ClusterTime::default().next(self.wall.now_ms());
        self.advance(Timestamp::from_u64(wall.0));
    }

    /// Returns a time after all earlier ones.
    pub fn tick(&self) -> Timestamp {
        let next = ClusterTime(self.now().to_u64()).next(self.wall.now_ms());
        let next = Timestamp::from_u64(next.0);
        self.advance(next);
        next
    }

    /// Advances the cluster time to the time of a client's request.
    ///
    /// # Errors
    /// 205 ClusterTimeFailsRateLimiter for a time that is too far ahead.
    pub fn hear(&self, time: Timestamp) -> Result<()> {
        // Drivers send a time that this server has sent before.
        if time <= self.now() {
            return Ok(());
        }
        let wall_secs = self.wall_secs();
        let latest = wall_secs.max(self.wall_secs_max.load(Ordering::Acquire));
        if i64::from(time.seconds) > latest + DRIFT_SECS_MAX {
            let text = format!(
                "New cluster time, {}, is too far from this node's wall clock time, {wall_secs}.",
                time.seconds
            );
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Error::new(ErrorCode::ClusterTimeFailsRateLimiter, text));
        }
        self.advance(time);
        Ok(())
    }

    /// Returns how many times of clients were too far ahead.
    pub fn refusals(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Stores the date of the wall clock if it is later than the stored one: once a day, and after a jump
    /// ahead. The service calls it when it opens, and the background job twice a second.
    ///
    /// # Errors
    /// The errors of the storage; the next call tries again.
    pub fn keep(&self) -> Result<()> {
        if self.wall_secs() <= self.wall_secs_max.load(Ordering::Acquire) {
            return Ok(());
        }
        let _alone = self.storing.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = self.wall_secs() + DAY_SECS;
        let setting = doc! { "latest": Value::Date(latest * 1000) };
        self.store.put_setting(SETTING, setting.as_doc(), CommitOptions::synced())?;
        self.wall_secs_max.fetch_max(latest, Ordering::AcqRel);
        Ok(())
    }

    /// Advances the clock: every later commit has a later time.
    fn advance(&self, to: Timestamp) {
        let to = to.to_u64();
        if self.exchanged.fetch_max(to, Ordering::AcqRel) < to {
            self.engine.advance_clock(ClusterTime(to));
        }
    }

    fn wall_secs(&self) -> i64 {
        i64::try_from(self.wall.now_ms() / 1000).unwrap_or(i64::MAX)
    }
}
