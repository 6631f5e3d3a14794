//! The committer, which makes an engine from a backend: group commit, conflict detection, locks,
//! versions and cluster time, exact counters, dropped ranges, snapshots with caps, the sync of
//! buffered commits every 100 ms, and poisoning. Every local engine is a `Committer`.

mod engine;
mod group;
mod history;
mod keys;
mod lines;
mod records;
mod ticker;
mod views;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::backend::Backend;
use crate::clock::{Clock, SystemClock};
use crate::contract::{ClusterTime, DropRange};
use crate::error::{Result, StorageError};
use crate::watch::Watches;
use group::Queue;
use history::History;
use keys::KeyTable;
use records::{CountsByCollection, Recovered};
use views::{Active, View};

pub use records::{GroupPlace, LOG_END, group_place, log_key, seek_log, split_log_key};

/// The options of a committer.
#[derive(Clone)]
pub struct CommitterOptions {
    /// The source of cluster times.
    pub clock: Arc<dyn Clock>,
    /// How long a snapshot may live after the first newer commit.
    pub snapshot_age_max: Duration,
    /// How many bytes may be committed during the life of a snapshot before the backend must hold
    /// it separately (`Backend::hold`). If the backend cannot, the snapshot is revoked.
    pub snapshot_retained_bytes_max: u64,
    /// How much memory the held snapshots may use. A snapshot that would exceed it is not held.
    pub snapshots_held_bytes_max: u64,
    /// How long after the first newer commit a snapshot is exempt from the cap on bytes, so that a
    /// single statement completes even under heavy load.
    pub snapshot_grace: Duration,
    /// How long a view can be requested by its time after a newer one has replaced it.
    pub history_window: Duration,
    /// The most keys in the conflict table. Beyond it, commits on older snapshots fail with
    /// `SnapshotTooOld`.
    pub conflict_keys_max: usize,
    /// How often buffered commits are forced to stable storage. `None` for simulations, which call
    /// `maintenance(Tick)`.
    pub tick: Option<Duration>,
}

impl Default for CommitterOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            snapshot_age_max: Duration::from_secs(90),
            snapshot_retained_bytes_max: 32 << 20,
            snapshots_held_bytes_max: 256 << 20,
            snapshot_grace: Duration::from_secs(1),
            history_window: Duration::from_secs(60),
            conflict_keys_max: 4 << 20,
            tick: Some(Duration::from_millis(100)),
        }
    }
}

/// An engine that stores its data in a backend.
pub struct Committer<B: Backend> {
    inner: Arc<Inner<B>>,
    ticker: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// The state that the engine and its threads share.
pub(crate) struct Inner<B: Backend> {
    backend: B,
    options: CommitterOptions,
    /// The commits that wait for a leader.
    queue: Mutex<Queue>,
    /// Held by the leader from conflict checks to publication, and by code that must not see a
    /// half-applied group.
    applying: Mutex<Numbers>,
    keys: Mutex<KeyTable>,
    /// The bases of commits in progress. The conflict information for them must be kept, even if
    /// their snapshots are revoked meanwhile.
    bases: Mutex<group::Bases>,
    counts: Mutex<CountsByCollection>,
    current: RwLock<Arc<View<B::Snap>>>,
    active: Arc<Active<B::Snap>>,
    /// Held while the caps on snapshots are enforced.
    capping: Mutex<()>,
    history: Mutex<History<B::Snap>>,
    /// Dropped ranges that are not permanently gone, by the version of their drop.
    drops: Mutex<Vec<PendingDrop>>,
    reclaimer: Mutex<Option<std::thread::JoinHandle<()>>>,
    reclaiming: Mutex<()>,
    retries: Mutex<ticker::Retries>,
    /// Every later commit gets a cluster time after this one.
    clock_floor: AtomicU64,
    /// Everything up to this version is on stable storage.
    durable: AtomicU64,
    /// True while a thread forces commits to stable storage. The condition variable wakes the
    /// threads that wait for `durable` to rise.
    synced: (Mutex<bool>, Condvar),
    poisoned: RwLock<Option<String>>,
    broken: AtomicBool,
    closed: AtomicBool,
    stop: ticker::StopSignal,
    /// The readers that wait for commits.
    watches: Arc<Watches>,
    /// The version at which the change records begin. Locked during truncation.
    log_begin: Mutex<u64>,
    pub(crate) meters: Meters,
}

/// The version and cluster time of the last commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    version: u64,
    cluster_time: ClusterTime,
}

/// A dropped range, and its record in `Meta`.
#[derive(Debug, Clone)]
pub(crate) struct PendingDrop {
    version: u64,
    record: bytes::Bytes,
    range: DropRange,
    /// The space is reclaimed. The record stays as long as a crash could bring the range back.
    freed: bool,
}

/// Counters since the engine was opened.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    commits: AtomicU64,
    conflicts: AtomicU64,
    groups: AtomicU64,
    fsyncs: AtomicU64,
    written_bytes: AtomicU64,
    pressure_us: AtomicU64,
    revoked: AtomicU64,
}

/// Held by the thread that forces commits to stable storage.
struct Syncing<'a>(&'a (Mutex<bool>, Condvar));

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = false;
        self.0.1.notify_all();
    }
}

impl<B: Backend> Committer<B> {
    /// Opens an engine: reads the engine's records from the backend and starts the ticker.
    pub fn open(backend: B, options: CommitterOptions) -> Result<Self> {
        let Recovered { version, cluster_time, counts, drops, log_begin } =
            records::recover(&backend.snapshot()?)?;
        let begins = match version {
            0 => ClusterTime::default().next(options.clock.now_ms()),
            _ => cluster_time,
        };
        let active = Arc::new(Active::default());
        let view = View::new(&active, version, cluster_time, backend.snapshot()?, 0);
        let inner = Arc::new(Inner {
            queue: Mutex::default(),
            applying: Mutex::new(Numbers { version, cluster_time }),
            keys: Mutex::new(KeyTable::new(options.conflict_keys_max, version)),
            bases: Mutex::default(),
            counts: Mutex::new(counts),
            current: RwLock::new(view),
            active,
            capping: Mutex::new(()),
            history: Mutex::new(History::new(options.history_window, begins)),
            drops: Mutex::new(drops),
            reclaimer: Mutex::new(None),
            reclaiming: Mutex::new(()),
            retries: Mutex::default(),
            clock_floor: AtomicU64::new(cluster_time.0),
            durable: AtomicU64::new(version),
            synced: Default::default(),
            poisoned: RwLock::new(None),
            broken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            stop: ticker::StopSignal::default(),
            watches: Watches::new(version),
            log_begin: Mutex::new(log_begin),
            meters: Meters::default(),
            backend,
            options,
        });
        let ticker = match inner.options.tick {
            Some(every) => Some(ticker::start(&inner, every)?),
            None => None,
        };
        Ok(Self { inner, ticker: Mutex::new(ticker) })
    }

    /// Returns the backend, for functions that are not in the contract.
    pub fn backend(&self) -> &B {
        &self.inner.backend
    }
}

impl<B: Backend> Inner<B> {
    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StorageError::Closed);
        }
        Ok(())
    }

    /// Fails if the engine is closed or poisoned.
    fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.check_sound()
    }

    fn check_sound(&self) -> Result<()> {
        if self.broken.load(Ordering::Acquire) {
            let why = self.poisoned.read().clone().unwrap_or_default();
            return Err(StorageError::Unavailable(why));
        }
        Ok(())
    }

    /// Poisons the engine: it accepts no more writes, because the state on disk is unknown after a
    /// failed write or fsync.
    fn poison(&self, why: &str) {
        self.poisoned.write().get_or_insert_with(|| why.to_owned());
        self.broken.store(true, Ordering::Release);
        // Called without the lock above, because a thread that waits for a sync reads the reason
        // while it holds the lock of `synced`.
        self.announce_synced();
        self.watches.end(StorageError::Unavailable(why.to_owned()));
    }

    /// Records that everything up to this version is on stable storage.
    fn note_durable(&self, version: u64) {
        self.raise_durable(version);
        self.announce_synced();
    }

    fn raise_durable(&self, version: u64) {
        self.durable.fetch_max(version, Ordering::AcqRel);
        self.backend.note_durable(version);
        self.watches.announce_durable(version);
    }

    fn announce_synced(&self) {
        drop(self.synced.0.lock());
        self.synced.1.notify_all();
    }

    /// Makes the ticker force everything published to stable storage, and waits for it at most
    /// `limit`.
    fn synced_within(&self, version: u64, limit: Duration) -> Result<bool> {
        let is_durable = || self.durable.load(Ordering::Acquire) >= version;
        if is_durable() {
            return Ok(true);
        }
        if self.options.tick.is_none() {
            return self.sync_up_to(version).map(|()| true);
        }
        let until = Instant::now() + limit;
        self.stop.wake();
        let mut waiting = self.synced.0.lock();
        loop {
            self.check_writable()?;
            if is_durable() {
                return Ok(true);
            }
            if self.synced.1.wait_until(&mut waiting, until).timed_out() {
                return Ok(is_durable());
            }
        }
    }

    /// Forces everything published to stable storage, for a commit that waits for it.
    fn sync_for_commit(&self, version: u64) -> Result<()> {
        self.sync_once(version, || self.backend.note_awaited_sync())
    }

    /// Forces everything published to stable storage, while no commit need wait for it.
    fn sync_up_to(&self, version: u64) -> Result<()> {
        self.sync_once(version, || {})
    }

    /// Forces everything published to stable storage, after a call of `note`. Concurrent callers
    /// share one sync.
    fn sync_once(&self, version: u64, note: impl FnOnce()) -> Result<()> {
        if self.durable.load(Ordering::Acquire) >= version {
            return Ok(());
        }
        let Some(_one_at_a_time) = self.begin_sync(version)? else { return Ok(()) };
        let covered = self.current.read().version.as_u64();
        note();
        if let Err(error) = self.backend.sync() {
            self.poison(&error.to_string());
            return Err(error);
        }
        self.meters.fsyncs.fetch_add(1, Ordering::Relaxed);
        self.raise_durable(covered);
        Ok(())
    }

    /// Waits while another thread's sync does not cover this version. Returns `None` once the
    /// version is durable, or the right to sync.
    fn begin_sync(&self, version: u64) -> Result<Option<Syncing<'_>>> {
        let mut syncing = self.synced.0.lock();
        loop {
            if self.durable.load(Ordering::Acquire) >= version {
                return Ok(None);
            }
            self.check_sound()?;
            if !std::mem::replace(&mut *syncing, true) {
                return Ok(Some(Syncing(&self.synced)));
            }
            self.synced.1.wait(&mut syncing);
        }
    }
}

impl<B: Backend> Drop for Committer<B> {
    fn drop(&mut self) {
        let _ = crate::Engine::close(self);
    }
}
