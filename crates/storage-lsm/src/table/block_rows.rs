//! Reads the rows of a table's block in place, without a copy.
//!
//! lsm-tree 3.1 writes rows in the order of their keys, and the versions of a key from the newest
//! to the oldest. A row is: kind (0 value, 1 and 2 tombstone, 4 a value stored elsewhere), sequence
//! number, key, and unless it is a tombstone the length of the value and the value. One row in
//! `interval` has its whole key (length, bytes). Each other row has the number of bytes that it
//! shares with the key of that row, the length of the rest, and the rest.

use std::ops::Range;

use bytes::Bytes;

use crate::table::block_fields::{END, Fields, NotRows, WholeKeys};

pub(crate) const VALUE: u8 = 0;
pub(crate) const TOMBSTONE: u8 = 1;
const TOMBSTONES: Range<u8> = 1..3;

/// The size of a cache line of the processor, in bytes.
const LINE_BYTES: usize = 64;
/// The cache lines of a row that are loaded ahead. They hold its key and the first fields of the document.
const LINES_AHEAD: usize = 3;

/// An iterator over the rows of a block.
#[derive(Debug, Default)]
pub(crate) struct BlockRows {
    data: Bytes,
    /// The offset of the next row.
    at: usize,
    /// The number of rows before the next whole key.
    until_whole: usize,
    /// The offset of the last whole key.
    base: usize,
    heads: WholeKeys,
}

/// A row without its key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BlockRow {
    pub seqno: u64,
    /// The range of the value in the block; `None` for a tombstone.
    pub value: Option<Range<usize>>,
}

/// The rows of a part of a block. They are taken from the last to the first.
#[derive(Debug, Default)]
pub(crate) struct RestartPart {
    keys: Vec<u8>,
    /// The rows, each with the offset of its key in `keys`.
    rows: Vec<(usize, BlockRow)>,
    key: Vec<u8>,
}

impl RestartPart {
    /// Takes the last row and writes its key into `key`.
    #[inline]
    pub fn pop(&mut self, key: &mut Vec<u8>) -> Option<BlockRow> {
        let (at, row) = self.rows.pop()?;
        key.clear();
        key.extend_from_slice(self.keys.get(at..).unwrap_or_default());
        self.keys.truncate(at);
        Some(row)
    }

    /// Removes the rows whose keys are not below `end`. Returns true if rows are left.
    pub fn cut(&mut self, end: &[u8]) -> bool {
        while let Some((at, _)) = self.rows.last() {
            if self.keys.get(*at..).unwrap_or_default() < end {
                return true;
            }
            self.keys.truncate(*at);
            self.rows.pop();
        }
        false
    }
}

impl BlockRows {
    /// Returns the rows of a block, at the first row.
    pub fn new(data: Bytes) -> Result<Self, NotRows> {
        let heads = WholeKeys::read(&data)?;
        Ok(Self { data, at: 0, until_whole: 0, base: 0, heads })
    }

    /// Loads the beginning of every row into the processor's cache. The loads do not depend on each
    /// other, so the processor waits for many of them at once; a scan without them waits for each
    /// row, because the length of a row is in its beginning. Rows with shortened keys are small
    /// and lie beside each other, where the processor loads ahead by itself.
    pub fn load_ahead(&self) {
        if self.heads.interval != 1 {
            return;
        }
        let mut loaded = 0;
        for number in 0..self.parts() {
            let Ok(head) = self.head(number) else { return };
            for line in 0..LINES_AHEAD {
                loaded ^= self.data.get(head + line * LINE_BYTES).copied().unwrap_or_default();
            }
        }
        std::hint::black_box(loaded);
    }

    /// Returns the bytes of the block. Values are slices of them.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Returns the number of parts. A part begins with a row that has its whole key.
    pub fn parts(&self) -> usize {
        self.heads.count()
    }

    /// Returns the number of parts whose first key is below `key`.
    pub fn parts_below(&self, key: &[u8]) -> Result<usize, NotRows> {
        let (mut low, mut high) = (0, self.parts());
        while low < high {
            let middle = low.midpoint(high);
            if self.whole_key(self.head(middle)?)? < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Reads the rows of a part and moves to the row after them.
    pub fn read_part(&mut self, part: usize, into: &mut RestartPart) -> Result<(), NotRows> {
        self.at = self.head(part)?;
        self.until_whole = 0;
        into.keys.clear();
        into.rows.clear();
        for _ in 0..self.heads.interval {
            let Some(row) = self.next(&mut into.key)? else { break };
            into.rows.push((into.keys.len(), row));
            into.keys.extend_from_slice(&into.key);
        }
        Ok(())
    }

    /// Moves to the first row whose key is not below `key`, and writes its key into `found`.
    pub fn seek(&mut self, key: &[u8], found: &mut Vec<u8>) -> Result<Option<BlockRow>, NotRows> {
        self.at = match self.parts_below(key)?.checked_sub(1) {
            Some(before) => self.head(before)?,
            None => 0,
        };
        self.until_whole = 0;
        while let Some(row) = self.next(found)? {
            if found.as_slice() >= key {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns the number of the row that is `distance` rows before the last one; `None` if the
    /// block has fewer rows or not only whole keys.
    pub fn number_from_end(&self, distance: usize) -> Option<usize> {
        let number = self.parts().checked_sub(distance)?.checked_sub(1)?;
        (self.heads.interval == 1).then_some(number)
    }

    /// Returns the row `number` of a block of whole keys if it is the newest of `key`.
    pub fn newest_at(&self, number: usize, key: &[u8]) -> Result<Option<BlockRow>, NotRows> {
        let mut fields = Fields { data: &self.data, at: self.head(number)? };
        let (kind, seqno, length) = (fields.byte()?, fields.number()?, fields.length()?);
        if fields.take(length)? != key {
            return Ok(None);
        }
        if let Some(before) = number.checked_sub(1)
            && self.whole_key(self.head(before)?)? == key
        {
            return Ok(None);
        }
        value_of(&mut fields, kind).map(|value| Some(BlockRow { seqno, value }))
    }

    /// Returns the next row and writes its key into `key`.
    #[inline]
    pub fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<BlockRow>, NotRows> {
        let mut fields = Fields { data: &self.data, at: self.at };
        let kind = fields.byte()?;
        if kind == END {
            return Ok(None);
        }
        let seqno = fields.number()?;
        key.clear();
        if self.until_whole == 0 {
            self.until_whole = self.heads.interval;
            let length = fields.length()?;
            self.base = fields.at;
            key.extend_from_slice(fields.take(length)?);
        } else {
            let (shared, rest) = (fields.length()?, fields.length()?);
            let shared = self.data.get(self.base..self.base + shared).ok_or(NotRows)?;
            key.extend_from_slice(shared);
            key.extend_from_slice(fields.take(rest)?);
        }
        self.until_whole -= 1;
        let value = value_of(&mut fields, kind)?;
        self.at = fields.at;
        Ok(Some(BlockRow { seqno, value }))
    }

    /// Returns the offset of the row with the `number`th whole key.
    fn head(&self, number: usize) -> Result<usize, NotRows> {
        self.heads.at(&self.data, number)
    }

    /// Returns the key at the offset of a row with a whole key.
    fn whole_key(&self, at: usize) -> Result<&[u8], NotRows> {
        let mut fields = Fields { data: &self.data, at };
        fields.byte()?;
        fields.number()?;
        let length = fields.length()?;
        fields.take(length)
    }
}

/// Reads the end of a row, after its key.
#[inline]
fn value_of(fields: &mut Fields<'_>, kind: u8) -> Result<Option<Range<usize>>, NotRows> {
    match kind {
        VALUE => {
            let length = fields.length()?;
            let from = fields.at;
            fields.take(length)?;
            Ok(Some(from..fields.at))
        }
        kind if TOMBSTONES.contains(&kind) => Ok(None),
        _ => Err(NotRows),
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::table::DataBlock;
    use lsm_tree::{InternalValue, ValueType};
    use quire_storage::rng::Rng;

    use super::*;

    /// Rows in the order of a table: keys with long common prefixes, some with several versions.
    fn rows(rng: &mut Rng) -> Vec<InternalValue> {
        let mut rows = Vec::new();
        for number in 0..1 + rng.below(200) {
            let key = format!("{:03}", number * 3);
            let newest = 1 + rng.below(1 << 40);
            for version in 0..1 + rng.below(3).saturating_sub(1) {
                let seqno = newest.saturating_sub(version);
                let value = vec![7; rng.below(300) as usize];
                let kind = match rng.below(5) {
                    0 => ValueType::Tombstone,
                    1 => ValueType::WeakTombstone,
                    _ => ValueType::Value,
                };
                let value = if kind == ValueType::Value { value } else { Vec::new() };
                rows.push(InternalValue::from_components(key.as_bytes(), value, seqno, kind));
            }
        }
        rows
    }

    fn is_row(block: &BlockRows, key: &[u8], row: &BlockRow, expected: &InternalValue) {
        assert_eq!(key, &expected.key.user_key[..]);
        assert_eq!(row.seqno, expected.key.seqno);
        let value = row.value.clone().map(|range| &block.data()[range]);
        assert_eq!(value, (!expected.is_tombstone()).then_some(&expected.value[..]));
    }

    #[test]
    fn blocks_of_lsm_tree_are_read_back() {
        let mut rng = Rng::new(21);
        for interval in [1, 2, 3, 16, 255] {
            for _ in 0..20 {
                let rows = rows(&mut rng);
                let bytes = DataBlock::encode_into_vec(&rows, interval, 0.0).unwrap();
                let mut block = BlockRows::new(Bytes::from(bytes)).unwrap();
                let mut key = Vec::new();
                for expected in &rows {
                    let row = block.next(&mut key).unwrap().unwrap();
                    is_row(&block, &key, &row, expected);
                }
                assert_eq!(block.next(&mut key), Ok(None));
                let (mut part, mut before) = (RestartPart::default(), rows.iter().rev());
                for number in (0..block.parts()).rev() {
                    block.read_part(number, &mut part).unwrap();
                    while let Some(row) = part.pop(&mut key) {
                        is_row(&block, &key, &row, before.next().unwrap());
                    }
                }
                assert!(before.next().is_none());
                for number in 0..=rows.len() * 3 + 3 {
                    let wanted = format!("{number:03}");
                    let at = rows.partition_point(|row| &row.key.user_key[..] < wanted.as_bytes());
                    let mut found = block.seek(wanted.as_bytes(), &mut key).unwrap();
                    for expected in rows.iter().skip(at).take(20) {
                        is_row(&block, &key, &found.unwrap(), expected);
                        found = block.next(&mut key).unwrap();
                    }
                    assert!(at + 20 <= rows.len() || found.is_none());
                }
            }
        }
    }

    #[test]
    fn other_bytes_are_no_rows() {
        let mut rng = Rng::new(5);
        assert_eq!(BlockRows::new(Bytes::from_static(b"short")).err(), Some(NotRows));
        for _ in 0..2000 {
            let length = rng.below(200) as usize;
            let bytes: Vec<u8> = (0..length).map(|_| rng.below(6) as u8 * 51).collect();
            let Ok(mut block) = BlockRows::new(Bytes::from(bytes)) else { continue };
            let mut key = Vec::new();
            let _ = block.seek(b"key", &mut key);
            while let Ok(Some(_)) = block.next(&mut key) {}
        }
    }
}
