//! A simulated disk in memory: a crash loses what is not synced, the last batch may be torn, and
//! faults come from a seed. For simulations and for the crash tests of the layers above. It is used
//! with the real committer.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::backend::{Backend, RawSnapshot};
use crate::clock::{Clock, ManualClock};
use crate::committer::{Committer, CommitterOptions};
use crate::contract::{Caps, CommitBatch, Direction, Engine, Op, Page, ScanRequest, Size, Space};
use crate::error::{Result, StorageError};
use crate::memory::CAPS;
use crate::rng::Rng;

type Maps = [BTreeMap<Bytes, Bytes>; 4];

/// The faults to inject, and their frequency.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The seed. The same seed repeats the same run.
    pub seed: u64,
    /// One commit in this number fails with a conflict, although no other wrote its keys; 0 for
    /// none.
    pub conflict_one_in: u64,
    /// One read in this number fails with an I/O error; 0 for none.
    pub read_error_one_in: u64,
    /// All batches and syncs after this number of them fail; `None` for no failure.
    pub io_error_after: Option<u64>,
}

impl Faults {
    /// Returns no faults: the disk only loses what is not synced.
    pub fn none(seed: u64) -> Self {
        Self { seed, conflict_one_in: 0, read_error_one_in: 0, io_error_after: None }
    }
}

/// The effect of a crash on batches that are not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process dies. No batch is lost, because the operating system has them.
    Process,
    /// The power fails. Some of the latest unsynced batches are lost.
    Power,
    /// The power fails while the last surviving batch is being written. That batch is torn and
    /// therefore discarded, as on a real disk; unsynced batches before it may survive.
    TornTail,
}

/// A disk that outlives the engines opened on it.
pub struct SimulatedDisk {
    state: Arc<Mutex<Disk>>,
    clock: Arc<ManualClock>,
}

struct Disk {
    synced: Maps,
    /// Batches in the operating system's cache, oldest first.
    cached: Vec<Vec<Op>>,
    faults: Faults,
    rng: Rng,
    operations: u64,
}

impl SimulatedDisk {
    /// Returns an empty disk.
    pub fn new(faults: Faults) -> Self {
        let disk = Disk {
            synced: Maps::default(),
            cached: Vec::new(),
            rng: Rng::new(faults.seed),
            faults,
            operations: 0,
        };
        let clock = Arc::new(ManualClock::new(1_700_000_000_000));
        Self { state: Arc::new(Mutex::new(disk)), clock }
    }

    /// Returns the clock of the engines on this disk.
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
    }

    /// Opens an engine on the disk's data. It has no ticker, so it does nothing that the test did
    /// not request (`Maintenance::Tick` syncs).
    pub fn open(&self) -> Result<Arc<dyn Engine>> {
        let backend = SimulatedBackend::new(Arc::clone(&self.state));
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as _;
        // Each view in the history would keep a whole copy of the maps.
        let history_window = Duration::ZERO;
        let options =
            CommitterOptions { clock, tick: None, history_window, ..CommitterOptions::default() };
        Ok(Arc::new(Committer::open(backend, options)?))
    }

    /// Simulates a crash. Engines that were opened before lose the disk. Returns the number of lost
    /// batches.
    pub fn crash(&mut self, how: Crash) -> usize {
        let disk = {
            let mut old = self.state.lock();
            let cached = std::mem::take(&mut old.cached);
            let unsynced = cached.len();
            let keep = match how {
                Crash::Process => unsynced,
                Crash::Power => below(&mut old.rng, unsynced + 1),
                // The torn batch does not survive.
                Crash::TornTail => below(&mut old.rng, unsynced.max(1)),
            };
            let mut synced = std::mem::take(&mut old.synced);
            for batch in cached.into_iter().take(keep) {
                apply_to(&mut synced, batch);
            }
            // Engines of before the crash must not write to the old disk.
            old.faults.io_error_after = Some(0);
            let faults = Faults { io_error_after: None, ..old.faults };
            let rng = Rng::new(old.rng.next_u64());
            (unsynced - keep, Disk { synced, cached: Vec::new(), faults, rng, operations: 0 })
        };
        self.state = Arc::new(Mutex::new(disk.1));
        disk.0
    }

    /// Changes the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        let mut disk = self.state.lock();
        disk.faults = faults;
        disk.operations = 0;
    }

    /// Returns the number of batches that a power failure could lose.
    pub fn unsynced(&self) -> usize {
        self.state.lock().cached.len()
    }
}

fn below(rng: &mut Rng, end: usize) -> usize {
    let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
    usize::try_from(rng.below(end)).unwrap_or(0)
}

fn apply_to(maps: &mut Maps, batch: Vec<Op>) {
    for op in batch {
        let map = &mut maps[op.space.index()];
        match op.value {
            Some(value) => map.insert(op.key, value),
            None => map.remove(&op.key),
        };
    }
}

/// A backend whose snapshots are copies: simple, and slow for large data.
pub struct SimulatedBackend {
    disk: Arc<Mutex<Disk>>,
    now: RwLock<Arc<Maps>>,
}

/// A copy of the maps, read from a disk that may fail.
pub struct SimulatedSnapshot {
    maps: Arc<Maps>,
    disk: Arc<Mutex<Disk>>,
}

impl SimulatedSnapshot {
    fn look(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        let one_in = disk.faults.read_error_one_in;
        match one_in > 0 && disk.rng.one_in(one_in) {
            true => Err(StorageError::Io("a simulated failure to read".into())),
            false => Ok(()),
        }
    }
}

impl SimulatedBackend {
    fn new(disk: Arc<Mutex<Disk>>) -> Self {
        let now = {
            let mut disk = disk.lock();
            // Data that survived a crash cannot be lost by the next one.
            for batch in std::mem::take(&mut disk.cached) {
                apply_to(&mut disk.synced, batch);
            }
            disk.synced.clone()
        };
        Self { disk, now: RwLock::new(Arc::new(now)) }
    }

    fn operation(disk: &mut Disk) -> Result<()> {
        disk.operations += 1;
        match disk.faults.io_error_after {
            Some(after) if disk.operations > after => {
                Err(StorageError::Io("a simulated failure of the disk".into()))
            }
            _ => Ok(()),
        }
    }

    fn sync_disk(disk: &mut Disk) {
        for batch in std::mem::take(&mut disk.cached) {
            apply_to(&mut disk.synced, batch);
        }
    }
}

impl Backend for SimulatedBackend {
    type Snap = SimulatedSnapshot;

    fn caps(&self) -> &Caps {
        &CAPS
    }

    fn snapshot(&self) -> Result<SimulatedSnapshot> {
        Ok(SimulatedSnapshot { maps: Arc::clone(&self.now.read()), disk: Arc::clone(&self.disk) })
    }

    fn apply(&self, ops: Vec<Op>, sync: bool) -> Result<()> {
        let mut disk = self.disk.lock();
        Self::operation(&mut disk)?;
        disk.cached.push(ops.clone());
        if sync {
            Self::operation(&mut disk)?;
            Self::sync_disk(&mut disk);
        }
        drop(disk);
        apply_to(Arc::make_mut(&mut self.now.write()), ops);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let mut disk = self.disk.lock();
        Self::operation(&mut disk)?;
        Self::sync_disk(&mut disk);
        Ok(())
    }

    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        let mut page = Page::default();
        let request = ScanRequest::new(space, start, end).rows_max(usize::MAX);
        self.snapshot()?.scan(&ScanRequest { bytes_max: usize::MAX, ..request }, &mut page)?;
        let bytes: usize = page.rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        Ok(Size { bytes: bytes as u64, keys: page.rows.len() as u64 })
    }

    fn inject_conflict(&self, _: &CommitBatch) -> bool {
        let mut disk = self.disk.lock();
        let one_in = disk.faults.conflict_one_in;
        one_in > 0 && disk.rng.one_in(one_in)
    }
}

impl RawSnapshot for SimulatedSnapshot {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.look()?;
        Ok(self.maps[space.index()].get(key).cloned())
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        if request.is_empty() {
            return Ok(());
        }
        let upper =
            if request.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(request.end) };
        let range = (Bound::Included(request.start), upper);
        self.look()?;
        let rows = self.maps[request.space.index()].range::<[u8], _>(range);
        match request.direction {
            Direction::Forward => fill(rows, request, page),
            Direction::Reverse => fill(rows.rev(), request, page),
        }
        Ok(())
    }
}

fn fill<'m>(
    rows: impl Iterator<Item = (&'m Bytes, &'m Bytes)>,
    request: &ScanRequest<'_>,
    page: &mut Page,
) {
    let mut bytes = 0;
    for (key, value) in rows {
        if page.rows.len() >= request.rows_max.max(1) || bytes >= request.bytes_max {
            page.resume_after_last(request.direction);
            return;
        }
        let value = if request.keys_only { Bytes::new() } else { value.clone() };
        bytes += key.len() + value.len();
        page.rows.push((key.clone(), value));
    }
}
