//! Space and time that the dead take. A scan through a range where many keys were deleted walks
//! over their tombstones until a compaction has removed them (`gaps` spares only the head of a
//! range), and fjall compacts by size, not by tombstones. So deletes are counted for each keyspace, slow scans leave a hint, and a keyspace
//! is compacted when enough of it is dead; at most a tenth of the time goes into that.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fjall::AbstractTree;
use parking_lot::Mutex;
use quire_storage::{Result, Space};

use crate::error::storage;
use crate::keyspaces::Parts;
use crate::tuning::TABLE_BYTES;

/// Fewer deletes than this are not worth a compaction: walking over them takes some milliseconds.
const DELETES_MIN: u64 = 20_000;
/// Without a hint, one more delete for each of these bytes of the keyspace.
const BYTES_PER_DELETE: u64 = 2 << 10;
/// A keyspace above this is left to the ordinary compaction.
const COMPACT_BYTES_MAX: u64 = 1 << 30;
/// A page that took longer than this for each row, and than this in all, has met tombstones.
const SLOW_ROW: Duration = Duration::from_micros(20);
const SLOW_PAGE: Duration = Duration::from_millis(5);
/// The share of time for compactions is one in this many.
const REST: u32 = 10;

/// What is dead in one keyspace.
#[derive(Default)]
struct Dead {
    deletes: AtomicU64,
    hint: AtomicBool,
    not_before: Mutex<Option<Instant>>,
}

/// What is dead in all keyspaces.
#[derive(Default)]
pub(crate) struct Tombstones {
    spaces: [Dead; 4],
}

impl Tombstones {
    fn of(&self, space: Space) -> &Dead {
        let [meta, doc, idx, log] = &self.spaces;
        match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        }
    }

    /// Counts `keys` deletes in a space.
    pub fn deleted(&self, space: Space, keys: u64) {
        self.of(space).deletes.fetch_add(keys, Ordering::Relaxed);
    }

    /// Notes that a page of `rows` rows has been read since `since`. A page that took long for its rows
    /// is a sign of tombstones.
    pub fn scanned(&self, space: Space, rows: usize, since: Instant) {
        let took = since.elapsed();
        let rows = u32::try_from(rows).unwrap_or(u32::MAX).max(1);
        if took > SLOW_PAGE && took > SLOW_ROW * rows {
            self.of(space).hint.store(true, Ordering::Relaxed);
        }
    }

    fn is_due(&self, space: Space, parts: &Parts) -> bool {
        let dead = self.of(space);
        let deletes = dead.deletes.load(Ordering::Relaxed);
        if deletes < DELETES_MIN || dead.not_before.lock().is_some_and(|at| at > Instant::now()) {
            return false;
        }
        let bytes = parts.space(space).disk_space();
        bytes <= COMPACT_BYTES_MAX
            && (dead.hint.load(Ordering::Relaxed)
                || deletes >= DELETES_MIN + bytes / BYTES_PER_DELETE)
    }

    /// Whether a keyspace should be compacted.
    pub fn any_due(&self, parts: &Parts) -> bool {
        Space::ALL.into_iter().any(|space| self.is_due(space, parts))
    }

    /// Compacts the keyspaces that are due. No open snapshot is older than `watermark`, so versions
    /// that only older ones would see are removed. Stops between two keyspaces when `stop` says so.
    pub fn compact(&self, parts: &Parts, watermark: u64, stop: &dyn Fn() -> bool) -> Result<()> {
        for space in Space::ALL {
            if stop() || !self.is_due(space, parts) {
                continue;
            }
            let dead = self.of(space);
            let since = Instant::now();
            dead.deletes.store(0, Ordering::Relaxed);
            dead.hint.store(false, Ordering::Relaxed);
            parts.flush_space(space)?;
            parts
                .space(space)
                .tree
                .major_compact(TABLE_BYTES, watermark)
                .map_err(|error| storage(error.into(), "compacting"))?;
            *dead.not_before.lock() = Some(Instant::now() + since.elapsed() * REST);
        }
        Ok(())
    }
}
