//! The first half of an index build. The keys of all documents are generated, sorted (`index_gather.rs`)
//! and written in key order, while writers only note what they change (`side_writes.rs`). Then writers
//! begin to maintain the index, and the noted records are processed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quire_catalog::{Collection, FactsBuf, Index, IndexId};
use quire_error::{Error, Result};
use quire_storage::{CommitOptions, KeyTurn, Space};

use super::index_build::current;
use super::index_gather::{Gathered, LONG_DOCUMENTS};
use super::key_sort::MergedRows;
use super::{next_epoch, put_collection};
use crate::clashes;
use crate::entry::{EntryKeys, record_id_of_unique};
use crate::failure::Attempt;
use crate::index_builds::IndexBuild;
use crate::side_writes::{Notes, SideWrites};
use crate::sorted_runs::Workspace;
use crate::{Helpers, RecordId, Store, WriterMode, from_interruption};

/// The bytes of entries in one commit.
const LOAD_BYTES: usize = 1 << 20;

/// Sorted entries for one commit.
struct Load {
    entries: Vec<(Bytes, Bytes)>,
    /// Records whose key is that of the record before them.
    clashes: Vec<RecordId>,
}

/// The entries of an index that are not yet written.
struct Loads {
    rows: MergedRows,
    /// The key of the last entry that was taken from `rows`.
    last: Vec<u8>,
    /// The first error. Nothing more is written after it.
    failed: Option<Error>,
}

impl Store {
    /// Calls `step` with the workspace in which a build continues on disk.
    pub(super) fn on_disk<T>(
        &self,
        build: &IndexBuild,
        step: impl FnOnce(Workspace<'_>) -> Result<T>,
    ) -> Result<T> {
        let interrupt = Arc::clone(&build.interrupt);
        step(Workspace {
            directory: self.builds.directory(),
            bytes_max: self.builds.memory_bytes(),
            interrupt: &move || interrupt.check().map_err(from_interruption),
        })
    }

    /// Writes the entries in key order. Returns the facts about these entries.
    pub(super) fn load_keys(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        gathered: Vec<Gathered>,
    ) -> Result<Vec<(IndexId, FactsBuf)>> {
        let mut facts = Vec::with_capacity(gathered.len());
        for Gathered { index, rows, facts: own } in gathered {
            self.load_rows(collection, build, &index, rows)?;
            facts.push((index.id, own));
        }
        Ok(facts)
    }

    /// Writes the entries of one index. While one thread commits entries, another one prepares the
    /// next. A commit may overtake the one before it, because no reader uses the index yet.
    fn load_rows(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        index: &Index,
        rows: MergedRows,
    ) -> Result<()> {
        let (documents, _) = build.progress();
        let helpers = Helpers::acquire(usize::from(documents >= LONG_DOCUMENTS));
        let loads = Mutex::new(Loads { rows, last: Vec::new(), failed: None });
        let next = || loads.lock().next(index);
        let write = || {
            while let Some(load) = next() {
                if let Err(error) = self.write_load(collection, build, index.id, &load) {
                    loads.lock().failed.get_or_insert(error);
                }
            }
        };
        helpers.run("index", write, write);
        loads.into_inner().failed.map_or(Ok(()), Err)
    }

    fn write_load(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        id: IndexId,
        load: &Load,
    ) -> Result<()> {
        let write = self.write(&CommitOptions::buffered(), &build.interrupt, |writer| {
            let current = current(writer.catalog(), collection, &build.ids)?;
            writer.guard(&current)?;
            let txn = writer.txn_mut();
            for (key, value) in &load.entries {
                txn.put_entry(Space::Idx, key.clone(), value.clone())?;
            }
            load.clashes.iter().try_for_each(|record| clashes::note(txn, id, *record))
        });
        write.map(|_| ())
    }

    /// Makes writers maintain the indexes of the build from this commit on. A writer that began
    /// before it can no longer commit, so no note is missing. Returns the notes.
    pub(super) fn hand_over(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        facts: &[(IndexId, FactsBuf)],
    ) -> Result<Vec<(IndexId, Arc<SideWrites>)>> {
        let options = CommitOptions::buffered().ended_by(&build.interrupt);
        self.change_catalog(&options, |writer, catalog, _| {
            let current = current(catalog, collection, &build.ids)?;
            let mut next = next_epoch(&current);
            for index in next.indexes.iter_mut().filter(|index| build.ids.contains(&index.id)) {
                Arc::make_mut(index).loading = false;
                if let Some((_, facts)) = facts.iter().find(|(id, _)| *id == index.id) {
                    writer.add_facts(index, facts)?;
                }
            }
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), ()))
        })?;
        Ok(self.builds.close(&build.ids))
    }

    /// Processes the notes of writers: each record gets its current entries.
    pub(super) fn settle_notes(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        id: IndexId,
        side: &SideWrites,
    ) -> Result<()> {
        let mut notes = side.take()?;
        let mut open = VecDeque::new();
        self.in_chunks(&build.interrupt, |rows, turn| {
            fill(&mut open, &mut notes, rows)?;
            let settled = rows.min(open.len());
            let chunk = open.make_contiguous().get(..settled).unwrap_or_default();
            self.settle_some(collection, build, id, chunk, turn)?;
            open.drain(..settled);
            Ok(settled == rows)
        })
    }

    fn settle_some(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        id: IndexId,
        notes: &[(RecordId, Vec<u8>)],
        turn: Option<&KeyTurn>,
    ) -> Attempt<()> {
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let current = current(writer.catalog(), collection, &build.ids)?;
        let Some(index) = current.index_by_id(id) else { return Ok(()) };
        writer.guard(&current)?;
        let mut keys = EntryKeys::default();
        for of_record in notes.chunk_by(|one, other| one.0 == other.0) {
            writer.settle_record(&current, index, of_record, &mut keys)?;
        }
        writer.commit(CommitOptions::buffered().ended_by(&build.interrupt))?;
        Ok(())
    }
}

impl Loads {
    /// Returns the next entries; `None` after the last, and after an error.
    fn next(&mut self, index: &Index) -> Option<Load> {
        if self.failed.is_some() {
            return None;
        }
        match Load::next(index, &mut self.rows, &mut self.last) {
            Ok(load) => Some(load).filter(|load| !load.is_empty()),
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}

impl Load {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.clashes.is_empty()
    }

    /// Returns the next entries. `last` is the key of the last entry; a unique index does not take
    /// the same key twice.
    fn next(index: &Index, rows: &mut MergedRows, last: &mut Vec<u8>) -> Result<Self> {
        let (mut bytes, mut lengths) = (Vec::with_capacity(LOAD_BYTES), Vec::new());
        let mut clashes = Vec::new();
        while bytes.len() < LOAD_BYTES
            && let Some(row) = rows.next()
        {
            let (key, value) = row.entry();
            if index.unique && key == &last[..] {
                clashes.push(record_id_of_unique(value)?);
            } else {
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(value);
                lengths.push((key.len(), value.len()));
                if index.unique {
                    last.clear();
                    last.extend_from_slice(key);
                }
            }
            row.pass()?;
        }
        // Keys and values are parts of one piece of memory.
        let mut bytes = Bytes::from(bytes);
        let cut = |(key, value)| (bytes.split_to(key), bytes.split_to(value));
        Ok(Load { entries: lengths.into_iter().map(cut).collect(), clashes })
    }
}

/// Reads up to `count` notes.
fn fill(
    open: &mut VecDeque<(RecordId, Vec<u8>)>,
    notes: &mut Notes,
    count: usize,
) -> Result<(), Error> {
    while open.len() < count {
        match notes.next()? {
            Some(note) => open.push_back(note),
            None => break,
        }
    }
    Ok(())
}
