//! What sorts rows: everything, in order; in memory, with a limit only the best, beyond memory in runs
//! on disk that are merged (Knuth, TAOCP 3, 5.4).

use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_catalog::key::KeySpec;
use quire_collections::{
    IndexEntry, MergedRuns, RecordId, RunWriter, SortedRecord, SortedRuns, Workspace,
};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, Result};
use quire_mql::sort::SortPattern;

use super::batch::KeyedBatch;
use super::order::{Ordered, in_order};
use crate::env::{Env, Scope};
use crate::holding::{Holding, refused};
use crate::operators::union::sort_bytes;
use crate::row::{Extra, Row};

/// Rows beyond a limit, at least, that are kept until the best are picked out.
const EXCESS_ROWS: usize = 256;
/// Bytes of rows beyond those up to the limit, at least, that are kept until the best are picked out.
const EXCESS_BYTES: usize = 1 << 20;
/// Rows written to disk between two looks at the interrupt.
const INTERRUPT_ROWS: usize = 1024;

/// Collects rows and gives them back in order.
pub(crate) struct Sorter {
    /// What rows are sorted by; `None` if each comes with the bytes of its key.
    pattern: Option<Arc<SortPattern>>,
    /// The stage that memory errors name.
    name: &'static str,
    /// The number of rows to keep; 0 for all.
    limit: usize,
    /// Rows in the order in which they came: those of equal keys stay in it.
    batches: Vec<KeyedBatch>,
    rows: usize,
    bytes: usize,
    /// With a limit: the key of the last row that is kept, once there are as many. No row with this key or
    /// a greater one is needed.
    worst: Option<Vec<u8>>,
    /// Bytes after the best were picked out.
    kept_bytes: usize,
    holding: Holding,
    runs: SortedRuns,
    /// What the keys of rows hold.
    keys: Option<Arc<KeySpec>>,
    arena: Bump,
    key: Vec<u8>,
    /// Bytes of all rows that were added.
    pub bytes_sorted: u64,
    /// How often the rows in memory were written to disk.
    pub spills: u64,
}

/// What a sorter gives back.
pub(crate) enum Sorted {
    /// All rows are in memory.
    Memory(SortedRows),
    /// From runs on disk.
    Runs {
        /// The rows of all runs, in order.
        merged: MergedRuns,
        /// Rows still to give.
        left: u64,
        /// What the keys of rows held.
        keys: Option<Arc<KeySpec>>,
    },
}

/// Sorted rows in memory.
pub(crate) struct SortedRows {
    batches: Vec<KeyedBatch>,
    order: Vec<Ordered>,
    /// The number of rows that were given.
    given: usize,
    /// What all rows take.
    bytes: usize,
    /// The memory of the rows.
    _holding: Holding,
}

impl Sorter {
    /// Returns a sorter that keeps the first `limit` rows, or all of them for 0.
    pub fn new(pattern: Arc<SortPattern>, limit: u64) -> Self {
        let sorter = Sorter::by_given_keys("Sort").with_limit(limit);
        Sorter { pattern: Some(pattern), ..sorter }
    }

    /// Returns the sorter with a limit: it keeps the first `limit` rows, or all of them for 0.
    pub fn with_limit(self, limit: u64) -> Self {
        Sorter { limit: usize::try_from(limit).unwrap_or(usize::MAX), ..self }
    }

    /// A sorter for `push_keyed`, part of the stage `name`. No key is the beginning of another one.
    pub fn by_given_keys(name: &'static str) -> Self {
        Sorter {
            pattern: None,
            name,
            limit: 0,
            batches: Vec::new(),
            rows: 0,
            bytes: 0,
            worst: None,
            kept_bytes: 0,
            holding: Holding::default(),
            runs: SortedRuns::default(),
            keys: None,
            arena: Bump::new(),
            key: Vec::new(),
            bytes_sorted: 0,
            spills: 0,
        }
    }

    /// What it sorts by; `None` if rows come with their keys.
    pub fn pattern(&self) -> Option<&Arc<SortPattern>> {
        self.pattern.as_ref()
    }

    /// The number of rows that it keeps; 0 for all.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The key at which rows are beyond the limit, once it is known.
    pub fn worst(&self) -> Option<&[u8]> {
        self.worst.as_deref()
    }

    /// Takes a row.
    pub fn push(&mut self, row: Row, scope: Scope<'_>) -> Result<()> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        if let Some(pattern) = &self.pattern {
            sort_bytes(pattern, &row, scope, &mut self.arena, &mut key)?;
        }
        self.push_keyed(&key, row, scope.env)?;
        self.key = key;
        Ok(())
    }

    /// Takes the rows of a batch that has ended, and of which `bytes` is the size of all documents.
    pub fn push_batch(&mut self, batch: KeyedBatch, bytes: u64, env: &Env) -> Result<()> {
        self.bytes_sorted += bytes;
        if self.worst.is_some() {
            // Others may have come since the batch was made, and few of its rows be left.
            for row in 0..batch.len() {
                if !self.is_beyond(batch.key(row)) {
                    self.append(batch.key(row), batch.record(row), batch.doc(row), None);
                }
            }
        } else if !batch.is_empty() {
            if let Some(last) = self.batches.last_mut() {
                last.end();
            }
            self.bytes += batch.size();
            self.rows += batch.len();
            self.batches.push(batch);
        }
        self.check_memory(env)
    }

    /// Takes a row that sorts by the bytes `key`.
    pub fn push_keyed(&mut self, key: &[u8], row: Row, env: &Env) -> Result<()> {
        if self.keys.is_none()
            && let Some((keys, _)) = row.extra.as_ref().and_then(|extra| extra.key.as_ref())
        {
            self.keys = Some(Arc::clone(keys));
        }
        let doc = row.doc.as_deref().unwrap_or_default();
        self.bytes_sorted += doc.len() as u64;
        if self.is_beyond(key) {
            return Ok(());
        }
        self.append(key, row.record, doc, row.extra);
        self.check_memory(env)
    }

    /// True if a row with this key is none of those to keep.
    fn is_beyond(&self, key: &[u8]) -> bool {
        self.worst.as_deref().is_some_and(|worst| worst <= key)
    }

    fn append(&mut self, key: &[u8], record: RecordId, doc: &[u8], extra: Option<Box<Extra>>) {
        match self.batches.last_mut() {
            Some(batch) if !batch.is_full() => {}
            Some(full) => {
                let next = full.next_batch();
                self.batches.push(next);
            }
            None => self.batches.push(KeyedBatch::default()),
        }
        let Some(batch) = self.batches.last_mut() else { return };
        let before = batch.size();
        batch.push(key, record, doc, extra);
        self.bytes += batch.size() - before;
        self.rows += 1;
    }

    /// Picks out the best rows where there are many more than the limit; goes on on disk where memory
    /// ends.
    fn check_memory(&mut self, env: &Env) -> Result<()> {
        let (rows, bytes) = (self.limit.max(EXCESS_ROWS), self.kept_bytes.max(EXCESS_BYTES));
        let many = self.rows > self.limit.saturating_add(rows);
        let beyond = self.bytes > env.params.stage_bytes_max;
        if self.limit > 0
            && self.rows > self.limit
            && (many || beyond || self.bytes > self.kept_bytes + bytes)
        {
            self.pick_best(env)?;
        }
        let fits = self.bytes <= env.params.stage_bytes_max;
        if fits && self.holding.cover_or_spill(self.bytes)? {
            return Ok(());
        }
        if fits && !env.may_spill {
            return Err(refused());
        }
        self.spill(env)?;
        self.holding.cover(self.bytes)
    }

    /// Keeps the rows up to the limit, in order.
    fn pick_best(&mut self, env: &Env) -> Result<()> {
        let (mut batches, order) = self.take_sorted(env)?;
        let best = order.get(..self.limit).unwrap_or(&order);
        for row in best {
            let (batch, row) = row.place();
            let Some(batch) = batches.get_mut(batch) else { continue };
            let extra = batch.take_extra(row);
            self.append(batch.key(row), batch.record(row), batch.doc(row), extra);
        }
        self.kept_bytes = self.bytes;
        let worst = best.last().filter(|_| best.len() == self.limit).map(|row| row.place());
        let worst = worst.and_then(|(batch, row)| Some(batches.get(batch)?.key(row)));
        self.worst = worst.map(<[u8]>::to_vec).or(self.worst.take());
        Ok(())
    }

    /// Takes all rows that are in memory, with their order.
    fn take_sorted(&mut self, env: &Env) -> Result<(Vec<KeyedBatch>, Vec<Ordered>)> {
        let mut batches = std::mem::take(&mut self.batches);
        if let Some(last) = batches.last_mut() {
            last.end();
        }
        (self.rows, self.bytes, self.kept_bytes) = (0, 0, 0);
        let order = in_order(&batches, env)?;
        Ok((batches, order))
    }

    fn workspace<'e>(&self, env: &'e Env) -> Result<Workspace<'e>> {
        env.workspace().ok_or_else(|| env.memory_error(self.name))
    }

    fn spill(&mut self, env: &Env) -> Result<()> {
        let workspace = self.workspace(env)?;
        let (mut run, mut payload) = (RunWriter::create(workspace)?, Vec::new());
        let (mut batches, order) = self.take_sorted(env)?;
        for (number, row) in order.into_iter().enumerate() {
            if number.is_multiple_of(INTERRUPT_ROWS) {
                env.check_interrupt()?;
            }
            let (batch, row) = row.place();
            let Some(batch) = batches.get_mut(batch) else { continue };
            payload.clear();
            let extra = batch.take_extra(row);
            write_row(batch.record(row), batch.doc(row), extra.as_deref(), &mut payload);
            run.write(batch.key(row), &payload)?;
        }
        self.spills += 1;
        self.runs.add(run, workspace)
    }

    /// Ends collecting and returns the rows in order.
    pub fn finish(mut self, env: &Env) -> Result<Sorted> {
        if self.limit > 0 && self.rows > self.limit {
            self.pick_best(env)?;
        }
        if self.runs.is_empty() {
            let bytes = self.bytes;
            let (mut batches, order) = self.take_sorted(env)?;
            batches.iter_mut().for_each(KeyedBatch::drop_keys);
            let _holding = self.holding;
            return Ok(Sorted::Memory(SortedRows { batches, order, given: 0, bytes, _holding }));
        }
        if self.rows > 0 {
            self.spill(env)?;
        }
        let left = if self.limit > 0 { self.limit as u64 } else { u64::MAX };
        let workspace = self.workspace(env)?;
        Ok(Sorted::Runs { merged: self.runs.merge(workspace)?, left, keys: self.keys })
    }
}

impl Sorted {
    /// True if there are no more.
    pub fn is_empty(&self) -> bool {
        match self {
            Sorted::Memory(rows) => rows.len() == 0,
            Sorted::Runs { merged, left, .. } => *left == 0 || merged.is_empty(),
        }
    }

    /// The next row.
    pub fn next(&mut self) -> Result<Option<Row>> {
        match self {
            Sorted::Memory(rows) => Ok(rows.next()),
            Sorted::Runs { left: 0, .. } => Ok(None),
            Sorted::Runs { merged, left, keys } => {
                *left -= 1;
                merged.next_record()?.map(|record| read_row(record, keys.as_ref())).transpose()
            }
        }
    }
}

impl SortedRows {
    fn next(&mut self) -> Option<Row> {
        let (batch, row) = self.place(0)?;
        self.given += 1;
        self.batches.get_mut(batch).map(|batch| batch.take(row))
    }

    /// The number of rows that were not given.
    pub fn len(&self) -> usize {
        self.order.len() - self.given
    }

    /// Bytes that all rows take, those included that were given.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of rows, those included that were given.
    pub fn all(&self) -> usize {
        self.order.len()
    }

    /// True if nothing is known about any row but its document.
    pub fn are_documents(&self) -> bool {
        self.batches.iter().all(KeyedBatch::has_documents)
    }

    fn place(&self, row: usize) -> Option<(usize, usize)> {
        self.order.get(self.given + row).map(|row| row.place())
    }

    /// The document of a row, counted from the first that was not given.
    pub fn doc(&self, row: usize) -> Doc<'_> {
        let bytes =
            self.place(row).and_then(|(batch, row)| Some(self.batches.get(batch)?.doc(row)));
        Doc::from_valid_bytes(bytes.unwrap_or_default())
    }

    /// The record of a row, counted in the same way.
    pub fn record(&self, row: usize) -> RecordId {
        let place = self.place(row);
        place.map_or(RecordId(0), |(batch, row)| {
            self.batches.get(batch).map_or(RecordId(0), |batch| batch.record(row))
        })
    }

    /// Counts rows as given.
    pub fn advance(&mut self, rows: usize) {
        self.given = (self.given + rows).min(self.order.len());
    }

    /// Takes back the last row that was given; nothing but its document was known.
    pub fn step_back(&mut self) {
        self.given = self.given.saturating_sub(1);
    }
}

/// Writes a row: its record, the lengths of the three parts that many rows lack, these parts, and
/// the document.
fn write_row(record: RecordId, doc: &[u8], extra: Option<&Extra>, out: &mut Vec<u8>) {
    let entry = extra.and_then(|extra| extra.key.as_ref()).map(|(_, entry)| entry);
    let metadata = extra.and_then(Extra::to_spill);
    let parts: [&[u8]; 3] = [
        entry.map_or(&[], |entry| &entry.values),
        entry.map_or(&[], |entry| &entry.type_bits),
        metadata.as_ref().map_or(&[], DocBuf::as_bytes),
    ];
    out.extend_from_slice(&record.0.to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(&(part.len() as u64).to_le_bytes()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(doc);
}

/// Reads what `write_row` wrote.
fn read_row(record: SortedRecord, keys: Option<&Arc<KeySpec>>) -> Result<Row> {
    let mut rest = Bytes::from(record.payload);
    let mut take = |len: u64| match usize::try_from(len) {
        Ok(len) if len <= rest.len() => Ok(rest.split_to(len)),
        _ => Err(Error::internal("a spilled row is cut short")),
    };
    let mut number = || {
        let bytes = take(size_of::<u64>() as u64)?;
        Ok::<u64, Error>(bytes.as_ref().try_into().map_or(0, u64::from_le_bytes))
    };
    let (record, lengths) = (RecordId(number()?), [number()?, number()?, number()?]);
    let [values, type_bits, metadata] = lengths.map(&mut take);
    let (values, type_bits, mut extra) = (values?, type_bits?, Extra::from_spill(&metadata?));
    if let Some(keys) = keys.filter(|_| !values.is_empty()) {
        let entry = IndexEntry { record, values, type_bits };
        extra.get_or_insert_default().key = Some((Arc::clone(keys), entry));
    }
    let doc = (!rest.is_empty()).then_some(rest);
    Ok(Row { record, doc, extra })
}
