//! The first rows of a range, read straight from the blocks of the tables; `newest_back.rs` reads the
//! last ones. fjall's own iterators make an owned key and an owned value of every row, peek at each in
//! four layers and look it up in a heap: a thousand instructions a row. Here a row is decoded where it
//! stands, and one that is alone in its range is compared with nothing.
//!
//! It serves a snapshot after which nothing has been written: the newest list of tables is the
//! snapshot's own then. A later list does not serve an older snapshot (`held.rs`), and fjall does not
//! show the lists that it keeps for those.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::{BlockHandle, BlockOffset};
use lsm_tree::{AbstractTree, InternalValue, Memtable, SeqNo, Table, Tree, ValueType};
use quire_storage::{Direction, Page, ScanRequest};

use crate::block_rows::{BlockRow, BlockRows};
use crate::open_table::{OpenTable, Result, files, not_rows, stable};

/// Tables of one run that a page is read from at most. A page is smaller than a table.
const TABLES_MAX: usize = 2;
/// Rows of a page that memory is taken for before they are read.
const ROWS_EXPECTED_MAX: usize = 32;
/// By how much later keys of a page may be longer than its first.
const KEY_BYTES_SPARE: usize = 8;
/// Places of blocks that are looked up at first, and after these.
pub(crate) const PLACES_FIRST: usize = 2;
pub(crate) const PLACES_MAX: usize = 32;

/// The newest tables and the newest memtable, as far as a range begins in them.
pub(crate) struct Newest {
    pub seqno: SeqNo,
    /// The tables of each run, in the order of the scan.
    pub runs: Vec<Vec<OpenTable>>,
    pub memtable: Arc<Memtable>,
    /// Where the tables at hand end: they hold every row before this key, and in a reverse scan every
    /// row from it on. Empty if they hold all.
    pub edge: Bytes,
}

/// A walk over rows that stands at one, or at the end.
pub(crate) trait Walk {
    /// The key of the row at hand; `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Takes the value of the row at hand; `None` at the end. It is empty if only keys are wanted.
    fn take(&mut self) -> Option<Bytes>;

    /// Goes to the next row that the snapshot sees.
    fn advance(&mut self) -> Result<()>;
}

impl Newest {
    /// What a snapshot with the number `seqno` reads of a range, if there is no memtable that waits
    /// for its flush. The caller makes sure afterwards that nothing was written since the snapshot.
    pub fn of(tree: &Tree, seqno: SeqNo, request: &ScanRequest<'_>) -> Option<Self> {
        let files = files(tree)?;
        let (version, memtable) = stable(tree, Tree::current_version, |version| version.id())?;
        let mut edge = Bytes::copy_from_slice(far_bound(request));
        let mut runs = Vec::new();
        for run in version.iter_levels().flat_map(|level| level.iter()) {
            let (start, end) = match request.direction {
                Direction::Forward => (request.start, &edge[..]),
                Direction::Reverse => (&edge[..], request.end),
            };
            let from = run.partition_point(|table| table.metadata.key_range.max()[..] < *start);
            let tables = run.get(from..).unwrap_or_default();
            let to = tables.partition_point(|table| {
                end.is_empty() || table.metadata.key_range.min()[..] < *end
            });
            let tables = tables.get(..to).unwrap_or_default();
            let open = |table: &Table| OpenTable::new(tree, table, &files);
            let ahead = TABLES_MAX + 1;
            let mut opened: Vec<OpenTable> = match request.direction {
                Direction::Forward => tables.iter().take(ahead).map(open).collect(),
                Direction::Reverse => tables.iter().rev().take(ahead).map(open).collect(),
            };
            if opened.len() > TABLES_MAX
                && let Some(beyond) = opened.pop()
            {
                let range = &beyond.table.metadata.key_range;
                edge = match request.direction {
                    Direction::Forward => Bytes::from(range.min().clone()),
                    Direction::Reverse => Bytes::from([&range.max()[..], &[0]].concat()),
                };
            }
            if !opened.is_empty() {
                runs.push(opened);
            }
        }
        Some(Self { seqno, runs, memtable, edge })
    }

    /// Fills an empty page from the row at hand on. The keys of a page share their memory. A page may
    /// end early where the tables at hand end. Where they end before there is a row, returns the key
    /// at which the scan goes on.
    pub fn fill(
        &self,
        rows: &mut impl Walk,
        request: &ScanRequest<'_>,
        page: &mut Page,
    ) -> Result<Option<Bytes>> {
        // A page that is filled again has the room that it needed before.
        let expected = request.rows_max.min(ROWS_EXPECTED_MAX.max(page.rows.capacity()));
        let key_bytes = rows.key().map_or(0, <[u8]>::len) + KEY_BYTES_SPARE;
        let mut keys = Vec::with_capacity(expected * key_bytes);
        let mut ends = Vec::with_capacity(expected);
        page.rows.reserve(expected);
        let mut bytes = 0;
        while let Some(key) = rows.key() {
            keys.extend_from_slice(key);
            bytes += key.len();
            ends.push(keys.len());
            let value = rows.take().unwrap_or_default();
            bytes += value.len();
            page.rows.push((Bytes::new(), value));
            rows.advance()?;
            if page.rows.len() >= request.rows_max || bytes >= request.bytes_max {
                break;
            }
        }
        let keys = Bytes::from(keys);
        let mut from = 0;
        for ((key, _), end) in page.rows.iter_mut().zip(ends) {
            *key = keys.slice(from..end);
            from = end;
        }
        if rows.key().is_some() {
            page.resume_after_last(request.direction);
        } else if self.edge != far_bound(request) {
            if page.rows.is_empty() {
                return Ok(Some(self.edge.clone()));
            }
            page.resume = Some(self.edge.clone());
        }
        Ok(None)
    }

    /// Goes to the first row of the range.
    pub fn rows<'n>(&'n self, request: &ScanRequest<'_>) -> Result<NewestRows<'n>> {
        let mut sources = Vec::with_capacity(self.runs.len() + 1);
        for run in &self.runs {
            let mut source = Source::new(Rows::Run(RunRows::new(run, &self.edge)));
            if source.seek(request.start)? {
                sources.push(source);
            }
        }
        // No key is empty.
        let start = if request.start.is_empty() { &[0][..] } else { request.start };
        let first = InternalValue::from_components(start, [], SeqNo::MAX, ValueType::Value);
        let entries = self.memtable.items.range(first.key..);
        let entries = entries
            .map(|entry| InternalValue { key: entry.key().clone(), value: entry.value().clone() });
        let mut source = Source::new(Rows::Memtable(Box::new(entries), None));
        if source.advance()? {
            sources.push(source);
        }
        let keys_only = request.keys_only;
        let key = Vec::new();
        let mut rows =
            NewestRows { newest: self, sources, keys_only, key, decided: false, at: None };
        rows.advance()?;
        Ok(rows)
    }
}

/// A walk over rows by rising keys.
pub(crate) struct NewestRows<'n> {
    newest: &'n Newest,
    /// Those that are not at their end.
    sources: Vec<Source<'n>>,
    keys_only: bool,
    /// The key of the row at hand, or of the last one that was passed over.
    key: Vec<u8>,
    /// A version of `key` was met that the snapshot sees.
    decided: bool,
    /// The value of the row at hand; empty if only keys are wanted.
    at: Option<Bytes>,
}

impl Walk for NewestRows<'_> {
    fn key(&self) -> Option<&[u8]> {
        self.at.as_ref().map(|_| &self.key[..])
    }

    fn take(&mut self) -> Option<Bytes> {
        self.at.take()
    }

    fn advance(&mut self) -> Result<()> {
        self.at = None;
        let end = &self.newest.edge;
        while let Some(at) = self.first_source() {
            let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
            if !source.is_inside() && !end.is_empty() && source.key[..] >= end[..] {
                return Ok(());
            }
            let is_seen = source.seqno < self.newest.seqno;
            // Most keys differ from the one before in the last byte.
            let same_end = source.key.last() == self.key.last();
            if is_seen && !(same_end && self.decided && source.key == self.key) {
                self.at = source.value(self.keys_only);
                std::mem::swap(&mut self.key, &mut source.key);
                self.decided = true;
            }
            if !source.advance()? {
                self.sources.swap_remove(at);
            }
            if self.at.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl NewestRows<'_> {
    /// The source whose row comes first: by its key, and the newest of one key.
    #[inline]
    fn first_source(&self) -> Option<usize> {
        let (first, others) = self.sources.split_first()?;
        let (mut at, mut least) = (0, first);
        for (number, other) in others.iter().enumerate() {
            let order = other.key.cmp(&least.key).then(least.seqno.cmp(&other.seqno));
            if order.is_lt() {
                (at, least) = (number + 1, other);
            }
        }
        Some(at)
    }
}

/// The bound at which a scan ends.
fn far_bound<'r>(request: &ScanRequest<'r>) -> &'r [u8] {
    match request.direction {
        Direction::Forward => request.end,
        Direction::Reverse => request.start,
    }
}

/// Rows of one run or of the memtable, at one of them.
struct Source<'n> {
    rows: Rows<'n>,
    key: Vec<u8>,
    seqno: SeqNo,
}

enum Rows<'n> {
    Run(RunRows<'n>),
    /// The entries that follow, and the value of the one at hand; `None` for a tombstone.
    Memtable(Box<dyn Iterator<Item = InternalValue> + 'n>, Option<Bytes>),
}

impl<'n> Source<'n> {
    fn new(rows: Rows<'n>) -> Self {
        Self { rows, key: Vec::new(), seqno: 0 }
    }

    /// Goes to the first row of a run whose key is not below `key`. False at the end.
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let Rows::Run(run) = &mut self.rows else { return Ok(false) };
        let Some(seqno) = run.seek(key, &mut self.key)? else { return Ok(false) };
        self.seqno = seqno;
        Ok(true)
    }

    /// Goes to the next row. False at the end.
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match &mut self.rows {
            Rows::Run(run) => {
                let Some(seqno) = run.next(&mut self.key)? else { return Ok(false) };
                self.seqno = seqno;
            }
            Rows::Memtable(entries, value) => {
                let Some(entry) = entries.next() else { return Ok(false) };
                self.key.clear();
                self.key.extend_from_slice(&entry.key.user_key);
                self.seqno = entry.key.seqno;
                *value = (!entry.is_tombstone()).then(|| Bytes::from(entry.value));
            }
        }
        Ok(true)
    }

    /// Whether the row at hand is known to be before the end of the range.
    #[inline]
    fn is_inside(&self) -> bool {
        matches!(&self.rows, Rows::Run(run) if run.is_inside)
    }

    /// The value at hand, empty if only keys are wanted; `None` for a tombstone.
    #[inline]
    fn value(&mut self, keys_only: bool) -> Option<Bytes> {
        match &mut self.rows {
            Rows::Run(run) => {
                let value = run.value.take()?;
                Some(if keys_only { Bytes::new() } else { run.block.data().slice(value) })
            }
            Rows::Memtable(_, value) => value.take().map(|value| match keys_only {
                true => Bytes::new(),
                false => value,
            }),
        }
    }
}

/// The rows of tables that follow each other.
struct RunRows<'n> {
    /// The tables that follow.
    tables: std::slice::Iter<'n, OpenTable>,
    table: Option<&'n OpenTable>,
    /// Blocks of the table that come next.
    places: std::vec::IntoIter<BlockHandle>,
    /// The last block that was looked up, and a key that its last one is not below.
    last: Option<BlockOffset>,
    from: Vec<u8>,
    /// How many places to look up next.
    ahead: usize,
    /// The end of the range; empty if it is open.
    end: &'n [u8],
    /// The blocks that were looked up end before it.
    is_inside: bool,
    block: BlockRows,
    /// The value of the row at hand; `None` for a tombstone.
    value: Option<Range<usize>>,
}

impl<'n> RunRows<'n> {
    fn new(tables: &'n [OpenTable], end: &'n [u8]) -> Self {
        let mut tables = tables.iter();
        Self {
            table: tables.next(),
            tables,
            places: Vec::new().into_iter(),
            last: None,
            from: Vec::new(),
            ahead: PLACES_FIRST,
            end,
            is_inside: false,
            block: BlockRows::default(),
            value: None,
        }
    }

    /// Goes to the first row whose key is not below `key`. Its key is in `found` then. Returns its
    /// sequence number.
    fn seek(&mut self, key: &[u8], found: &mut Vec<u8>) -> Result<Option<SeqNo>> {
        self.from.extend_from_slice(key);
        if !self.next_block()? {
            return Ok(None);
        }
        match self.block.seek(key, found).map_err(not_rows)? {
            Some(row) => Ok(Some(self.stand_at(row))),
            None => self.next(found),
        }
    }

    /// Goes to the next row, whose key is in `key` then. Returns its sequence number.
    #[inline]
    fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<SeqNo>> {
        loop {
            if let Some(row) = self.block.next(key).map_err(not_rows)? {
                return Ok(Some(self.stand_at(row)));
            }
            if !self.next_block()? {
                return Ok(None);
            }
        }
    }

    #[inline]
    fn stand_at(&mut self, row: BlockRow) -> SeqNo {
        self.value = row.value;
        row.seqno + self.table.map_or(0, |open| open.table.global_seqno())
    }

    /// Loads the next block. False at the end.
    fn next_block(&mut self) -> Result<bool> {
        while let Some(open) = self.table {
            if self.places.as_slice().is_empty() {
                self.look_up(open)?;
            }
            if let Some(place) = self.places.next() {
                let block = open.block(&place, BlockType::Data)?;
                self.block = BlockRows::new(Bytes::from(block.data)).map_err(not_rows)?;
                return Ok(true);
            }
            self.table = self.tables.next();
            self.last = None;
            self.from.clear();
        }
        Ok(false)
    }

    /// Looks up where the next blocks of the table stand: those behind the last one whose last key is
    /// not below `from`.
    fn look_up(&mut self, open: &OpenTable) -> Result<()> {
        let ahead = std::mem::replace(&mut self.ahead, PLACES_MAX);
        let mut found = Vec::with_capacity(ahead);
        let from = self.from.clone();
        let top = open.top()?;
        open.places(&top, &from, &mut |place| {
            if self.last.is_none_or(|last| place.block.offset() > last) {
                found.push(place.block);
                self.last = Some(place.block.offset());
                place.copy_last_key(&mut self.from);
            }
            found.len() < ahead
        })?;
        self.is_inside = self.end.is_empty() || self.from[..] < *self.end;
        self.places = found.into_iter();
        Ok(())
    }
}
