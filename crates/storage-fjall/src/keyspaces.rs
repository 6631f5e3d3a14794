//! fjall's keyspaces, one for each space: how they are opened and flushed, and how far their
//! background work is behind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, RestartIntervalPolicy};
use fjall::{
    AbstractTree, AnyTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
};
use lsm_tree::Tree;
use quire_storage::{Result, Space};

use crate::damage::Damage;
use crate::dropped::{DroppedRanges, Factory};
use crate::error::storage;
use crate::layout::{keyspace_path, number_of};
use crate::manifest;
use crate::tuning::{TABLE_BYTES, block_bytes, memtable_bytes, restart_interval};

/// The unflushed bytes of all keyspaces together from which on commits wait.
const MEMTABLES_BYTES_MAX: u64 = 160 << 20;
/// The number of unflushed memtables of one keyspace from which on commits wait; fjall itself
/// sleeps from 4.
const SEALED_MAX: usize = 3;
/// The number of runs in level 0 from which on commits wait; fjall itself slows down from 20.
const RUNS_MAX: usize = 16;
/// The largest size of the log, in bytes; fjall flushes memtables so that no start replays more.
const JOURNALS_BYTES_MAX: u64 = 512 << 20;

fn keyspace_options(space: Space) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes(space))
        // fjall's default leaves the upper levels uncompressed, and a compaction moves tables of
        // rising keys to the lower levels without rewriting them.
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .data_block_size_policy(BlockSizePolicy::all(block_bytes(space)))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(restart_interval(space)))
        .expect_point_read_hits(matches!(space, Space::Doc))
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES)))
}

/// fjall's handles. Each snapshot and each background task holds a reference. Closing waits until
/// the last one is dropped.
pub(crate) struct Parts {
    pub db: Database,
    pub spaces: [Keyspace; 4],
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

impl Parts {
    pub fn space(&self, space: Space) -> &Keyspace {
        of_space(&self.spaces, space)
    }

    /// Opens the database in `data`, or creates one if there is none. In an existing database
    /// nothing missing is created.
    pub fn open(
        data: &Path,
        cache_bytes: u64,
        workers: usize,
        dropped: &Arc<DroppedRanges>,
    ) -> Result<Self> {
        let exists = data.join("version").try_exists()?;
        let (dropped, place) = (Arc::clone(dropped), data.to_owned());
        let factories = Arc::new(move |name: &str| {
            let space = Space::ALL.into_iter().find(|space| space.name() == name)?;
            let keyspace = keyspace_path(&place, number_of(space));
            Some(Factory::shared(space, &dropped, keyspace.join(manifest::TABLES)))
        });
        let db = Database::builder(data)
            .cache_size(cache_bytes)
            .max_journaling_size(JOURNALS_BYTES_MAX)
            .worker_threads(workers)
            .with_compaction_filter_factories(factories)
            .open()
            .map_err(|error| storage(error, "opening"))?;
        let open = |space: Space| {
            if exists && !db.keyspace_exists(space.name()) {
                let path = keyspace_path(data, number_of(space));
                return Err(Damage::new(&path, "is not known to the database").into());
            }
            db.keyspace(space.name(), || keyspace_options(space))
                .map_err(|error| storage(error, space.name()))
        };
        let spaces = [open(Space::Meta)?, open(Space::Doc)?, open(Space::Idx)?, open(Space::Log)?];
        let parts = Self { db, spaces };
        parts.leave_zero()?;
        Ok(parts)
    }

    /// Makes sure that no snapshot has the sequence number 0, which is that of an empty database.
    /// fjall treats 0 as "no snapshot" when it looks for the oldest open one, and would free the
    /// lists of tables that other snapshots read, so that these panic.
    fn leave_zero(&self) -> Result<()> {
        let is_empty = |space: &Keyspace| space.tree.get_highest_seqno().is_none();
        if self.db.visible_seqno() > 0 || !self.spaces.iter().all(is_empty) {
            return Ok(());
        }
        let cleared = self.space(Space::Meta).tree.clear();
        cleared.map_err(|error| storage(error.into(), "making the database"))
    }

    /// Flushes the memtables of all keyspaces to tables.
    pub fn flush(&self) -> Result<()> {
        Space::ALL.into_iter().try_for_each(|space| self.flush_space(space))
    }

    /// Flushes the memtables of a keyspace to tables.
    pub fn flush_space(&self, space: Space) -> Result<()> {
        let keyspace = self.space(space);
        keyspace.rotate_memtable().map_err(|error| storage(error, "flushing"))?;
        while keyspace.tree.sealed_memtable_count() > 0 {
            // Fails if a background thread of fjall has died; then the loop would never end.
            self.db.persist(PersistMode::Buffer).map_err(|error| storage(error, "flushing"))?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Returns true if every memtable is empty.
    pub fn all_flushed(&self) -> bool {
        self.spaces.iter().all(|space| {
            space.tree.sealed_memtable_count() == 0 && space.tree.active_memtable().is_empty()
        })
    }

    /// Returns the tree of a space; `None` if it stores values apart from keys, which none of ours
    /// does.
    pub fn tree(&self, space: Space) -> Option<&Tree> {
        match &self.space(space).tree {
            AnyTree::Standard(tree) => Some(tree),
            AnyTree::Blob(_) => None,
        }
    }

    /// Returns true if flushes or compactions are so far behind that commits must wait.
    pub fn is_behind(&self) -> bool {
        let sealed = |space: &Keyspace| space.tree.sealed_memtable_count();
        let most = self.spaces.iter().map(sealed).max().unwrap_or(0);
        most >= SEALED_MAX
            || (most > 0 && self.db.write_buffer_size() > MEMTABLES_BYTES_MAX)
            || self.spaces.iter().any(|space| space.tree.l0_run_count() >= RUNS_MAX)
    }
}
