//! Scans an index in key order, page by page. A cursor holds only bytes, so it can continue on any
//! later view.

use bytes::Bytes;
use quire_catalog::Index;
use quire_catalog::key::KeySpec;
use quire_document::Value;
use quire_error::Result;
use quire_storage::{Direction, Page, ScanRequest, Space, prefix_end};

use crate::entry::{LONG_KEY_BYTES, index_range, into_parts, is_shortened};
use crate::failure::from_storage;
use crate::{DecodedKey, RecordId, View, decode_entry};

/// The keys `[start, end)` of one index, in index order for both scan directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRange {
    start: Vec<u8>,
    end: Vec<u8>,
}

/// One entry of an index.
#[derive(Debug, Clone)]
pub struct IndexEntry {
    /// The record of the entry's document.
    pub record: RecordId,
    /// The encoded values: equal bytes are equal keys, and byte order is the index's order.
    pub values: Bytes,
    /// The type bits, which [`decode_entry`] needs in addition.
    pub type_bits: Bytes,
}

/// A scan of a range of an index. It returns entries that exist during the whole scan exactly once.
#[derive(Debug)]
pub struct IndexCursor {
    unique: bool,
    direction: Direction,
    range: IndexRange,
    done: bool,
    page: Page,
}

impl IndexRange {
    /// Returns the range of the whole index.
    pub fn whole(index: &Index) -> Self {
        let (start, end) = index_range(index.id);
        IndexRange { start, end }
    }

    /// Returns the keys between two bounds. A bound has the key values of the first fields in index
    /// order (for a descending field the greater value comes first). An inclusive bound includes
    /// all keys that begin with its values, an exclusive bound excludes all of them; a bound
    /// without values is open. If a bound is longer than a stored key, the range is wider than
    /// requested: a reader of an index with [`Index::has_long_keys`] must check the documents.
    pub fn new(
        index: &Index,
        start: &[Value<'_>],
        start_inclusive: bool,
        end: &[Value<'_>],
        end_inclusive: bool,
    ) -> Self {
        let mut range = Self::whole(index);
        if !start.is_empty() {
            let (key, cut) = encode_bound(index, start);
            range.start = if start_inclusive || cut { key } else { prefix_end(&key) };
        }
        if !end.is_empty() {
            let (key, cut) = encode_bound(index, end);
            range.end = if end_inclusive || cut { prefix_end(&key) } else { key };
        }
        range
    }

    /// Returns the range of all keys that begin with these values.
    pub fn equal(index: &Index, values: &[Value<'_>]) -> Self {
        Self::new(index, values, true, values, true)
    }

    /// Returns the range of the keys whose encoded values (as `quire_document::key` appends them,
    /// one after the other) are at least `start` and before `end`; an empty `end` is the end of the
    /// index. Bounds longer than a stored key widen the range, as in [`IndexRange::new`].
    pub fn encoded(index: &Index, start: &[u8], end: &[u8]) -> Self {
        let mut range = Self::whole(index);
        range.start.extend_from_slice(&start[..start.len().min(LONG_KEY_BYTES)]);
        if !end.is_empty() {
            let mut bound = index.id.to_bytes().to_vec();
            bound.extend_from_slice(&end[..end.len().min(LONG_KEY_BYTES)]);
            range.end = if end.len() > LONG_KEY_BYTES { prefix_end(&bound) } else { bound };
        }
        range
    }

    /// Returns the range of the keys whose encoded values are at least `start` and below `end`; an
    /// empty bound leaves a side open. Bounds are written by `quire_document::key`, one value after
    /// the other, and are shortened as keys are.
    pub fn of_encoded(index: &Index, start: &[u8], end: &[u8]) -> Self {
        let mut range = Self::whole(index);
        let with_id = |bound: &[u8]| {
            let mut key = index.id.to_bytes().to_vec();
            key.extend_from_slice(bound.get(..LONG_KEY_BYTES).unwrap_or(bound));
            key
        };
        if !start.is_empty() {
            range.start = with_id(start);
        }
        if !end.is_empty() {
            let key = with_id(end);
            range.end = if end.len() > LONG_KEY_BYTES { prefix_end(&key) } else { key };
        }
        range
    }

    /// Returns the part of this range after the entry of `record` with these values, in scan
    /// direction `direction`.
    #[must_use]
    pub fn after(
        &self,
        index: &Index,
        values: &[u8],
        record: RecordId,
        direction: Direction,
    ) -> Self {
        let mut key = index.id.to_bytes().to_vec();
        key.extend_from_slice(values);
        if !index.unique {
            key.extend_from_slice(&record.0.to_be_bytes());
        }
        let mut range = self.clone();
        match direction {
            Direction::Forward => {
                key.push(0);
                range.start = key;
            }
            Direction::Reverse => range.end = key,
        }
        range
    }

    /// Returns the part of this range from a stored key on.
    #[must_use]
    pub(crate) fn beginning_at(mut self, key: &[u8]) -> Self {
        if key > &self.start[..] {
            self.start = key.to_vec();
        }
        self
    }

    /// Returns true if no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Returns the first key of the range, as stored.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Returns the end of the range: the first key after it.
    pub fn end(&self) -> &[u8] {
        &self.end
    }
}

/// Returns the request for the next page of a range.
fn request(
    range: &IndexRange,
    direction: Direction,
    rows_max: usize,
    keys_only: bool,
) -> ScanRequest<'_> {
    ScanRequest {
        space: Space::Idx,
        start: &range.start,
        end: &range.end,
        direction,
        keys_only,
        rows_max: rows_max.max(1),
        bytes_max: 1 << 20,
    }
}

fn entry(unique: bool, key: Bytes, value: Bytes) -> Result<IndexEntry> {
    let (values, record, type_bits) = into_parts(unique, key, value)?;
    Ok(IndexEntry { record, values, type_bits })
}

fn encode_bound(index: &Index, values: &[Value<'_>]) -> (Vec<u8>, bool) {
    let mut key = index.id.to_bytes().to_vec();
    let start = key.len();
    for (field, value) in values.iter().enumerate() {
        index.keys.append_bound(field, *value, &mut key);
    }
    let cut = key.len() - start > LONG_KEY_BYTES;
    key.truncate(start + LONG_KEY_BYTES);
    (key, cut)
}

impl IndexCursor {
    /// Returns a cursor over `range` of `index`.
    pub fn new(index: &Index, range: IndexRange, direction: Direction) -> Self {
        let done = range.is_empty();
        IndexCursor { unique: index.unique, direction, range, done, page: Page::default() }
    }

    /// Appends the next entries to `out`, at most `rows_max`. Returns false if there are no more.
    pub fn next_page(
        &mut self,
        view: &View<'_>,
        rows_max: usize,
        out: &mut Vec<IndexEntry>,
    ) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        self.read(view, rows_max, false)?;
        out.reserve(self.page.rows.len());
        for (key, value) in self.page.rows.drain(..) {
            out.push(entry(self.unique, key, value)?);
        }
        Ok(!self.done)
    }

    /// Skips the next entries, at most `rows_max`, and returns their number and the last one.
    pub fn pass_page(
        &mut self,
        view: &View<'_>,
        rows_max: usize,
    ) -> Result<(usize, Option<IndexEntry>)> {
        if self.done {
            return Ok((0, None));
        }
        // The value of a unique index's entry contains the record id, which the last entry needs.
        let request = request(&self.range, self.direction, rows_max, !self.unique);
        let passed = view.snapshot().pass(&request, &mut self.page).map_err(from_storage)?;
        self.move_past_page();
        let last = self.page.rows.pop();
        let last = last.map(|(key, value)| entry(self.unique, key, value)).transpose()?;
        Ok((passed, last))
    }

    /// Reads the next page and moves the range past it.
    fn read(&mut self, view: &View<'_>, rows_max: usize, keys_only: bool) -> Result<()> {
        let request = request(&self.range, self.direction, rows_max, keys_only);
        view.snapshot().scan(&request, &mut self.page).map_err(from_storage)?;
        self.move_past_page();
        Ok(())
    }

    fn move_past_page(&mut self) {
        match (&self.page.resume, self.direction) {
            (None, _) => self.done = true,
            (Some(resume), Direction::Forward) => self.range.start = resume.to_vec(),
            (Some(resume), Direction::Reverse) => self.range.end = resume.to_vec(),
        }
        self.done |= self.range.is_empty();
    }

    /// Continues in another range, in either direction: this is how a scan of many intervals skips
    /// keys.
    pub fn seek(&mut self, range: IndexRange) {
        self.done = range.is_empty();
        self.range = range;
    }

    /// Returns the rest of the range.
    pub fn remaining(&self) -> &IndexRange {
        &self.range
    }

    /// Returns true after the end of the scan.
    pub fn is_done(&self) -> bool {
        self.done
    }
}

impl IndexEntry {
    /// Returns the values as they are in the document; `None` if the key was too long to be stored
    /// whole.
    pub fn decode(&self, keys: &KeySpec) -> Result<Option<DecodedKey>> {
        decode_entry(keys, &self.values, &self.type_bits)
    }

    /// Returns true if the entry has only the prefix of its key.
    pub fn is_shortened(&self) -> bool {
        is_shortened(&self.values)
    }
}
