//! The trees of lsm-tree, one for each space, and lists of their tables. lsm-tree writes, merges
//! and removes tables. Everything that a reader needs is in a [`TableList`], so that no reader and
//! no writer waits for a lock of lsm-tree, under which it syncs files.

use std::io::ErrorKind;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lsm_tree::compaction::filter::Factory as FilterFactory;
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
    RestartIntervalPolicy,
};
use lsm_tree::descriptor_table::DescriptorTable;
use lsm_tree::file_accessor::FileAccessor;
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, SeqNo, SequenceNumberCounter, Table,
    Tree,
};
use quire_storage::{Result, Space, StorageError};

use crate::directory::layout::{keyspace_path, number_of};
use crate::error::storage;
use crate::table::cut::{Merge, only_moves};
use crate::table::dropped::{DroppedRanges, Factory};
use crate::table::manifest;
use crate::table::tuning::{CUT, LEVELS, block_bytes, filter_bits, restart_interval};

/// The number of table files that stay open: below the number that a process may usually open.
const OPEN_FILES: usize = if cfg!(target_os = "macos") { 150 } else { 900 };

/// What lsm-tree is told about open snapshots: that there are none. A merge keeps the newest row of
/// each key and no older one, because a snapshot keeps its tables and not their rows.
pub(crate) const NO_SNAPSHOT: SeqNo = SeqNo::MAX;

/// The trees of all spaces. They share a cache, the open files, and the counter of batches.
pub(crate) struct Trees {
    trees: [Tree; 4],
    /// The number of merges that run in each tree.
    merges: [AtomicUsize; 4],
    pub cache: Arc<Cache>,
    /// The number of the next batch. lsm-tree takes numbers from it for its lists of tables too.
    pub seqno: SequenceNumberCounter,
}

/// Returns the item of `space` in an array with one item for each space.
pub(crate) fn of_space<T>(all: &[T; 4], space: Space) -> &T {
    let [meta, doc, idx, log] = all;
    match space {
        Space::Meta => meta,
        Space::Doc => doc,
        Space::Idx => idx,
        Space::Log => log,
    }
}

/// Returns the sizes of the filters of each level.
fn filters(space: Space) -> FilterPolicy {
    let bits =
        (0..LEVELS).map(|level| BloomConstructionPolicy::BitsPerKey(filter_bits(space, level)));
    FilterPolicy::new(bits.map(FilterPolicyEntry::Bloom).collect::<Vec<_>>())
}

impl Trees {
    /// Opens the trees in `data`; creates those that are missing.
    pub fn open(data: &Path, cache_bytes: u64, dropped: &Arc<DroppedRanges>) -> Result<Self> {
        let cache = Arc::new(Cache::with_capacity_bytes(cache_bytes));
        let files = Arc::new(DescriptorTable::new(OPEN_FILES));
        let seqno = SequenceNumberCounter::new(1);
        let open = |space: Space| {
            let path = keyspace_path(data, number_of(space));
            let filter: Arc<dyn FilterFactory> =
                Factory::shared(space, dropped, path.join(manifest::TABLES));
            let config = Config::new(path, seqno.clone(), SequenceNumberCounter::default())
                .use_cache(Arc::clone(&cache))
                .use_descriptor_table(Some(Arc::clone(&files)))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
                .data_block_size_policy(BlockSizePolicy::all(block_bytes(space)))
                .data_block_restart_interval_policy(RestartIntervalPolicy::all(restart_interval(
                    space,
                )))
                .filter_policy(filters(space))
                .expect_point_read_hits(matches!(space, Space::Doc))
                .with_compaction_filter_factory(Some(filter));
            match config.open().map_err(|error| storage(error, space.name()))? {
                AnyTree::Standard(tree) => Ok(tree),
                AnyTree::Blob(_) => Err(StorageError::Unsupported("values apart from their keys")),
            }
        };
        let trees = [open(Space::Meta)?, open(Space::Doc)?, open(Space::Idx)?, open(Space::Log)?];
        let newest = trees.iter().filter_map(AbstractTree::get_highest_persisted_seqno).max();
        seqno.fetch_max(newest.map_or(1, |newest| newest + 1));
        Ok(Self { trees, merges: Default::default(), cache, seqno })
    }

    pub fn of(&self, space: Space) -> &Tree {
        of_space(&self.trees, space)
    }

    /// Merges tables of a space as far as the levels need it. Returns true if the list of tables
    /// has changed. Fails with `Full` if `has_room` returns false for the bytes of the tables.
    pub fn compact(&self, space: Space, has_room: &dyn Fn(u64) -> bool) -> Result<bool> {
        self.merge(space, has_room, &|tree, is_alone| CUT.levels(tree, is_alone))
    }

    /// Merges or moves a few tables of a space to the level below, until all are in the last one. Otherwise as
    /// [`compact`](Self::compact).
    pub fn settle(&self, space: Space, has_room: &dyn Fn(u64) -> bool) -> Result<bool> {
        self.merge(space, has_room, &|tree, is_alone| CUT.settling(tree, is_alone))
    }

    fn merge(
        &self,
        space: Space,
        has_room: &dyn Fn(u64) -> bool,
        next: &dyn Fn(&Tree, bool) -> Merge,
    ) -> Result<bool> {
        let tree = self.of(space);
        let before = tree.current_version().id();
        let merged = self.count_merge(space, |is_alone| {
            let Merge { levels, bytes } = next(tree, is_alone);
            // Beside another merge it is not known which tables it will be.
            if is_alone && bytes > 0 && !has_room(bytes) {
                return Err(std::io::Error::from(ErrorKind::StorageFull).into());
            }
            tree.compact(Arc::new(levels), NO_SNAPSHOT)
        });
        let has_changed = tree.current_version().id() != before;
        match merged {
            Err(StorageError::Full) if has_changed => Ok(true),
            merged => merged.map(|()| has_changed),
        }
    }

    /// Returns true if a merge runs.
    pub fn is_merging(&self) -> bool {
        self.merges.iter().any(|merges| merges.load(Ordering::Relaxed) > 0)
    }

    /// Adds flushed tables to a tree. Fails with `Full` if that can be tried again.
    pub fn register(&self, space: Space, tables: &[Table]) -> Result<()> {
        let registered = self.of(space).register_tables(tables, None, None, &[], NO_SNAPSHOT);
        registered.map_err(|error| self.error(space, error, "flushing"))
    }

    /// Converts an error of a write to a tree. `Full` says that the write can be tried again: not if
    /// `current` names a list of tables already that lsm-tree does not have yet, because it would
    /// write that file again while it is in use.
    fn error(&self, space: Space, error: lsm_tree::Error, place: &str) -> StorageError {
        let tree = self.of(space);
        let error = storage(error, place);
        let named = std::fs::read(manifest::current_path(&tree.config.path)).unwrap_or_default();
        let named = named.first_chunk().map(|number| u64::from_le_bytes(*number));
        match error == StorageError::Full && named > Some(tree.current_version().id()) {
            true => StorageError::Io(format!("{place}: the disk is full")),
            false => error,
        }
    }

    /// Moves the flushed tables of a space to a level below if that needs no merge.
    pub fn move_flushed(&self, space: Space) -> Result<()> {
        let tree = self.of(space);
        if tree.current_version().l0().run_count() != 1 {
            return Ok(());
        }
        let moves = tree.compact(Arc::new(only_moves()), NO_SNAPSHOT);
        moves.map_err(|error| self.error(space, error, "moving tables"))
    }

    /// Merges all tables of a space into new ones.
    pub fn merge_all(&self, space: Space) -> Result<()> {
        let tree = self.of(space);
        self.count_merge(space, |_| {
            let cut = CUT.of(tree.current_version().iter_tables());
            tree.major_compact(cut, NO_SNAPSHOT)
        })
    }

    /// Drops the tables of a space that lie wholly inside a range.
    pub fn drop_tables(&self, space: Space, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
        let tree = self.of(space);
        let dropped = tree.drop_range::<&[u8], _>(bounds);
        // Otherwise lsm-tree keeps them until its next flush or merge.
        let freed = dropped.and_then(|()| {
            tree.get_version_history_lock().maintenance(&tree.config.path, NO_SNAPSHOT)
        });
        freed.map_err(|error| self.error(space, error, "dropping tables"))
    }

    /// Calls `merge` with true if no other merge runs in the tree of `space`.
    fn count_merge(
        &self,
        space: Space,
        merge: impl FnOnce(bool) -> lsm_tree::Result<()>,
    ) -> Result<()> {
        let running = RunningMerge(of_space(&self.merges, space));
        let others = running.0.fetch_add(1, Ordering::Relaxed);
        merge(others == 0).map_err(|error| self.error(space, error, "compacting"))
    }
}

/// The count of running merges. It falls when the merge ends, also by a panic.
struct RunningMerge<'m>(&'m AtomicUsize);

impl Drop for RunningMerge<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The tables of a space at one moment. A list keeps its tables: their files are removed when the
/// last list that contains them is dropped.
pub(crate) struct TableList {
    /// The runs, those with newer rows first. The tables of a run are in the order of their keys
    /// and do not overlap.
    pub runs: Vec<Vec<Table>>,
    /// How many of the runs belong to the level that flushed memtables enter.
    pub fresh_runs: usize,
    tree: u64,
    files: FileAccessor,
}

impl TableList {
    /// Returns the newest list of a tree.
    pub fn of(tree: &Tree) -> Result<Self> {
        let no_files = || StorageError::Unsupported("a tree without open files");
        let files = tree.config.descriptor_table.as_ref().map(Arc::clone).ok_or_else(no_files)?;
        let version = tree.current_version();
        let runs = version.iter_levels().flat_map(|level| level.iter());
        Ok(Self {
            runs: runs.map(|run| run.iter().cloned().collect()).collect(),
            fresh_runs: version.l0().run_count(),
            tree: tree.id(),
            files: FileAccessor::DescriptorTable(files),
        })
    }

    /// Returns the number of the tree, which is part of the address of a block in the cache.
    pub fn tree(&self) -> u64 {
        self.tree
    }

    pub fn files(&self) -> &FileAccessor {
        &self.files
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.runs.iter().flatten()
    }

    /// Returns the tables that may contain a key, those with newer rows first.
    pub fn for_key<'l>(&'l self, key: &'l [u8]) -> impl Iterator<Item = &'l Table> {
        self.runs.iter().filter_map(move |run| {
            let at = run.partition_point(|table| table.metadata.key_range.max()[..] < *key);
            run.get(at).filter(|table| table.metadata.key_range.min()[..] <= *key)
        })
    }

    /// Returns the size of all tables, in bytes.
    pub fn bytes(&self) -> u64 {
        self.tables().map(|table| table.metadata.file_size).sum()
    }
}
