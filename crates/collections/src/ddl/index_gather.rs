//! The scan of an index build. Threads read pieces of the collection, generate the keys of the documents
//! in them and sort what each has gathered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quire_catalog::key::Arena;
use quire_catalog::{Collection, Facts, FactsBuf, Index};
use quire_error::{Error, Result};
use quire_mql::context::interruptible;
use quire_storage::Direction;

use super::index_build::{CHUNK_ROWS, current};
use super::key_sort::{KeySorter, MergedRows, SortedRows};
use crate::entry::{EntryKeys, record_bytes};
use crate::index_builds::IndexBuild;
use crate::{CollectionCursor, Helpers, Record, RecordId, Store, from_interruption, processors};

/// The bytes of documents whose keys are generated between two checks of the interrupt.
const UNCHECKED_BYTES: usize = 64 * 1024;

/// The bytes of documents that are read from one view.
const PAGE_BYTES: usize = 4 << 20;
/// The record ids of the smallest piece. Reading it takes some milliseconds, compared with which the
/// start of a thread is cheap.
const PIECE_IDS: u64 = 8 << 10;
/// A build of fewer documents uses one thread.
pub(super) const LONG_DOCUMENTS: u64 = 2 * PIECE_IDS;
/// The approximate number of pieces for each thread. With many small pieces all threads end at nearly
/// the same time.
const PIECES_EACH: u64 = 16;

/// The sorted entries that the documents have in an index that is being built.
pub(super) struct Gathered {
    pub index: Arc<Index>,
    pub rows: MergedRows,
    pub facts: FactsBuf,
}

/// The entries that one thread has gathered for an index.
struct Part {
    index: Arc<Index>,
    sorter: KeySorter,
    facts: FactsBuf,
}

/// The record ids that no thread has read yet. Pieces are given out by rising ids.
struct Pieces {
    next: AtomicU64,
    bound: u64,
    width: u64,
    /// The first id of a piece that failed, and its error. Of several, the one with the smallest id, so
    /// that the error does not depend on the threads.
    failed: Mutex<Option<(u64, Error)>>,
}

impl Pieces {
    /// Cuts the ids from `first` to before `bound` into pieces for this number of threads.
    fn new(first: u64, bound: u64, threads: usize) -> Self {
        let wanted = PIECES_EACH.saturating_mul(threads as u64).max(1);
        let width = (bound.saturating_sub(first) / wanted).max(PIECE_IDS);
        Pieces { next: AtomicU64::new(first), bound, width, failed: Mutex::default() }
    }

    /// Returns the first and the last id of the next piece; `None` after the last piece, and after an
    /// error. Pieces with smaller ids are read to their end then, so the first error is found.
    fn take(&self) -> Option<(u64, u64)> {
        if self.failed.lock().is_some() {
            return None;
        }
        let first = self.next.fetch_add(self.width, Ordering::Relaxed);
        let end = first.saturating_add(self.width).min(self.bound);
        (first < self.bound).then(|| (first, end - 1))
    }

    /// Notes an error of the piece that begins with the id `first`.
    fn fail(&self, first: u64, error: Error) {
        let mut failed = self.failed.lock();
        if failed.as_ref().is_none_or(|(other, _)| first < *other) {
            *failed = Some((first, error));
        }
    }
}

impl Part {
    fn new(index: &Arc<Index>) -> Self {
        Part { index: Arc::clone(index), sorter: KeySorter::default(), facts: no_facts(index) }
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

fn no_facts(index: &Index) -> FactsBuf {
    FactsBuf { paths: vec![0; index.keys.fields().len()], ..FactsBuf::default() }
}

impl Store {
    /// Generates the keys of all documents in the indexes of a build, and sorts them.
    ///
    /// # Errors
    /// 171 and the others of key generation, for the first document that has one; 276
    /// IndexBuildAborted.
    pub(super) fn gather_keys(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
    ) -> Result<Vec<Gathered>> {
        let view = self.read_view()?;
        // Documents that come later are noted by their writers.
        let ids = view.view().record_ids(collection)?;
        drop(view);
        let is_long = ids.end.saturating_sub(ids.start) >= LONG_DOCUMENTS;
        let helpers = Helpers::acquire(if is_long { processors() - 1 } else { 0 });
        let threads = helpers.count() + 1;
        let pieces = Pieces::new(ids.start, ids.end, threads);
        let indexes: Vec<Arc<Index>> = build.indexes_of(collection);
        let mut gathered: Vec<Gathered> = indexes.iter().map(Gathered::new).collect();
        let done = Mutex::new(&mut gathered);
        let gather = || {
            let mut parts: Vec<Part> = indexes.iter().map(Part::new).collect();
            let sorted = self.gather_pieces(collection, build, &pieces, threads, &mut parts);
            let Some(sorted) = sorted else { return };
            let mut done = done.lock();
            for (gathered, (facts, rows)) in done.iter_mut().zip(sorted) {
                gathered.add(&facts, rows);
            }
        };
        helpers.run("index", gather, gather);
        match pieces.failed.into_inner() {
            Some((_, error)) => Err(error),
            None => Ok(gathered),
        }
    }

    /// Gathers the keys of pieces until none is left, and sorts them. Returns `None` after an error,
    /// which is in `pieces`.
    fn gather_pieces(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        pieces: &Pieces,
        threads: usize,
        parts: &mut Vec<Part>,
    ) -> Option<Vec<(FactsBuf, SortedRows)>> {
        let memory = self.builds.memory_bytes() / threads;
        let interrupt = build.interrupt_check();
        while let Some((first, last)) = pieces.take() {
            let ids = (RecordId(first), RecordId(last));
            let gathered = interruptible(&interrupt, || {
                self.gather_piece(collection, build, ids, memory, parts)
            });
            if let Err(error) = gathered {
                pieces.fail(first, error);
                return None;
            }
        }
        let sorted = std::mem::take(parts).into_iter().map(|part| {
            let rows = self.on_disk(build, |workspace| part.sorter.finish(workspace))?;
            Ok((part.facts, rows))
        });
        sorted.collect::<Result<_>>().map_err(|error| pieces.fail(u64::MAX, error)).ok()
    }

    fn gather_piece(
        self: &Arc<Self>,
        collection: &Collection,
        build: &IndexBuild,
        (first, last): (RecordId, RecordId),
        memory: usize,
        parts: &mut [Part],
    ) -> Result<()> {
        let direction = Direction::Forward;
        let mut cursor = CollectionCursor::between(collection, direction, Some(first), Some(last));
        let (mut records, mut keys, mut more) = (Vec::new(), EntryKeys::default(), true);
        while more {
            build.interrupt.check().map_err(from_interruption)?;
            records.clear();
            let view = self.read_view()?;
            let current = current(view.catalog(), collection, &build.ids)?;
            more =
                cursor.next_page(&view.view(), &current, CHUNK_ROWS, PAGE_BYTES, &mut records)?;
            drop(view);
            let (arena, mut unchecked) = (Arena::new(), 0);
            for part in parts.iter_mut() {
                for record in &records {
                    unchecked += record.doc.as_doc().len();
                    if unchecked >= UNCHECKED_BYTES {
                        unchecked = 0;
                        build.interrupt.check().map_err(from_interruption)?;
                    }
                    part.add(record, &arena, &mut keys)?;
                }
            }
            build.advance(records.len());
            self.keep_within_memory(build, memory, parts)?;
        }
        Ok(())
    }

    /// Writes entries to disk, the largest index first, until the parts take at most `bytes_max` in
    /// memory.
    fn keep_within_memory(
        &self,
        build: &IndexBuild,
        bytes_max: usize,
        parts: &mut [Part],
    ) -> Result<()> {
        let used =
            |parts: &[Part]| parts.iter().map(|part| part.sorter.memory_bytes()).sum::<usize>();
        while used(parts) > bytes_max {
            let largest = parts.iter_mut().max_by_key(|part| part.sorter.memory_bytes());
            let Some(largest) = largest else { return Ok(()) };
            self.on_disk(build, |workspace| largest.sorter.spill(workspace))?;
        }
        Ok(())
    }
}

impl Gathered {
    fn new(index: &Arc<Index>) -> Self {
        let (index, facts) = (Arc::clone(index), no_facts(index));
        Gathered { index, rows: MergedRows::default(), facts }
    }

    /// Adds what one thread has gathered.
    fn add(&mut self, facts: &FactsBuf, rows: SortedRows) {
        let arrays: BTreeSet<&str> = facts.arrays.iter().map(String::as_str).collect();
        let (paths, long_keys) = (&facts.paths[..], facts.long_keys);
        self.facts.merge(&Facts { paths, long_keys, arrays: &arrays });
        self.rows.add(rows);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn pieces_are_all_ids_once_and_end_at_an_error() {
        let taken = |pieces: &Pieces| std::iter::from_fn(|| pieces.take()).collect::<Vec<_>>();
        let pieces = Pieces::new(1, 3 * PIECE_IDS, 2);
        let (one, two) = (PIECE_IDS, 2 * PIECE_IDS);
        assert_eq!(taken(&pieces), [(1, one), (one + 1, two), (two + 1, 3 * PIECE_IDS - 1)]);
        assert!(taken(&Pieces::new(5, 5, 1)).is_empty());
        let wide = taken(&Pieces::new(0, 1 << 40, 2));
        assert_eq!((wide.len(), wide.last().unwrap().1), (32, (1 << 40) - 1));
        let pieces = Pieces::new(1, 3 * PIECE_IDS, 2);
        for first in [7, 5, 6] {
            pieces.fail(first, Error::internal(format!("{first}")));
        }
        assert_eq!(pieces.take(), None);
        assert_eq!(pieces.failed.into_inner().unwrap().0, 5);
    }
}
