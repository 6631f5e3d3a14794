//! The snapshot that readers use: one of fjall's, for which fjall keeps all older data, or a held
//! one (`held.rs`).

use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use fjall::{Guard, LsmError, Readable, SeqNo, UserKey, UserValue};
use lsm_tree::{InternalValue, Tree};
use quire_storage::backend::RawSnapshot;
use quire_storage::{Direction, Page, Result, ScanRequest, Space, StorageError};

use crate::damage::Damage;
use crate::error::storage;
use crate::gaps::Skip;
use crate::heads::Heads;
use crate::held::{Bounds, Held, HeldMemtables, HeldRows};
use crate::keyspaces::Parts;
use crate::locate;
use crate::lookups;
use crate::newest::{Newest, Walk};
use crate::open_table;
use crate::recent_keys::Tables;

/// A snapshot of all keyspaces.
pub struct FjallSnapshot {
    /// The tables in which index entries are looked up that are in no memtable; set by the first
    /// such look-up. The field is dropped before `reads`, so that fjall's own list of these tables
    /// outlives it: the last reference removes files.
    entries: OnceLock<Option<Tables>>,
    reads: Reads,
    pub(crate) parts: Arc<Parts>,
    heads: Arc<Heads>,
    epoch: u64,
}

/// The source of a snapshot's reads.
enum Reads {
    /// A snapshot of fjall's.
    Live(fjall::Snapshot),
    /// References that the snapshot holds itself.
    Held(Held),
}

/// The rows of a range, which can be read from both ends.
pub(crate) enum Rows {
    Live(fjall::Iter),
    Held(HeldRows),
}

/// A row of a range, or the error of reading it.
type Row = std::result::Result<(UserKey, UserValue), fjall::Error>;

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        match self {
            Rows::Live(rows) => rows.next().map(Guard::into_inner),
            Rows::Held(rows) => rows.next().map(held_row),
        }
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Row> {
        match self {
            Rows::Live(rows) => rows.next_back().map(Guard::into_inner),
            Rows::Held(rows) => rows.next_back().map(held_row),
        }
    }
}

fn held_row(row: std::result::Result<InternalValue, LsmError>) -> Row {
    row.map(|row| (row.key.user_key, row.value)).map_err(fjall::Error::from)
}

impl FjallSnapshot {
    /// Returns a snapshot of everything written so far.
    pub(crate) fn new(parts: Arc<Parts>, heads: Arc<Heads>, epoch: u64) -> Self {
        let reads = Reads::Live(parts.db.snapshot());
        Self { entries: OnceLock::new(), reads, parts, heads, epoch }
    }

    /// Returns the sequence number from which on fjall keeps old versions for it; `None` if it is
    /// held.
    pub(crate) fn seqno(&self) -> Option<SeqNo> {
        match &self.reads {
            Reads::Live(snapshot) => Some(snapshot.seqno()),
            Reads::Held(_) => None,
        }
    }

    /// Returns a held snapshot of the same content; see
    /// [`Backend::hold`](quire_storage::backend::Backend::hold).
    pub(crate) fn hold(&self, counted: &Arc<HeldMemtables>) -> Result<Option<Self>> {
        let Reads::Live(snapshot) = &self.reads else { return Ok(None) };
        Ok(Some(Self {
            entries: OnceLock::new(),
            reads: Reads::Held(Held::new(&self.parts, snapshot.seqno(), counted)?),
            parts: Arc::clone(&self.parts),
            heads: Arc::clone(&self.heads),
            epoch: self.epoch,
        }))
    }

    /// Returns the rows of a range. The iterator keeps the tables that it needs.
    pub(crate) fn rows(&self, space: Space, bounds: Bounds<'_>) -> Rows {
        match &self.reads {
            Reads::Live(snapshot) => {
                Rows::Live(snapshot.range::<&[u8], _>(self.parts.space(space), bounds))
            }
            Reads::Held(held) => Rows::Held(held.range(space, bounds)),
        }
    }
}

impl RawSnapshot for FjallSnapshot {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if space == Space::Idx
            && let Some(found) = self.get_from_tables(key)?
        {
            return Ok(found);
        }
        let found = match &self.reads {
            Reads::Live(snapshot) => snapshot.get(self.parts.space(space), key),
            Reads::Held(held) => {
                let mut rows = held.range(space, (Bound::Included(key), Bound::Included(key)));
                rows.next().map(held_row).transpose().map(|row| row.map(|(_, value)| value))
            }
        };
        match found {
            Ok(found) => Ok(found.map(Bytes::from)),
            Err(error) => Err(self.failure(error, space, key, Direction::Forward)),
        }
    }

    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        let start = out.len();
        out.resize(start + keys.len(), None);
        let values = out.get_mut(start..).unwrap_or_default();
        if keys.len() > 1 && self.get_newest(space, keys, values)? {
            return Ok(());
        }
        for (key, value) in keys.iter().zip(values) {
            *value = self.get(space, key)?;
        }
        Ok(())
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        let bound;
        let mut request = *request;
        match self.heads.gaps(request.space).skip(self.epoch, &request) {
            Skip::Nothing => {}
            Skip::All => return Ok(()),
            Skip::To(key) => {
                bound = key;
                request = request.resumed(&bound);
            }
        }
        let request = &request;
        if request.is_empty() {
            return Ok(());
        }
        let upper =
            if request.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(request.end) };
        let range = (Bound::Included(request.start), upper);
        let since = Instant::now();
        if self.scan_newest(request, page, since)? {
            return Ok(());
        }
        let mut rows = self.rows(request.space, range);
        let first = match request.direction {
            Direction::Forward => rows.next(),
            Direction::Reverse => rows.next_back(),
        };
        let waited = since.elapsed();
        let filled = match request.direction {
            Direction::Forward => fill(first.into_iter().chain(rows), request, page),
            Direction::Reverse => fill(first.into_iter().chain(rows.rev()), request, page),
        };
        filled.map_err(|error| self.scan_failure(error, request, page))?;
        let first = page.rows.first().map(|(key, _)| &key[..]);
        self.heads.gaps(request.space).learn(self.epoch, request, first, waited);
        self.heads.tombstones.scanned(request.space, page.rows.len(), since);
        Ok(())
    }
}

impl FjallSnapshot {
    /// Returns the tree of a space and the number of the snapshot; `None` if it is held.
    fn live(&self, space: Space) -> Option<(&Tree, SeqNo)> {
        let Reads::Live(snapshot) = &self.reads else { return None };
        Some((self.parts.tree(space)?, snapshot.seqno()))
    }

    /// Looks up an index entry that is in no memtable. Returns `None` if it may be in one.
    fn get_from_tables(&self, key: &[u8]) -> Result<Option<Option<Bytes>>> {
        let Some((tree, seqno)) = self.live(Space::Idx) else { return Ok(None) };
        let tables = self.entries.get_or_init(|| self.heads.entries.tables(tree, self.epoch));
        let Some(tables) = tables else { return Ok(None) };
        let found = tables.get(key, seqno);
        found.map_err(|error| self.failure(error.into(), Space::Idx, key, Direction::Forward))
    }

    /// Converts the error of a read near `key`. If the current tables have a damaged block there, the
    /// error names its file and position.
    fn failure(
        &self,
        error: fjall::Error,
        space: Space,
        key: &[u8],
        direction: Direction,
    ) -> StorageError {
        named(storage(error, space.name()), || {
            locate::damage_near(self.parts.tree(space)?, key, direction)
        })
    }

    /// Converts the error of a scan that has returned the rows of `page`.
    fn scan_failure(
        &self,
        error: fjall::Error,
        request: &ScanRequest<'_>,
        page: &Page,
    ) -> StorageError {
        let begin = match request.direction {
            Direction::Forward => request.start,
            Direction::Reverse => request.end,
        };
        let reached = page.rows.last().map_or(begin, |(key, _)| key);
        self.failure(error, request.space, reached, request.direction)
    }

    /// Returns true if no batch has begun since the snapshot. Then everything read before the call
    /// belongs to the snapshot, because a batch is announced before any of it is written.
    fn is_current(&self, space: Space) -> bool {
        self.heads.gaps(space).epoch() == self.epoch
    }

    /// Reads values from the newest tables, if they are the tables of this snapshot; else returns
    /// false.
    fn get_newest(&self, space: Space, keys: &[&[u8]], out: &mut [Option<Bytes>]) -> Result<bool> {
        let Some((tree, seqno)) = self.live(space) else { return Ok(false) };
        lookups::get_many(tree, seqno, || self.is_current(space), keys, out).map_err(|error| {
            let near = |key: &&[u8]| locate::damage_near(tree, key, Direction::Forward);
            named(storage(error.into(), space.name()), || keys.iter().find_map(near))
        })
    }

    /// Fills the page from the blocks of the newest tables, if they are the tables of this
    /// snapshot; else returns false.
    fn scan_newest(
        &self,
        request: &ScanRequest<'_>,
        page: &mut Page,
        since: Instant,
    ) -> Result<bool> {
        let Some((tree, seqno)) = self.live(request.space) else { return Ok(false) };
        let learn = |first: Option<&[u8]>| {
            self.heads.gaps(request.space).learn(self.epoch, request, first, since.elapsed())
        };
        let mut from = Bytes::new();
        loop {
            let rest = if from.is_empty() { *request } else { request.resumed(&from) };
            let Some(newest) = Newest::of(tree, seqno, &rest) else { return Ok(false) };
            if !self.is_current(request.space) {
                return Ok(false);
            }
            let end = match rest.direction {
                Direction::Forward => {
                    newest.rows(&rest).and_then(|rows| read(&newest, rows, &rest, page, &learn))
                }
                Direction::Reverse => newest
                    .rows_back(&rest)
                    .and_then(|rows| read(&newest, rows, &rest, page, &learn)),
            };
            match end {
                Ok(Some(end)) => from = end,
                Ok(None) => break,
                Err(error) => return Err(self.scan_failure(error.into(), &rest, page)),
            }
        }
        if page.rows.is_empty() {
            learn(None);
        }
        self.heads.tombstones.scanned(request.space, page.rows.len(), since);
        Ok(true)
    }
}

/// Reports the first row to `learn`, then fills the page.
fn read(
    newest: &Newest,
    mut rows: impl Walk,
    request: &ScanRequest<'_>,
    page: &mut Page,
    learn: &dyn Fn(Option<&[u8]>),
) -> open_table::Result<Option<Bytes>> {
    if rows.key().is_some() {
        learn(rows.key());
    }
    newest.fill(&mut rows, request, page)
}

/// Returns the error, for damage with the place that `find` returns instead of the engine's text.
fn named(error: StorageError, find: impl FnOnce() -> Option<Damage>) -> StorageError {
    match error {
        StorageError::Corruption { .. } => find().map_or(error, StorageError::from),
        error => error,
    }
}

fn fill(
    rows: impl Iterator<Item = Row>,
    request: &ScanRequest<'_>,
    page: &mut Page,
) -> std::result::Result<(), fjall::Error> {
    let mut bytes = 0;
    let mut full = false;
    for row in rows {
        if full {
            page.resume_after_last(request.direction);
            return Ok(());
        }
        let (key, value) = row?;
        let key = Bytes::from(key);
        let value = if request.keys_only { Bytes::new() } else { Bytes::from(value) };
        bytes += key.len() + value.len();
        page.rows.push((key, value));
        full = page.rows.len() >= request.rows_max.max(1) || bytes >= request.bytes_max;
    }
    Ok(())
}
