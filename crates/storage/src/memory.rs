//! The engine for tests and for `--memory`: one ordered map for each space, with all versions of a
//! key that a snapshot may still need. A snapshot is a sequence number; opening one copies nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};

use crate::backend::{Backend, RawSnapshot};
use crate::committer::{Committer, CommitterOptions};
use crate::contract::{Caps, Direction, Engine, EngineStats, Op, Page, ScanRequest, Size, Space};
use crate::error::Result;

/// The limits of the engine in memory.
pub(crate) const CAPS: Caps = Caps {
    key_bytes_max: 8 << 10,
    value_bytes_max: 64 << 20,
    txn_bytes_max: 256 << 20,
    snapshot_age_max: None,
    persistent: false,
    backup: false,
};

/// Opens an empty engine in memory.
pub fn open_memory() -> Result<Arc<dyn Engine>> {
    let options =
        CommitterOptions { snapshot_retained_bytes_max: 256 << 20, ..CommitterOptions::default() };
    open_memory_with(options)
}

/// Opens an empty engine in memory with other options.
pub fn open_memory_with(options: CommitterOptions) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(Committer::open(MemoryBackend::default(), options)?))
}

/// The versions of a key, newest last. Most keys have one.
#[derive(Debug)]
struct VersionChain {
    seq: u64,
    value: Option<Bytes>,
    older: Vec<(u64, Option<Bytes>)>,
}

impl VersionChain {
    fn at(&self, seq: u64) -> Option<&Bytes> {
        if self.seq <= seq {
            return self.value.as_ref();
        }
        let older = self.older.iter().rev().find(|(version, _)| *version <= seq)?;
        older.1.as_ref()
    }
}

/// The bytes that a key takes beside its own and those of its value: the nodes of the map, the chain,
/// and the headers of two shared buffers.
const KEY_BYTES: u64 = 160;

type Map = BTreeMap<Bytes, VersionChain>;

/// The maps, and the versions to remove later.
#[derive(Default)]
struct Shared {
    maps: [RwLock<Map>; 4],
    applied: AtomicU64,
    /// The number of open snapshots, by sequence number.
    open: Mutex<BTreeMap<u64, usize>>,
    /// Keys with versions to remove once no open snapshot is older than the number.
    garbage: Mutex<VecDeque<(u64, Space, Bytes)>>,
    bytes: AtomicU64,
}

/// Ordered maps in memory.
#[derive(Default)]
pub struct MemoryBackend {
    shared: Arc<Shared>,
}

/// A sequence number, and the maps that it refers to.
pub struct MemorySnapshot {
    shared: Arc<Shared>,
    seq: u64,
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        let mut open = self.shared.open.lock();
        if let Some(count) = open.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.seq);
            }
        }
    }
}

impl Shared {
    fn snapshot(self: &Arc<Self>) -> MemorySnapshot {
        let seq = self.applied.load(Ordering::Acquire);
        *self.open.lock().entry(seq).or_insert(0) += 1;
        MemorySnapshot { shared: Arc::clone(self), seq }
    }

    fn apply(&self, ops: Vec<Op>) {
        let seq = self.applied.load(Ordering::Acquire) + 1;
        let pinned = self.open.lock().first_key_value().is_some();
        for space in Space::ALL {
            let mut own = ops.iter().filter(|op| op.space == space).peekable();
            if own.peek().is_none() {
                continue;
            }
            let mut map = self.maps[space.index()].write();
            for op in own {
                self.apply_one(&mut map, seq, op, pinned);
            }
        }
        self.applied.store(seq, Ordering::Release);
        self.collect(64 + ops.len() * 2);
    }

    fn apply_one(&self, map: &mut Map, seq: u64, op: &Op, pinned: bool) {
        let added = (op.key.len() + op.value.as_ref().map_or(0, Bytes::len)) as u64;
        match map.entry(op.key.clone()) {
            Entry::Occupied(mut occupied) => {
                let chain = occupied.get_mut();
                let before = chain.value.as_ref().map_or(0, Bytes::len) + op.key.len();
                self.bytes.fetch_add(added, Ordering::Relaxed);
                self.bytes.fetch_sub(before as u64, Ordering::Relaxed);
                let value = std::mem::replace(&mut chain.value, op.value.clone());
                if chain.seq != seq && pinned {
                    chain.older.push((chain.seq, value));
                }
                chain.seq = seq;
                if !chain.older.is_empty() || chain.value.is_none() {
                    self.garbage.lock().push_back((seq, op.space, op.key.clone()));
                }
            }
            Entry::Vacant(vacant) if op.value.is_some() => {
                self.bytes.fetch_add(added + KEY_BYTES, Ordering::Relaxed);
                vacant.insert(VersionChain { seq, value: op.value.clone(), older: Vec::new() });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Removes up to `steps` versions that no snapshot needs.
    fn collect(&self, steps: usize) {
        let oldest = {
            let open = self.open.lock();
            open.first_key_value().map_or(self.applied.load(Ordering::Acquire), |(seq, _)| *seq)
        };
        for _ in 0..steps {
            let (space, key) = {
                let mut garbage = self.garbage.lock();
                match garbage.front() {
                    Some((seq, _, _)) if *seq <= oldest => {}
                    _ => return,
                }
                let Some((_, space, key)) = garbage.pop_front() else { return };
                (space, key)
            };
            let mut map = self.maps[space.index()].write();
            let Some(chain) = map.get_mut(&key) else { continue };
            if chain.seq > oldest {
                let keep = chain.older.iter().rposition(|(seq, _)| *seq <= oldest);
                chain.older.drain(..keep.unwrap_or(0));
                continue;
            }
            chain.older = Vec::new();
            if chain.value.is_none() {
                map.remove(&key);
                self.bytes.fetch_sub(key.len() as u64 + KEY_BYTES, Ordering::Relaxed);
            }
        }
    }
}

impl RawSnapshot for MemorySnapshot {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let map = self.shared.maps[space.index()].read();
        Ok(map.get(key).and_then(|chain| chain.at(self.seq)).cloned())
    }

    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        let map = self.shared.maps[space.index()].read();
        let value = |key: &&[u8]| map.get(*key).and_then(|chain| chain.at(self.seq)).cloned();
        out.extend(keys.iter().map(value));
        Ok(())
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        if request.is_empty() {
            return Ok(());
        }
        let map = self.shared.maps[request.space.index()].read();
        let upper =
            if request.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(request.end) };
        let range = map.range::<[u8], _>((Bound::Included(request.start), upper));
        match request.direction {
            Direction::Forward => fill(range, self.seq, request, page),
            Direction::Reverse => fill(range.rev(), self.seq, request, page),
        }
        Ok(())
    }
}

fn fill<'m>(
    entries: impl Iterator<Item = (&'m Bytes, &'m VersionChain)>,
    seq: u64,
    request: &ScanRequest<'_>,
    page: &mut Page,
) {
    let mut bytes = 0;
    for (key, chain) in entries {
        let Some(value) = chain.at(seq) else { continue };
        if page.rows.len() >= request.rows_max.max(1) || bytes >= request.bytes_max {
            page.resume_after_last(request.direction);
            return;
        }
        let value = if request.keys_only { Bytes::new() } else { value.clone() };
        bytes += key.len() + value.len();
        page.rows.push((key.clone(), value));
    }
}

impl Backend for MemoryBackend {
    type Snap = MemorySnapshot;

    fn caps(&self) -> &Caps {
        &CAPS
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(self.shared.snapshot())
    }

    fn apply(&self, ops: Vec<Op>, _sync: bool) -> Result<()> {
        self.shared.apply(ops);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn approximate_size(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        if !end.is_empty() && start >= end {
            return Ok(Size::default());
        }
        let upper = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end) };
        let map = self.shared.maps[space.index()].read();
        let mut size = Size::default();
        for (key, chain) in map.range::<[u8], _>((Bound::Included(start), upper)) {
            let Some(value) = &chain.value else { continue };
            size.keys += 1;
            size.bytes += (key.len() + value.len()) as u64;
        }
        Ok(size)
    }

    fn housekeeping(&self, _oldest: &MemorySnapshot) {
        self.shared.collect(10_000);
    }

    fn stats(&self, stats: &mut EngineStats) {
        stats.memtable_bytes = self.shared.bytes.load(Ordering::Relaxed);
    }

    fn close(&self) -> Result<()> {
        for map in &self.shared.maps {
            map.write().clear();
        }
        self.shared.garbage.lock().clear();
        Ok(())
    }
}
