//! SORT: sorts its whole input: in memory, with a limit in a heap of the first rows, and beyond the
//! memory limit in runs on disk that are merged (Knuth, TAOCP 3, 5.4).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use bumpalo::Bump;
use bytes::Bytes;
use quire_catalog::key::KeySpec;
use quire_collections::{
    IndexEntry, MergedRuns, RecordId, RunWriter, SortedRecord, SortedRuns, Workspace, order_digits,
    shared_bytes,
};
use quire_document::DocBuf;
use quire_error::{Error, Result};
use quire_mql::sort::SortPattern;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::operators::metadata::add_sort_key;
use crate::operators::union::sort_bytes;
use crate::operators::{BoxedOperator, Filling, Operator, over};
use crate::row::{Extra, Row};

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;
/// Below this number of rows a direct sort is faster than one by prefixes of the keys.
const ROWS_MIN: usize = 64;

/// A row with its sort key as bytes. Rows with equal keys stay in the order of arrival.
struct Keyed {
    key: Vec<u8>,
    order: u64,
    row: Row,
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Keyed {}
impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(self.order.cmp(&other.order))
    }
}

/// Collects rows and returns them sorted.
pub(crate) struct Sorter {
    /// The sort pattern; `None` if each row comes with its sort key.
    pattern: Option<Arc<SortPattern>>,
    /// The name of the stage, for memory errors.
    name: &'static str,
    limit: usize,
    /// True if the incoming rows own their bytes.
    owned_rows: bool,
    /// With a limit: the first rows so far, in a heap with the last of them on top.
    best: BinaryHeap<Keyed>,
    rows: Vec<Keyed>,
    bytes: usize,
    next_order: u64,
    runs: SortedRuns,
    /// The specification of the rows' index keys.
    keys: Option<Arc<KeySpec>>,
    arena: Bump,
    /// The bytes of all rows that were added.
    pub bytes_sorted: u64,
    /// How many times the rows in memory were written to disk.
    pub spills: u64,
}

/// The sorted rows.
pub(crate) enum Sorted {
    /// All rows are in memory.
    Memory {
        /// The remaining rows.
        rows: std::vec::IntoIter<Row>,
        /// The bytes of all rows.
        bytes: usize,
    },
    /// The rows are merged from runs on disk.
    Runs {
        /// The rows of all runs, in order.
        merged: MergedRuns,
        /// The number of rows still to return.
        left: u64,
        /// The specification of the rows' index keys.
        keys: Option<Arc<KeySpec>>,
    },
}

/// Sorts rows by eight bytes of their keys where these differ, which are compared without reading
/// the keys themselves. Each row is moved only once, to its position.
fn order_rows(rows: &mut [Keyed]) {
    if rows.len() < ROWS_MIN || u32::try_from(rows.len()).is_err() {
        return rows.sort_unstable();
    }
    let shared = shared_bytes(rows.iter().map(|row| &row.key[..]));
    let digits = |(at, row): (usize, &Keyed)| (order_digits(&row.key, shared), at as u32);
    let mut order: Vec<(u64, u32)> = rows.iter().enumerate().map(digits).collect();
    order.sort_unstable_by(|a, b| {
        let whole = || rows.get(a.1 as usize).cmp(&rows.get(b.1 as usize));
        a.0.cmp(&b.0).then_with(whole)
    });
    for start in 0..order.len() {
        // Follows one cycle of the permutation: the row at its start moves to its position, and so
        // on.
        let mut place = start;
        while let Some((_, from)) = order.get_mut(place) {
            let from = std::mem::replace(from, place as u32) as usize;
            if from == start || from == place {
                break;
            }
            rows.swap(place, from);
            place = from;
        }
    }
}

impl Sorter {
    /// Returns a sorter that keeps the first `limit` rows, or all of them for 0.
    pub fn new(pattern: Arc<SortPattern>, limit: u64) -> Self {
        let sorter = Sorter::by_given_keys("Sort").with_limit(limit);
        Sorter { pattern: Some(pattern), ..sorter }
    }

    /// Returns the sorter for rows that own their bytes, which it need not copy.
    pub fn of_owned(self, owned_rows: bool) -> Self {
        Sorter { owned_rows, ..self }
    }

    /// Returns the sorter with a limit: it keeps the first `limit` rows, or all of them for 0.
    pub fn with_limit(self, limit: u64) -> Self {
        Sorter { limit: usize::try_from(limit).unwrap_or(usize::MAX), ..self }
    }

    /// Returns a sorter for `push_keyed`, as part of the stage `name`.
    pub fn by_given_keys(name: &'static str) -> Self {
        Sorter {
            pattern: None,
            name,
            limit: 0,
            owned_rows: false,
            best: BinaryHeap::new(),
            rows: Vec::new(),
            bytes: 0,
            next_order: 0,
            runs: SortedRuns::default(),
            keys: None,
            arena: Bump::new(),
            bytes_sorted: 0,
            spills: 0,
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Row, run: &Run<'_>) -> Result<()> {
        let key = match &self.pattern {
            Some(pattern) => sort_bytes(pattern, &row, run, &mut self.arena)?,
            None => Vec::new(),
        };
        self.push_keyed(key, row, run.env)
    }

    /// Adds a row with the sort key `key`.
    pub fn push_keyed(&mut self, key: Vec<u8>, row: Row, env: &Env) -> Result<()> {
        let size = row.size() + key.capacity() + 32;
        if self.keys.is_none()
            && let Some((keys, _)) = row.extra.as_ref().and_then(|extra| extra.key.as_ref())
        {
            self.keys = Some(Arc::clone(keys));
        }
        self.bytes_sorted += row.doc.as_ref().map_or(0, |doc| doc.len()) as u64;
        let mut keyed = Keyed { key, order: self.next_order, row };
        self.next_order += 1;
        if self.limit > 0 && self.best.len() == self.limit {
            if self.best.peek().is_some_and(|worst| *worst <= keyed) {
                return Ok(());
            }
            if let Some(worst) = self.best.pop() {
                self.bytes -= worst.row.size() + worst.key.capacity() + 32;
            }
        }
        // A row that stays would keep the shared memory of its dropped neighbours.
        if !self.owned_rows || self.limit > 0 {
            keyed.row.detach();
        }
        if self.limit > 0 {
            self.best.push(keyed);
        } else {
            self.rows.push(keyed);
        }
        self.bytes += size;
        if self.bytes > env.params.stage_bytes_max {
            self.spill(env)?;
        }
        Ok(())
    }

    fn take_sorted(&mut self) -> Vec<Keyed> {
        self.bytes = 0;
        if self.limit > 0 {
            return std::mem::take(&mut self.best).into_sorted_vec();
        }
        let mut rows = std::mem::take(&mut self.rows);
        order_rows(&mut rows);
        rows
    }

    fn workspace<'e>(&self, env: &'e Env) -> Result<Workspace<'e>> {
        env.workspace().ok_or_else(|| env.memory_error(self.name))
    }

    fn spill(&mut self, env: &Env) -> Result<()> {
        let workspace = self.workspace(env)?;
        let (mut run, mut payload) = (RunWriter::create(workspace)?, Vec::new());
        for keyed in self.take_sorted() {
            payload.clear();
            write_row(&keyed.row, &mut payload);
            run.write(&keyed.key, &payload)?;
        }
        self.spills += 1;
        self.runs.add(run, workspace)
    }

    /// Ends the input and returns the sorted rows.
    pub fn finish(mut self, env: &Env) -> Result<Sorted> {
        if self.runs.is_empty() {
            let bytes = self.bytes;
            let rows: Vec<Row> = self.take_sorted().into_iter().map(|keyed| keyed.row).collect();
            return Ok(Sorted::Memory { rows: rows.into_iter(), bytes });
        }
        if !self.rows.is_empty() || !self.best.is_empty() {
            self.spill(env)?;
        }
        let left = if self.limit > 0 { self.limit as u64 } else { u64::MAX };
        let workspace = self.workspace(env)?;
        Ok(Sorted::Runs { merged: self.runs.merge(workspace)?, left, keys: self.keys })
    }
}

impl Sorted {
    /// Returns the bytes of the rows in memory, including those already returned.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Sorted::Memory { rows, bytes } if rows.len() > 0 => *bytes as u64,
            _ => 0,
        }
    }

    /// Returns true if there are no more rows.
    pub fn is_empty(&self) -> bool {
        match self {
            Sorted::Memory { rows, .. } => rows.len() == 0,
            Sorted::Runs { merged, left, .. } => *left == 0 || merged.is_empty(),
        }
    }

    /// Returns the next row.
    pub fn next(&mut self) -> Result<Option<Row>> {
        match self {
            Sorted::Memory { rows, .. } => Ok(rows.next()),
            Sorted::Runs { left: 0, .. } => Ok(None),
            Sorted::Runs { merged, left, keys } => {
                *left -= 1;
                merged.next_record()?.map(|record| read_row(record, keys.as_ref())).transpose()
            }
        }
    }
}

/// Writes a row: its record id, the lengths of the three parts that most rows lack, these parts,
/// and the document.
fn write_row(row: &Row, out: &mut Vec<u8>) {
    let entry = row.extra.as_ref().and_then(|extra| extra.key.as_ref()).map(|(_, entry)| entry);
    let metadata = row.extra.as_ref().and_then(|extra| extra.to_spill());
    let parts: [&[u8]; 3] = [
        entry.map_or(&[], |entry| &entry.values),
        entry.map_or(&[], |entry| &entry.type_bits),
        metadata.as_ref().map_or(&[], DocBuf::as_bytes),
    ];
    out.extend_from_slice(&row.record.0.to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(&(part.len() as u64).to_le_bytes()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.extend_from_slice(row.doc.as_deref().unwrap_or(&[]));
}

/// Reads a row that `write_row` wrote.
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

/// The operator that sorts its input.
pub(crate) struct Sort {
    input: BoxedOperator,
    pattern: Arc<SortPattern>,
    limit: u64,
    /// True if a stage above reads `$meta: "sortKey"`.
    keep_sort_key: bool,
    sorter: Option<Sorter>,
    sorted: Option<Sorted>,
    arena: Bump,
    stats: NodeStats,
}

impl Sort {
    pub fn new(
        input: BoxedOperator,
        pattern: Arc<SortPattern>,
        limit: u64,
        keep_sort_key: bool,
        owned_rows: bool,
    ) -> Self {
        let sorter = Some(Sorter::new(pattern.clone(), limit).of_owned(owned_rows));
        Sort {
            input,
            pattern,
            limit,
            keep_sort_key,
            sorter,
            sorted: None,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut sorter = match self.sorter.take() {
            Some(sorter) => sorter,
            None => Sorter::new(self.pattern.clone(), self.limit),
        };
        let mut rows = Vec::new();
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            for row in rows.drain(..) {
                sorter.push(row, run)?;
            }
            if !more {
                break;
            }
        }
        self.stats.bytes_sorted = sorter.bytes_sorted;
        let spills = sorter.spills;
        self.sorted = Some(sorter.finish(run.env)?);
        self.stats.spills = spills;
        Ok(())
    }
}

impl Operator for Sort {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.sorted.is_none() {
            run.for_all(|run| self.collect(run))?;
        }
        // Rows from runs on disk can have any size.
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            let row = match &mut self.sorted {
                Some(sorted) => sorted.next()?,
                None => None,
            };
            let Some(mut row) = row else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            if self.keep_sort_key {
                add_sort_key(&mut row, &self.pattern, &mut self.arena, run.env)?;
            }
            self.stats.returned += 1;
            filling.push(row);
        }
        self.stats.is_eof = self.sorted.as_ref().is_some_and(Sorted::is_empty);
        Ok(!self.stats.is_eof)
    }

    fn stats(&self) -> NodeStats {
        let held_bytes = self.sorted.as_ref().map_or(0, Sorted::held_bytes);
        NodeStats { held_bytes, ..over(&self.input, &self.stats) }
    }
}
