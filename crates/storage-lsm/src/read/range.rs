//! Reads the first rows of a range straight from the memtables and from the blocks of the tables;
//! `range_back.rs` reads the last rows. lsm-tree's own iterators copy the key and the value of
//! every row, peek at each in four layers and pass it through a heap: a thousand instructions a
//! row. Here a row is decoded in place, and a row of the only source in its range is not compared
//! with anything.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::{BlockHandle, BlockOffset};
use lsm_tree::{SeqNo, Table};
use quire_storage::{Direction, Page, ScanRequest, VisitedRow, Visitor, next_key};
use smallvec::SmallVec;

use crate::memory::memtable::{Memtable, MemtableRows};
use crate::read::range_source::{Rows, RunCursor, Source};
use crate::store::view::SpaceView;
use crate::table::block_rows::{BlockRow, BlockRows};
use crate::table::opened::{OpenTable, Result, not_rows};

/// The largest number of tables of one run that a page is read from. A page is smaller than a
/// table.
const TABLES_MAX: usize = 2;
/// The largest number of rows for which a page reserves memory before they are read.
const ROWS_EXPECTED_MAX: usize = 32;
/// How much longer than the first key of a page its later keys may be without another allocation.
const KEY_BYTES_SPARE: usize = 8;
/// The number of blocks whose places are looked up first; each later look-up takes more.
pub(crate) const PLACES_FIRST: usize = 2;
pub(crate) const PLACES_MAX: usize = 32;

/// The memtables and tables of a snapshot, as far as they contain the beginning of a range.
pub(crate) struct RangeSources {
    /// The last batch that the snapshot sees. Its tables have no later one.
    pub seqno: SeqNo,
    /// The tables of each run, in the order of the scan.
    pub runs: Vec<Vec<OpenTable>>,
    pub memtables: SmallVec<[Arc<Memtable>; 2]>,
    /// The key at which the chosen tables end: they hold every row before it, and for a reverse
    /// scan every row from it on. Empty if they hold all rows.
    pub edge: Bytes,
}

/// A cursor over rows, at one row or at the end.
pub(crate) trait Walk {
    /// Returns the key of the current row; `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the value of the current row, and the bytes that it is a part of; `None` at the end.
    /// The value is empty if only keys are wanted.
    fn value(&self) -> Option<(&[u8], &Bytes)>;

    /// Takes the value of the current row without a copy, before the next call of `advance`.
    fn take(&mut self) -> Option<Bytes>;

    /// Moves to the next row.
    fn advance(&mut self) -> Result<()>;
}

impl RangeSources {
    /// Returns what a snapshot of batch `seqno` reads for a range.
    pub fn of(view: &SpaceView, seqno: SeqNo, request: &ScanRequest<'_>) -> Self {
        let mut edge = Bytes::copy_from_slice(far_bound(request));
        let mut runs = Vec::new();
        for run in &view.tables.runs {
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
            let open = |table: &Table| OpenTable::new(&view.tables, table);
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
                    Direction::Reverse => next_key(range.max()),
                };
            }
            if !opened.is_empty() {
                runs.push(opened);
            }
        }
        let has_rows = |memtable: &&Arc<Memtable>| !memtable.is_empty();
        let memtables = view.memtables.iter().filter(has_rows).cloned().collect();
        Self { seqno, runs, memtables, edge }
    }

    /// Fills an empty page, beginning with the current row. The keys of a page share one
    /// allocation. A page may end early where the chosen tables end. If they end before any row,
    /// returns the key at which the scan continues.
    pub fn fill(
        &self,
        rows: &mut impl Walk,
        request: &ScanRequest<'_>,
        page: &mut Page,
    ) -> Result<Option<Bytes>> {
        // A page that is filled again reuses its capacity.
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
        Ok(self.end(rows, request, page))
    }

    /// Counts at most `rows_max` rows, beginning with the current one. The page gets the last of
    /// them, without its value. Returns their number, and the key at which the scan continues if
    /// the chosen tables end before any row.
    pub fn pass(
        &self,
        rows: &mut impl Walk,
        request: &ScanRequest<'_>,
        page: &mut Page,
    ) -> Result<(usize, Option<Bytes>)> {
        let (mut passed, mut last) = (0, Vec::new());
        while passed < request.rows_max
            && let Some(key) = rows.key()
        {
            passed += 1;
            last.clear();
            last.extend_from_slice(key);
            rows.advance()?;
        }
        if passed > 0 {
            page.rows.push((Bytes::from(last), Bytes::new()));
        }
        Ok((passed, self.end(rows, request, page)))
    }

    /// Calls `visitor` for the rows that [`fill`](Self::fill) would return. Returns their number, and
    /// the key at which the scan continues.
    pub fn visit(
        &self,
        rows: &mut impl Walk,
        request: &ScanRequest<'_>,
        visitor: &mut Visitor<'_>,
    ) -> Result<(usize, Option<Bytes>)> {
        let (mut visited, mut bytes) = (0, 0);
        while let (Some(key), Some((value, whole))) = (rows.key(), rows.value()) {
            if visited >= request.rows_max || bytes >= request.bytes_max {
                return Ok((visited, Some(resume_at(request, key, false))));
            }
            visited += 1;
            bytes += key.len() + value.len();
            if visitor(&VisitedRow { key, value, whole }).is_break() {
                return Ok((visited, Some(resume_at(request, key, true))));
            }
            rows.advance()?;
        }
        Ok((visited, self.continuation(request)))
    }

    /// Sets where the page after this one begins. If this one is empty, returns the key at which the
    /// scan continues.
    fn end(&self, rows: &impl Walk, request: &ScanRequest<'_>, page: &mut Page) -> Option<Bytes> {
        if rows.key().is_some() {
            page.resume_after_last(request.direction);
            return None;
        }
        let edge = self.continuation(request);
        if page.rows.is_empty() {
            return edge;
        }
        page.resume = edge;
        None
    }

    /// Returns the key at which the chosen tables end, if the range goes on there.
    fn continuation(&self, request: &ScanRequest<'_>) -> Option<Bytes> {
        (self.edge != far_bound(request)).then(|| self.edge.clone())
    }

    /// Returns a cursor at the first row of the range.
    pub fn rows<'n>(&'n self, request: &ScanRequest<'_>) -> Result<RowsAhead<'n>> {
        let mut sources = Vec::with_capacity(self.runs.len() + self.memtables.len());
        for run in &self.runs {
            let mut source = Source::new(Rows::Run(RunRows::new(run, &self.edge)));
            if source.seek(request.start)? {
                sources.push(source);
            }
        }
        for memtable in &self.memtables {
            let entries =
                MemtableRows::new(memtable, self.seqno, Direction::Forward, request.start);
            sources.extend(Source::at_first(Rows::Memtable(entries, None))?);
        }
        let keys_only = request.keys_only;
        let key = Vec::new();
        let mut rows = RowsAhead { range: self, sources, keys_only, at: None, key, decided: false };
        rows.advance()?;
        Ok(rows)
    }
}

/// A cursor over rows in ascending order.
pub(crate) struct RowsAhead<'n> {
    range: &'n RangeSources,
    /// The sources that are not at their end.
    sources: Vec<Source<'n, RunRows<'n>>>,
    keys_only: bool,
    /// The source of the current row; `None` at the end.
    at: Option<usize>,
    /// The key of the current row, or of the last row that was skipped.
    key: Vec<u8>,
    /// True after the newest version of `key` was met.
    decided: bool,
}

impl Walk for RowsAhead<'_> {
    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.at.map(|_| &self.key[..])
    }

    #[inline]
    fn value(&self) -> Option<(&[u8], &Bytes)> {
        let (value, whole) = self.sources.get(self.at?)?.value()?;
        Some((if self.keys_only { &[] } else { value }, whole))
    }

    #[inline]
    fn take(&mut self) -> Option<Bytes> {
        let source = self.sources.get_mut(self.at?)?;
        if self.keys_only { Some(Bytes::new()) } else { source.take() }
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(at) = self.at.take() {
            self.pass(at)?;
        }
        let end = &self.range.edge;
        while let Some(at) = self.first_source() {
            let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
            if !source.is_inside() && !end.is_empty() && source.key[..] >= end[..] {
                return Ok(());
            }
            // Most adjacent keys differ in their last byte.
            let same_end = source.key.last() == self.key.last();
            if !(same_end && self.decided && source.key == self.key) {
                std::mem::swap(&mut self.key, &mut source.key);
                self.decided = true;
                if source.value().is_some() {
                    self.at = Some(at);
                    return Ok(());
                }
            }
            self.pass(at)?;
        }
        Ok(())
    }
}

impl RowsAhead<'_> {
    /// Moves a source to its next row, or removes it.
    #[inline]
    fn pass(&mut self, at: usize) -> Result<()> {
        if let Some(source) = self.sources.get_mut(at)
            && !source.advance()?
        {
            self.sources.swap_remove(at);
        }
        Ok(())
    }

    /// Returns the source with the smallest key; among equal keys, the one with the newest version.
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

/// Returns where a scan continues: with the row of `key`, or after it if it was visited.
fn resume_at(request: &ScanRequest<'_>, key: &[u8], is_visited: bool) -> Bytes {
    // A forward scan continues at a key, a reverse scan before it.
    match (request.direction == Direction::Forward) == is_visited {
        true => next_key(key),
        false => Bytes::copy_from_slice(key),
    }
}

/// Returns the bound at which the scan ends.
fn far_bound<'r>(request: &ScanRequest<'r>) -> &'r [u8] {
    match request.direction {
        Direction::Forward => request.end,
        Direction::Reverse => request.start,
    }
}

impl Source<'_, RunRows<'_>> {
    /// Moves to the first row of a run whose key is not below `key`. Returns false at the end.
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let Rows::Run(run) = &mut self.rows else { return Ok(false) };
        let Some(seqno) = run.seek(key, &mut self.key)? else { return Ok(false) };
        self.seqno = seqno;
        Ok(true)
    }

    /// Returns true if the current row is known to be before the end of the range.
    #[inline]
    fn is_inside(&self) -> bool {
        matches!(&self.rows, Rows::Run(run) if run.is_inside)
    }
}

/// The rows of the tables of one run, one table after the other.
struct RunRows<'n> {
    /// The tables that follow the current one.
    tables: std::slice::Iter<'n, OpenTable>,
    table: Option<&'n OpenTable>,
    /// The next blocks of the current table.
    places: std::vec::IntoIter<BlockHandle>,
    /// The last block that was looked up, and a key that is not above its last key.
    last: Option<BlockOffset>,
    from: Vec<u8>,
    /// The number of blocks of the next look-up.
    ahead: usize,
    /// The end of the range; empty if it is open.
    end: &'n [u8],
    /// True if the blocks that were looked up end before the end of the range.
    is_inside: bool,
    block: BlockRows,
    /// The value of the current row; `None` for a tombstone.
    value: Option<Range<usize>>,
}

impl RunCursor for RunRows<'_> {
    #[inline]
    fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<SeqNo>> {
        loop {
            if let Some(row) = self.block.next(key).map_err(not_rows)? {
                return Ok(Some(self.stand_at(row)));
            }
            if !self.next_block()? {
                return Ok(None);
            }
            self.block.load_ahead();
        }
    }

    #[inline]
    fn value(&self) -> Option<(&Bytes, Range<usize>)> {
        self.value.clone().map(|value| (self.block.data(), value))
    }
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

    /// Moves to the first row whose key is not below `key`, and writes its key into `found`.
    /// Returns its sequence number.
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

    #[inline]
    fn stand_at(&mut self, row: BlockRow) -> SeqNo {
        self.value = row.value;
        row.seqno + self.table.map_or(0, |open| open.table.global_seqno())
    }

    /// Loads the next block. Returns false at the end.
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

    /// Looks up the places of the next blocks of the table: those after the last one that was
    /// looked up, whose last key is not below `from`.
    fn look_up(&mut self, open: &OpenTable) -> Result<()> {
        let ahead = std::mem::replace(&mut self.ahead, PLACES_MAX);
        let mut found = Vec::with_capacity(ahead);
        let from = self.from.clone();
        let top = open.top()?;
        open.entries(&top, &from, &mut |entry| {
            if self.last.is_none_or(|last| entry.block.offset() > last) {
                found.push(entry.block);
                self.last = Some(entry.block.offset());
                self.from.clear();
                self.from.extend_from_slice(entry.last_key);
            }
            found.len() < ahead
        })?;
        self.is_inside = self.end.is_empty() || self.from[..] < *self.end;
        self.places = found.into_iter();
        Ok(())
    }
}
