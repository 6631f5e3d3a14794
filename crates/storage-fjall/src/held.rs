//! Snapshots that stay open while much is written (docs/adr/0010-long-snapshots.md). For a snapshot
//! of its own, fjall keeps every memtable, table and version of a key that has existed since then.
//! A snapshot needs much less: one immutable list of tables, and the memtables that were not yet
//! flushed. A held snapshot keeps references to these, and fjall frees the rest.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use fjall::{AbstractTree, LsmError};
use lsm_tree::{InternalValue, Memtable, SeqNo, Tree};
use parking_lot::Mutex;
use quire_storage::{Result, Space, StorageError};

use crate::keyspaces::Parts;
use crate::tuning::memtable_bytes;

/// The rows of a range.
pub(crate) type HeldRows =
    Box<dyn DoubleEndedIterator<Item = std::result::Result<InternalValue, LsmError>> + Send>;
/// Bounds of keys.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);
/// Opens a range of one keyspace.
type Open = Box<dyn Fn(Bounds<'_>) -> HeldRows + Send + Sync>;

/// The memtables that held snapshots keep in memory, each with the number of those snapshots.
#[derive(Default)]
pub(crate) struct HeldMemtables(Mutex<HashMap<(Space, u64), usize>>);

impl HeldMemtables {
    /// Estimates their memory in bytes, up to twice too high: each counts as full, and the one
    /// before the active memtable counts whenever its keyspace has one that waits for a flush.
    pub fn bytes(&self) -> u64 {
        self.0.lock().keys().map(|(space, _)| memtable_bytes(*space)).sum()
    }
}

/// One keyspace of a held snapshot.
struct HeldSpace {
    open: Open,
    /// The memtables that it keeps in memory.
    memtables: Vec<(Space, u64)>,
    counted: Arc<HeldMemtables>,
}

impl Drop for HeldSpace {
    fn drop(&mut self) {
        let mut counted = self.counted.0.lock();
        for memtable in &self.memtables {
            if let Some(count) = counted.get_mut(memtable) {
                *count -= 1;
                if *count == 0 {
                    counted.remove(memtable);
                }
            }
        }
    }
}

/// The keyspaces of a held snapshot.
pub(crate) struct Held([HeldSpace; 4]);

impl Held {
    /// Holds the content of fjall's snapshot `seqno`, which must be open.
    pub fn new(parts: &Parts, seqno: SeqNo, counted: &Arc<HeldMemtables>) -> Result<Self> {
        let hold = |space| {
            let Some(tree) = parts.tree(space) else {
                return Err(StorageError::Unsupported("held snapshots of separated values"));
            };
            Ok(hold_space(space, tree, seqno, counted))
        };
        Ok(Self([hold(Space::Meta)?, hold(Space::Doc)?, hold(Space::Idx)?, hold(Space::Log)?]))
    }

    /// Returns the rows of a range in ascending order.
    pub fn range(&self, space: Space, bounds: Bounds<'_>) -> HeldRows {
        let [meta, doc, idx, log] = &self.0;
        let held = match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        };
        (held.open)(bounds)
    }
}

/// Takes the list of tables and the memtables of the time of the snapshot. A later list cannot be
/// used: a compaction removes a version that an open snapshot sees, once the key has a newer
/// version.
fn hold_space(space: Space, tree: &Tree, seqno: SeqNo, counted: &Arc<HeldMemtables>) -> HeldSpace {
    let mut version = tree.get_version_history_lock().get_version_for_snapshot(seqno);
    let active = version.active_memtable.id();
    let mut memtables = vec![(space, active)];
    if version.active_memtable.is_empty() {
        version.active_memtable = Arc::new(Memtable::new(0));
        memtables.clear();
    }
    // The memtable before it may still have waited for its flush.
    if tree.sealed_memtable_count() > 0 {
        memtables.push((space, active.saturating_sub(1)));
    }
    let open = move |bounds: Bounds<'_>| -> HeldRows {
        Box::new(Tree::create_internal_range::<&[u8], _>(version.clone(), &bounds, seqno, None))
    };
    let mut counts = counted.0.lock();
    for memtable in &memtables {
        *counts.entry(*memtable).or_insert(0) += 1;
    }
    drop(counts);
    HeldSpace { open: Box::new(open), memtables, counted: Arc::clone(counted) }
}
