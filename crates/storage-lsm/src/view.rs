//! What a snapshot reads: the memtables and the tables of each space at one moment. A view is never
//! changed (`store`).

use std::sync::Arc;

use lsm_tree::Table;
use quire_storage::Space;
use smallvec::SmallVec;

use crate::memtable::Memtable;
use crate::tables::{TableList, of_space};

/// The unflushed bytes of all spaces together from which on commits wait.
const MEMTABLES_BYTES_MAX: u64 = 160 << 20;
/// The number of sealed memtables of one space from which on commits wait.
const SEALED_MAX: usize = 3;
/// The number of runs of flushed tables from which on commits wait.
pub(crate) const FRESH_RUNS_MAX: usize = 16;

/// The rows of one space at one moment.
#[derive(Clone)]
pub(crate) struct SpaceView {
    /// The active memtable, then the sealed ones, the newest first.
    pub memtables: SmallVec<[Arc<Memtable>; 2]>,
    pub tables: Arc<TableList>,
}

/// The rows of all spaces at one moment.
#[derive(Clone)]
pub(crate) struct View {
    pub spaces: [SpaceView; 4],
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
        self.spaces.iter().map(|space| space.memtables.len() - 1).max().unwrap_or(0)
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
    /// Returns the memtable that is written to.
    pub fn active(&self) -> &Arc<Memtable> {
        // The list is never empty.
        &self.memtables[0]
    }
}
