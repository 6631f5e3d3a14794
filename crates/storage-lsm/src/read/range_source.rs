//! One source of a range: a run of tables or a memtable, at one of its rows. Scans in both
//! directions merge such sources (`range`, `range_back`).

use std::ops::Range;

use bytes::Bytes;
use lsm_tree::SeqNo;

use crate::memory::memtable::MemtableRows;
use crate::table::opened::Result;

/// The rows of the tables of one run, in the order of a scan.
pub(crate) trait RunCursor {
    /// Moves to the next row and writes its key into `key`. Returns its sequence number; `None` at
    /// the end.
    fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<SeqNo>>;

    /// Returns the block of the current row and where in it its value is; `None` for a tombstone.
    fn value(&self) -> Option<(&Bytes, Range<usize>)>;
}

/// A source at its current row.
pub(crate) struct Source<'n, R> {
    pub rows: Rows<'n, R>,
    pub key: Vec<u8>,
    pub seqno: SeqNo,
}

/// The rows that follow the current one.
pub(crate) enum Rows<'n, R> {
    Run(R),
    /// Also the value of the current row; `None` for a deleted key.
    Memtable(MemtableRows<'n>, Option<Bytes>),
}

impl<'n, R: RunCursor> Source<'n, R> {
    /// Returns a source before its first row.
    pub fn new(rows: Rows<'n, R>) -> Self {
        Self { rows, key: Vec::new(), seqno: 0 }
    }

    /// Returns a source at its first row; `None` if it has none.
    pub fn at_first(rows: Rows<'n, R>) -> Result<Option<Self>> {
        let mut source = Self::new(rows);
        Ok(source.advance()?.then_some(source))
    }

    /// Moves to the next row. Returns false at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        match &mut self.rows {
            Rows::Run(run) => {
                let Some(seqno) = run.next(&mut self.key)? else { return Ok(false) };
                self.seqno = seqno;
            }
            Rows::Memtable(rows, value) => {
                let Some(row) = rows.next() else { return Ok(false) };
                self.key.clear();
                self.key.extend_from_slice(&row.key);
                self.seqno = row.seqno;
                *value = row.value;
            }
        }
        Ok(true)
    }

    /// Returns the current value, and the bytes that it is a part of; `None` for a tombstone.
    #[inline]
    pub fn value(&self) -> Option<(&[u8], &Bytes)> {
        match &self.rows {
            Rows::Run(run) => {
                let (block, range) = run.value()?;
                block.get(range).map(|value| (value, block))
            }
            Rows::Memtable(_, value) => value.as_ref().map(|value| (&value[..], value)),
        }
    }

    /// Takes the current value without a copy; `None` for a tombstone.
    #[inline]
    pub fn take(&mut self) -> Option<Bytes> {
        match &mut self.rows {
            Rows::Run(run) => run.value().map(|(block, range)| block.slice(range)),
            Rows::Memtable(_, value) => value.take(),
        }
    }
}
