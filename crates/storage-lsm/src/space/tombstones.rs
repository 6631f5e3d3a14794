//! Compacts keyspaces with many deleted keys. A scan through a range where many keys were deleted
//! reads their tombstones until a compaction has removed them (`gaps` helps only at the head of a
//! range), and the ordinary merges go by size, not by tombstones. So deletes are counted for each
//! keyspace, slow scans leave a hint, and a keyspace is compacted when a large enough part of it is
//! dead. These compactions take at most a tenth of the time.
//!
//! lsm-tree compacts whole keyspaces only, runs no other compaction of the keyspace meanwhile, and
//! cannot be stopped. So a large keyspace is compacted only if that frees as much as it writes,
//! little has been written for a while, and the disk has room for the live rows
//! (docs/adr/0015-space-of-deleted-keys.md).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quire_storage::{Result, Space};

use crate::space::dead::deleted_bytes;
use crate::store::Store;
use crate::table::trees::{TableList, of_space};

/// The smallest number of deletes that is worth a compaction: a scan reads fewer in some
/// milliseconds.
const DELETES_MIN: u64 = 20_000;
/// Without a hint from a slow scan, one more delete is needed for each of these bytes of the
/// keyspace.
const BYTES_PER_DELETE: u64 = 2 << 10;
/// A large keyspace is compacted when one part in `LARGE_DEAD` is dead.
const LARGE_DEAD: u64 = 2;
/// A larger keyspace, in bytes, is left to the ordinary compaction and to `compact`.
const COMPACT_BYTES_MAX: u64 = 8 << 30;
/// A keyspace is quiet if less than this was written within [`Limits::quiet`].
const QUIET_BYTES: u64 = 16 << 20;
/// The pause after a check of a large keyspace that was not worth a compaction.
const LOOK: Duration = Duration::from_secs(10);
/// A page that took longer than this for each row, and than `SLOW_PAGE` in all, has met tombstones.
const SLOW_ROW: Duration = Duration::from_micros(20);
const SLOW_PAGE: Duration = Duration::from_millis(5);
/// Compactions take at most one part in `REST` of the time.
const REST: u32 = 10;

/// The deletes of one keyspace.
#[derive(Default)]
struct Dead {
    deletes: AtomicU64,
    hint: AtomicBool,
    not_before: Mutex<Option<Instant>>,
}

/// When a keyspace counts as large, and when a large one may be compacted.
#[derive(Clone, Copy)]
struct Limits {
    /// A keyspace with more bytes is large.
    small_bytes_max: u64,
    /// The time for which little must have been written.
    quiet: Duration,
}

/// The deletes of all keyspaces.
pub(crate) struct Tombstones {
    spaces: [Dead; 4],
    limits: Limits,
    /// The bytes written in total when much was last written, and the time of that.
    busy: Mutex<(u64, Instant)>,
}

impl Default for Tombstones {
    fn default() -> Self {
        Self::new(Limits { small_bytes_max: 1 << 30, quiet: Duration::from_secs(30) })
    }
}

impl Tombstones {
    fn new(limits: Limits) -> Self {
        Self { spaces: Default::default(), limits, busy: Mutex::new((0, Instant::now())) }
    }

    fn of(&self, space: Space) -> &Dead {
        of_space(&self.spaces, space)
    }

    /// Counts `keys` deletes in a space.
    pub fn deleted(&self, space: Space, keys: u64) {
        self.of(space).deletes.fetch_add(keys, Ordering::Relaxed);
    }

    /// Notes that a page of `rows` rows was found in the time `took`. A page that took long for its
    /// rows is a hint of tombstones.
    pub fn scanned(&self, space: Space, rows: usize, took: Duration) {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX).max(1);
        if took > SLOW_PAGE && took > SLOW_ROW * rows {
            self.of(space).hint.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if a page of the space took long.
    #[cfg(test)]
    pub fn is_hinted(&self, space: Space) -> bool {
        self.of(space).hint.load(Ordering::Relaxed)
    }

    fn is_due(&self, space: Space, store: &Store, written: u64) -> bool {
        let dead = self.of(space);
        if dead.not_before.lock().is_some_and(|at| at > Instant::now()) {
            return false;
        }
        let deletes = dead.deletes.load(Ordering::Relaxed);
        if self.is_large(space, store) {
            // The tables do not contain deletes that are not flushed.
            return self.is_quiet(written)
                && (deletes >= DELETES_MIN
                    || is_worth_it(&store.view().of(space).tables, |bytes| {
                        store.space.has_room_for(bytes)
                    }));
        }
        let bytes = store.view().of(space).tables.bytes();
        deletes >= DELETES_MIN
            && (dead.hint.load(Ordering::Relaxed)
                || deletes >= DELETES_MIN + bytes / BYTES_PER_DELETE)
    }

    fn is_large(&self, space: Space, store: &Store) -> bool {
        store.view().of(space).tables.bytes() > self.limits.small_bytes_max
    }

    /// Returns true if little has been written for a while.
    fn is_quiet(&self, written: u64) -> bool {
        let (before, since) = &mut *self.busy.lock();
        if written.saturating_sub(*before) > QUIET_BYTES {
            (*before, *since) = (written, Instant::now());
        }
        since.elapsed() >= self.limits.quiet
    }

    /// Returns true if a keyspace should be compacted.
    pub fn any_due(&self, store: &Store, written: u64) -> bool {
        Space::ALL.into_iter().any(|space| self.is_due(space, store, written))
    }

    /// Compacts the keyspaces that are due. Stops between two of them if `stop` returns true.
    pub fn compact(&self, store: &Store, written: u64, stop: &dyn Fn() -> bool) -> Result<()> {
        for space in Space::ALL {
            if stop() || !self.is_due(space, store, written) {
                continue;
            }
            let dead = self.of(space);
            let since = Instant::now();
            let deletes = dead.deletes.swap(0, Ordering::Relaxed);
            dead.hint.store(false, Ordering::Relaxed);
            let later = || {
                dead.deletes.fetch_add(deletes, Ordering::Relaxed);
                *dead.not_before.lock() = Some(Instant::now() + LOOK);
            };
            store.flush(space).inspect_err(|_| later())?;
            let view = store.view();
            let tables = &view.of(space).tables;
            let has_room_for = |bytes| store.has_room_for(bytes);
            if self.is_large(space, store) {
                if !is_worth_it(tables, has_room_for) {
                    *dead.not_before.lock() = Some(Instant::now() + LOOK);
                    continue;
                }
            } else if !has_room_for(tables.bytes()) {
                later();
                continue;
            }
            store.merge_all(space).inspect_err(|_| later())?;
            *dead.not_before.lock() = Some(Instant::now() + since.elapsed() * REST);
        }
        Ok(())
    }
}

/// Returns true if compacting a large keyspace frees as much as it writes, and the disk has room.
fn is_worth_it(tables: &TableList, has_room_for: impl Fn(u64) -> bool) -> bool {
    let bytes = tables.bytes();
    let live = bytes.saturating_sub(deleted_bytes(tables));
    live <= bytes - bytes / LARGE_DEAD && bytes <= COMPACT_BYTES_MAX && has_room_for(live)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LsmOptions;
    use crate::directory::disk_space::{DiskSpace, SpaceProbe};
    use crate::store::Running;
    use crate::table::dropped::DroppedRanges;
    use bytes::Bytes;
    use quire_storage::Op;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    const KEYS: u64 = 20_000;

    /// Returns a keyspace of 20 MB on a disk with the free space `available`, in bytes.
    fn filled(directory: &Path, available: &Arc<AtomicU64>) -> Running {
        let dropped = Arc::new(DroppedRanges::default());
        let available = Arc::clone(available);
        let probe = move |_: &Path| {
            let available_bytes = available.load(Ordering::Relaxed);
            Some(DiskSpace { available_bytes, total_bytes: 1 << 40 })
        };
        let space_probe: SpaceProbe = Arc::new(probe);
        let options = LsmOptions { space_probe, reserve_bytes: 0, ..LsmOptions::default() };
        let store =
            Running::start(Store::open(directory, &options, &dropped, 0).unwrap(), 1).unwrap();
        let mut random = quire_storage::rng::Rng::new(1);
        let op = |number| {
            let value: Vec<u8> = (0..128).flat_map(|_| random.next_u64().to_be_bytes()).collect();
            op(number, Some(value.into()))
        };
        store.store().write((0..KEYS).map(op).collect(), false).unwrap();
        store.store().flush(Space::Doc).unwrap();
        store
    }

    fn op(number: u64, value: Option<Bytes>) -> Op {
        Op { space: Space::Doc, key: Bytes::copy_from_slice(&number.to_be_bytes()), value }
    }

    fn bytes(running: &Running) -> u64 {
        running.store().view().of(Space::Doc).tables.bytes()
    }

    fn delete(running: &Running, tombstones: &Tombstones, keys: std::ops::Range<u64>) {
        tombstones.deleted(Space::Doc, (keys.end - keys.start).max(DELETES_MIN));
        running.store().write(keys.map(|number| op(number, None)).collect(), false).unwrap();
        *tombstones.of(Space::Doc).not_before.lock() = None;
    }

    #[test]
    fn a_large_keyspace_is_compacted_when_half_of_it_is_dead_and_nothing_else_is_done() {
        let directory = tempfile::tempdir().unwrap();
        let available = Arc::new(AtomicU64::new(1 << 40));
        let running = filled(directory.path(), &available);
        let mut tombstones =
            Tombstones::new(Limits { small_bytes_max: 1 << 20, quiet: Duration::ZERO });
        let before = bytes(&running);
        assert!(before > 15 << 20);
        available.store(before / 2, Ordering::Relaxed);
        let is_compacted = |tombstones: &Tombstones| {
            tombstones.compact(running.store(), 0, &|| false).unwrap();
            bytes(&running) < before / 2
        };

        delete(&running, &tombstones, 0..KEYS / 3);
        assert!(tombstones.any_due(running.store(), 0), "it has to be looked at");
        assert!(!is_compacted(&tombstones), "a third is dead");

        delete(&running, &tombstones, KEYS / 3..KEYS * 6 / 10);
        available.store(before / 3, Ordering::Relaxed);
        assert!(!is_compacted(&tombstones), "there is no room");
        available.store(before / 2, Ordering::Relaxed);
        *tombstones.of(Space::Doc).not_before.lock() = None;
        tombstones.limits.quiet = Duration::from_secs(3600);
        assert!(!is_compacted(&tombstones), "something was written just now");
        tombstones.limits.quiet = Duration::ZERO;
        assert!(tombstones.any_due(running.store(), 0), "the tables say so");
        assert!(is_compacted(&tombstones));
        let view = running.store().view();
        let left: u64 = view.of(Space::Doc).tables.tables().map(|it| it.metadata.item_count).sum();
        assert_eq!(left, KEYS - KEYS * 6 / 10);
        assert!(!tombstones.any_due(running.store(), 0), "nothing is dead");
    }
}
