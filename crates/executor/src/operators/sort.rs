//! SORT: everything, in order; in memory, with a limit only the best, beyond memory in runs on
//! disk that are merged (Knuth, TAOCP 3, 5.4).

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

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;
/// Rows below which sorting them as they are takes less than preparing anything.
const ROWS_MIN: usize = 64;

/// A row with the bytes by which it sorts; equal ones stay in their order of arrival.
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

/// Collects rows and gives them back in order.
pub(crate) struct Sorter {
    /// What rows are sorted by; `None` if each comes with the bytes of its key.
    pattern: Option<Arc<SortPattern>>,
    /// The stage that memory errors name.
    name: &'static str,
    limit: usize,
    /// Rows that come in have bytes of their own.
    owned_rows: bool,
    /// With a limit: the first rows in order so far, in a heap whose top is the last of them.
    best: BinaryHeap<Keyed>,
    rows: Vec<Keyed>,
    bytes: usize,
    next_order: u64,
    runs: SortedRuns,
    /// What the keys of rows hold.
    keys: Option<Arc<KeySpec>>,
    arena: Bump,
    /// Bytes of all rows that were added.
    pub bytes_sorted: u64,
    /// How often the rows in memory were written to disk.
    pub spills: u64,
}

/// What a sorter gives back.
pub(crate) enum Sorted {
    /// All rows are in memory.
    Memory {
        /// Those that are left.
        rows: std::vec::IntoIter<Row>,
        /// What all took.
        bytes: usize,
    },
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

/// Sorts rows by eight bytes of their keys where these differ, which are compared without a look at
/// the key itself; rows move only once, into their places.
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
        // Along one cycle: what stood at its start is handed on to the place where it belongs.
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

    /// Returns the sorter for rows that have bytes of their own, which it need not copy.
    pub fn of_owned(self, owned_rows: bool) -> Self {
        Sorter { owned_rows, ..self }
    }

    /// Returns the sorter with a limit: it keeps the first `limit` rows, or all of them for 0.
    pub fn with_limit(self, limit: u64) -> Self {
        Sorter { limit: usize::try_from(limit).unwrap_or(usize::MAX), ..self }
    }

    /// Returns a sorter for `push_keyed`, part of the stage `name`.
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

    /// Takes a row.
    pub fn push(&mut self, row: Row, run: &Run<'_>) -> Result<()> {
        let key = match &self.pattern {
            Some(pattern) => sort_bytes(pattern, &row, run, &mut self.arena)?,
            None => Vec::new(),
        };
        self.push_keyed(key, row, run.env)
    }

    /// Takes a row that sorts by the bytes `key`.
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
        // One of few rows that stay would keep the memory of its neighbours.
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

    /// Ends collecting and returns the rows in order.
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
    /// Bytes of the rows that are in memory, those included that were given.
    pub fn held_bytes(&self) -> u64 {
        match self {
            Sorted::Memory { rows, bytes } if rows.len() > 0 => *bytes as u64,
            _ => 0,
        }
    }

    /// True if there are no more.
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

/// Writes a row: its record, the lengths of the three parts that many rows lack, these parts, and
/// the document.
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

/// The operator that sorts its input.
pub(crate) struct Sort {
    input: BoxedOperator,
    pattern: Arc<SortPattern>,
    limit: u64,
    /// `$meta: "sortKey"` is wanted above.
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
        // Rows from runs on disk may be of any size.
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
