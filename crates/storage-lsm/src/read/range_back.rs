//! Reads the last rows of a range, in descending order, straight from the memtables and the blocks
//! of the tables. A block can only be read forward from a row with a whole key. So each part from
//! one whole key to the next is read into a list, and the rows are taken from the end of the list.

use std::ops::Range;

use bytes::Bytes;
use lsm_tree::SeqNo;
use lsm_tree::table::block::BlockType;
use lsm_tree::table::{BlockHandle, BlockOffset};
use quire_storage::{Direction, ScanRequest};

use crate::memory::memtable::MemtableRows;
use crate::read::range::{PLACES_FIRST, PLACES_MAX, RangeSources, Walk};
use crate::read::range_source::{Rows, RunCursor, Source};
use crate::table::block_rows::{BlockRows, RestartPart};
use crate::table::opened::{OpenTable, Result, not_rows};

/// A cursor over rows in descending order.
pub(crate) struct RowsBack<'n> {
    range: &'n RangeSources,
    /// The sources that are not at their end.
    sources: Vec<Source<'n, RunRows<'n>>>,
    keys_only: bool,
    /// The key of the current row, or of the last row that was skipped.
    key: Vec<u8>,
    /// The value of the current row; empty if only keys are wanted.
    at: Option<Bytes>,
}

impl RangeSources {
    /// Returns a cursor at the last row of the range of a reverse scan.
    pub fn rows_back<'n>(&'n self, request: &ScanRequest<'n>) -> Result<RowsBack<'n>> {
        let mut sources = Vec::with_capacity(self.runs.len() + self.memtables.len());
        for run in &self.runs {
            sources.extend(Source::at_first(Rows::Run(RunRows::new(run, request.end)))?);
        }
        for memtable in &self.memtables {
            let entries = MemtableRows::new(memtable, self.seqno, Direction::Reverse, request.end);
            sources.extend(Source::at_first(Rows::Memtable(entries, None))?);
        }
        let keys_only = request.keys_only;
        let mut rows = RowsBack { range: self, sources, keys_only, key: Vec::new(), at: None };
        rows.advance()?;
        Ok(rows)
    }
}

impl Walk for RowsBack<'_> {
    fn key(&self) -> Option<&[u8]> {
        self.at.as_ref().map(|_| &self.key[..])
    }

    fn value(&self) -> Option<(&[u8], &Bytes)> {
        self.at.as_ref().map(|value| (&value[..], value))
    }

    fn take(&mut self) -> Option<Bytes> {
        self.at.take()
    }

    fn advance(&mut self) -> Result<()> {
        self.at = None;
        while self.at.is_none()
            && let Some(last) = self.sources.iter().map(|source| &source.key).max()
            && last[..] >= self.range.edge[..]
        {
            self.key.clone_from(last);
            self.take_versions()?;
        }
        Ok(())
    }
}

impl RowsBack<'_> {
    /// Reads all versions of `key` and keeps the newest, unless it is a tombstone.
    fn take_versions(&mut self) -> Result<()> {
        let mut newest: Option<SeqNo> = None;
        let mut number = 0;
        while let Some(source) = self.sources.get_mut(number) {
            let mut has_more = true;
            while has_more && source.key == self.key {
                if newest.is_none_or(|it| it < source.seqno) {
                    newest = Some(source.seqno);
                    self.at = match self.keys_only {
                        true => source.value().map(|_| Bytes::new()),
                        false => source.take(),
                    };
                }
                has_more = source.advance()?;
            }
            if has_more {
                number += 1;
            } else {
                self.sources.swap_remove(number);
            }
        }
        Ok(())
    }
}

/// The rows of the tables of one run, one table after the other.
struct RunRows<'n> {
    /// The tables that follow the current one.
    tables: std::slice::Iter<'n, OpenTable>,
    table: Option<&'n OpenTable>,
    /// The next blocks of the current table.
    places: std::vec::IntoIter<BlockHandle>,
    /// The last block that was looked up, and its greatest key.
    last: Option<BlockOffset>,
    until: Vec<u8>,
    /// The number of blocks of the next look-up.
    ahead: usize,
    /// The end of the range; empty if it is open, or after a row before the end was read.
    end: &'n [u8],
    block: BlockRows,
    /// The number of parts of the block that are not yet read.
    parts: usize,
    part: RestartPart,
    /// The value of the current row; `None` for a tombstone.
    value: Option<Range<usize>>,
}

impl RunCursor for RunRows<'_> {
    #[inline]
    fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<SeqNo>> {
        loop {
            if let Some(row) = self.part.pop(key) {
                self.value = row.value;
                return Ok(Some(
                    row.seqno + self.table.map_or(0, |open| open.table.global_seqno()),
                ));
            }
            if !self.next_part()? {
                return Ok(None);
            }
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
            until: Vec::new(),
            ahead: PLACES_FIRST,
            end,
            block: BlockRows::default(),
            parts: 0,
            part: RestartPart::default(),
            value: None,
        }
    }

    /// Reads the next part. Returns false at the end.
    fn next_part(&mut self) -> Result<bool> {
        while self.parts == 0 {
            if !self.next_block()? {
                return Ok(false);
            }
        }
        self.parts -= 1;
        self.block.read_part(self.parts, &mut self.part).map_err(not_rows)?;
        if !self.end.is_empty() && self.part.cut(self.end) {
            self.end = &[];
        }
        Ok(true)
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
                self.parts = match self.end.is_empty() {
                    true => self.block.parts(),
                    false => self.block.parts_below(self.end).map_err(not_rows)?,
                };
                self.block.load_ahead();
                return Ok(true);
            }
            self.table = self.tables.next();
            self.last = None;
        }
        Ok(false)
    }

    /// Looks up the places of the next blocks of the table: those before the last one that was
    /// looked up, or at first those that may have a row before the end.
    fn look_up(&mut self, open: &OpenTable) -> Result<()> {
        let ahead = std::mem::replace(&mut self.ahead, PLACES_MAX);
        let mut found = Vec::with_capacity(ahead);
        let until = std::mem::take(&mut self.until);
        let from = if self.last.is_some() { &until[..] } else { self.end };
        let top = open.top()?;
        open.entries_back(&top, from, &mut |entry| {
            if self.last.is_none_or(|last| entry.block.offset() < last) {
                found.push(entry.block);
                self.last = Some(entry.block.offset());
                self.until.clear();
                self.until.extend_from_slice(entry.last_key);
            }
            found.len() < ahead
        })?;
        self.places = found.into_iter();
        Ok(())
    }
}
