//! What a snapshot reads: the memtables and the tables of each space at one moment. A view is never
//! changed (`store`).

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::Table;
use quire_storage::Space;
use smallvec::SmallVec;

use crate::memory::memtable::Memtable;
use crate::table::trees::{TableList, of_space};

/// The unflushed bytes of all spaces together from which on commits wait.
const MEMTABLES_BYTES_MAX: u64 = 160 << 20;
/// The number of sealed memtables of one space from which on commits wait.
const SEALED_MAX: usize = 3;
/// The number of runs of flushed tables from which on commits wait.
pub(crate) const FRESH_RUNS_MAX: usize = 16;

/// Ranges of keys that do not overlap, in ascending order.
#[derive(Clone)]
pub(crate) struct LateKeys(Arc<[Range<Bytes>]>);

/// The rows of one space at one moment.
#[derive(Clone)]
pub(crate) struct SpaceView {
    /// The active memtable, then the earlier ones, the newest first.
    pub memtables: SmallVec<[Arc<Memtable>; 2]>,
    /// The keys whose rows are still written to the memtable before the active one (`Store::cut`).
    pub late: Option<LateKeys>,
    pub tables: Arc<TableList>,
}

/// The rows of all spaces at one moment.
#[derive(Clone)]
pub(crate) struct View {
    pub spaces: [SpaceView; 4],
}

impl LateKeys {
    /// Returns the keys of ranges that do not overlap; `None` if there are none.
    pub fn new(mut ranges: Vec<Range<Bytes>>) -> Option<Self> {
        ranges.sort_by(|one, other| one.start.cmp(&other.start));
        (!ranges.is_empty()).then(|| Self(ranges.into()))
    }

    pub fn contains(&self, key: &Bytes) -> bool {
        let at = self.0.partition_point(|range| range.end <= *key);
        self.0.get(at).is_some_and(|range| range.start <= *key)
    }
}

impl View {
    pub fn of(&self, space: Space) -> &SpaceView {
        of_space(&self.spaces, space)
    }

    pub fn of_mut(&mut self, space: Space) -> &mut SpaceView {
        let [meta, doc, idx, log] = &mut self.spaces;
        match space {
            Space::Meta => meta,
            Space::Doc => doc,
            Space::Idx => idx,
            Space::Log => log,
        }
    }

    /// Returns the tables of all spaces.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.spaces.iter().flat_map(|space| space.tables.tables())
    }

    /// Returns the memtables of all spaces.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        self.spaces.iter().flat_map(|space| &space.memtables)
    }

    /// Returns the memory of all memtables, in bytes.
    pub fn memtable_bytes(&self) -> u64 {
        self.memtables().map(|memtable| memtable.bytes()).sum()
    }

    /// Returns the most sealed memtables of a space.
    pub fn sealed(&self) -> usize {
        self.spaces.iter().map(|space| space.sealed().len()).max().unwrap_or(0)
    }

    /// Returns the most runs of flushed tables of a space.
    pub fn fresh_runs(&self) -> usize {
        self.spaces.iter().map(|space| space.tables.fresh_runs).max().unwrap_or(0)
    }

    /// Returns true if flushes or merges are so far behind that commits must wait.
    pub fn is_behind(&self) -> bool {
        let sealed = self.sealed();
        sealed >= SEALED_MAX
            || (sealed > 0 && self.memtable_bytes() > MEMTABLES_BYTES_MAX)
            || self.fresh_runs() >= FRESH_RUNS_MAX
    }
}

impl SpaceView {
    /// Returns the memtable to which rows are written, except late ones.
    pub fn active(&self) -> &Arc<Memtable> {
        // The list is never empty.
        &self.memtables[0]
    }

    /// Returns the memtable before the active one and the keys whose rows are still written to it,
    /// if there are any.
    pub fn late(&self) -> Option<(&Arc<Memtable>, &LateKeys)> {
        self.memtables.get(1).zip(self.late.as_ref())
    }

    /// Returns the memtables that are no longer written to, the newest first.
    pub fn sealed(&self) -> &[Arc<Memtable>] {
        self.memtables.get(1 + usize::from(self.late.is_some())..).unwrap_or_default()
    }
}
