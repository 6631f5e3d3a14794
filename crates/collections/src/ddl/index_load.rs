//! The first half of an index build. The keys of all documents are generated, sorted and written in
//! key order, while writers only note what they change (`side_writes.rs`). Then writers begin to
//! maintain the index, and the noted records are processed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::key::Arena;
use quire_catalog::{Collection, Facts, FactsBuf, Index, IndexId};
use quire_error::{Error, Result};
use quire_storage::{CommitOptions, Direction, KeyTurn, Space};

use super::builds::IndexBuild;
use super::index_build::{CHUNK_ROWS, current};
use super::key_sort::{KeySorter, SortedRows};
use super::{next_epoch, put_collection};
use crate::clashes;
use crate::entry::{EntryKeys, record_bytes, record_id_of_unique};
use crate::failure::Attempt;
use crate::side_writes::{Notes, SideWrites};
use crate::sorted_runs::Workspace;
use crate::{CollectionCursor, Record, RecordId, Store, WriterMode, from_interruption};

/// The bytes of documents that are read from one view.
const PAGE_BYTES: usize = 4 << 20;
/// The bytes of entries in one commit.
const LOAD_BYTES: usize = 1 << 20;

/// The entries of the documents in an index that is being built.
pub(super) struct Gathered {
    index: Arc<Index>,
    sorter: KeySorter,
    facts: FactsBuf,
}

/// Sorted entries for one commit.
#[derive(Default)]
struct Load {
    entries: Vec<(Bytes, Bytes)>,
    /// Records whose key is that of the record before them.
    clashes: Vec<RecordId>,
    bytes: usize,
}

impl Gathered {
    fn new(index: &Arc<Index>) -> Self {
        Gathered {
            index: Arc::clone(index),
            sorter: KeySorter::default(),
            facts: FactsBuf { paths: vec![0; index.keys.fields().len()], ..FactsBuf::default() },
        }
    }

    /// Adds the entries of a document.
    fn add(&mut self, record: &Record, arena: &Arena, keys: &mut EntryKeys) -> Result<()> {
        let generated = self.index.keys.generate(record.doc.as_doc(), arena)?;
        keys.encode(&self.index, &generated)?;
        if keys.has_long() || generated.multikey.iter().any(|bits| *bits != 0) {
            self.facts.merge(&Facts {
                paths: &generated.multikey,
                long_keys: keys.has_long(),
                arrays: &generated.arrays,
            });
        }
        let id = record_bytes(record.id);
        for at in 0..keys.len() {
            let (key, value) = keys.parts(&self.index, at, &id);
            self.sorter.add(key, value)?;
        }
        Ok(())
    }
}

impl Store {
    /// Generates the keys of all documents in the indexes of a build.
    ///
    /// # Errors
    /// 171 and the other errors of key generation; 276 IndexBuildAborted.
    pub(super) fn gather_keys(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
    ) -> Result<Vec<Gathered>> {
        let ids = build.ids.iter().filter_map(|id| collection.index_by_id(*id));
        let mut gathered: Vec<Gathered> = ids.map(Gathered::new).collect();
        let mut cursor = CollectionCursor::new(collection, Direction::Forward);
        let (mut records, mut keys, mut more) = (Vec::new(), EntryKeys::default(), true);
        while more {
            build.interrupt.check().map_err(from_interruption)?;
            records.clear();
            let view = self.read_view()?;
            let current = current(view.catalog(), collection, &build.ids)?;
            more =
                cursor.next_page(&view.view(), &current, CHUNK_ROWS, PAGE_BYTES, &mut records)?;
            drop(view);
            let arena = Arena::new();
            for index in &mut gathered {
                records.iter().try_for_each(|record| index.add(record, &arena, &mut keys))?;
            }
            build.advance(records.len());
            self.keep_within_memory(build, &mut gathered)?;
        }
        Ok(gathered)
    }

    /// Writes entries to disk, the largest index first, until the build is within its memory limit.
    fn keep_within_memory(&self, build: &IndexBuild, gathered: &mut [Gathered]) -> Result<()> {
        let used = |gathered: &[Gathered]| {
            gathered.iter().map(|index| index.sorter.memory_bytes()).sum::<usize>()
        };
        while used(gathered) > self.builds.memory_bytes() {
            let largest = gathered.iter_mut().max_by_key(|index| index.sorter.memory_bytes());
            let Some(largest) = largest else { return Ok(()) };
            self.on_disk(build, |workspace| largest.sorter.spill(workspace))?;
        }
        Ok(())
    }

    /// Calls `step` with the workspace in which a build continues on disk.
    fn on_disk<T>(
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
        for Gathered { index, sorter, facts: own } in gathered {
            let mut rows = self.on_disk(build, |workspace| sorter.finish(workspace))?;
            let mut last = Bytes::new();
            loop {
                let load = Load::next(&index, &mut rows, &mut last)?;
                if load.entries.is_empty() && load.clashes.is_empty() {
                    break;
                }
                self.write_load(collection, build, index.id, &load)?;
            }
            facts.push((index.id, own));
        }
        Ok(facts)
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

impl Load {
    /// Returns the next entries. `last` is the key of the last entry; a unique index does not take
    /// the same key twice.
    fn next(index: &Index, rows: &mut SortedRows, last: &mut Bytes) -> Result<Self> {
        let mut load = Load::default();
        while load.bytes < LOAD_BYTES {
            let Some((key, value)) = rows.next()? else { break };
            load.bytes += key.len() + value.len();
            if index.unique && key == *last {
                load.clashes.push(record_id_of_unique(&value)?);
                continue;
            }
            if index.unique {
                last.clone_from(&key);
            }
            load.entries.push((key, value));
        }
        Ok(load)
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
