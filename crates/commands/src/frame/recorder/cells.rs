//! The cells in which a connection counts its statements: a few, so that a look is short, and of
//! their own, so that no other connection waits for them.

use super::known::Known;
use super::lock;
use crate::frame::account::Ended;
use crate::frame::fingerprint::Fingerprint;
use crate::frame::tally::Tally;
use crate::frame::usage::Class;
use quire_advisor::workload::{Figure, Measures};
use quire_executor::Examined;
use std::sync::{Arc, Mutex, MutexGuard};

/// The number of fingerprints of a connection that are counted at a time. When another comes, the
/// cells are added to the book and begin again.
const CELLS_MAX: usize = 16;

/// The cells of one connection. Only its own thread counts in them; others add them to the book.
#[derive(Default)]
pub struct ConnectionCells(Mutex<Cells>);

impl ConnectionCells {
    /// Returns the cells, locked. Nobody else holds the lock but for a merge of microseconds.
    pub(super) fn lock(&self) -> MutexGuard<'_, Cells> {
        lock(&self.0)
    }
}

/// The cells, and the one that was used last.
#[derive(Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    last: usize,
}

struct Cell {
    hash: u64,
    known: Arc<Known>,
    measures: Measures,
    /// The plans that were seen, by [`Examined::mark`]. `Measures::plans` has their texts.
    plans: Vec<PlanSlot>,
    /// True if something was counted since the last drain.
    is_used: bool,
}

struct PlanSlot {
    mark: u64,
    summary: String,
    index: String,
    scans: bool,
    count: u64,
}

/// The number of plans that a cell tells apart.
const PLANS_MAX: usize = 4;

impl Cells {
    /// Returns true if a fingerprint has a cell, and makes it the last one.
    #[inline]
    pub fn contains(&mut self, hash: u64) -> bool {
        let is_it = |cell: &Cell| cell.hash == hash;
        if self.cells.get(self.last).is_some_and(is_it) {
            return true;
        }
        match self.cells.iter().position(is_it) {
            Some(at) => {
                self.last = at;
                true
            }
            None => false,
        }
    }

    pub fn is_full(&self) -> bool {
        self.cells.len() >= CELLS_MAX
    }

    /// Returns true if nothing was counted since the last drain.
    pub fn is_clean(&self) -> bool {
        self.cells.iter().all(|cell| !cell.is_used)
    }

    /// Adds a cell and makes it the last one. Of full cells the first that was not used since the last
    /// drain leaves, else all: the caller has drained them.
    pub fn add(&mut self, hash: u64, known: Known) {
        if self.is_full() {
            self.cells.clear();
        }
        self.last = self.cells.len();
        self.cells.push(Cell {
            hash,
            known: Arc::new(known),
            measures: Measures::default(),
            plans: Vec::new(),
            is_used: false,
        });
    }

    /// Counts a statement in the last cell.
    #[inline]
    pub fn note(&mut self, print: &Fingerprint, ended: &Ended<'_>, now_ms: i64) {
        let Some(cell) = self.cells.get_mut(self.last) else { return };
        cell.is_used = true;
        match ended.op == Class::GetMore {
            true => cell.note_batch(ended, now_ms),
            false => cell.note(print, ended, now_ms),
        }
    }

    /// Gives what was counted to `take`, and begins again. A cell that counted nothing leaves.
    pub fn drain(&mut self, mut take: impl FnMut(&Arc<Known>, &Measures)) {
        self.last = 0;
        self.cells.retain_mut(|cell| {
            if !std::mem::take(&mut cell.is_used) {
                return false;
            }
            let mut measures = std::mem::take(&mut cell.measures);
            for slot in &mut cell.plans {
                match std::mem::take(&mut slot.count) {
                    0 => {}
                    count => measures.note_plan(&slot.summary, &slot.index, count),
                }
            }
            take(&cell.known, &measures);
            true
        });
    }
}

impl Cell {
    fn note(&mut self, print: &Fingerprint, ended: &Ended<'_>, now_ms: i64) {
        let measures = &mut self.measures;
        measures.count += 1;
        measures.first_ms = measures.first_ms.min(now_ms);
        measures.last_ms = measures.last_ms.max(now_ms);
        measures.latency.note(ended.micros);
        measures.micros.note(ended.micros);
        measures.last_micros = ended.micros;
        measures.total_micros.note(ended.micros);
        if ended.error.is_some() {
            measures.errors += 1;
            return;
        }
        measures.errors += u64::from(ended.tally.has_write_errors);
        for (histogram, number) in [
            (&mut measures.skip, print.skip),
            (&mut measures.limit, print.limit),
            (&mut measures.list, print.list),
        ] {
            if number > 0 {
                histogram.note(number);
            }
        }
        if let Some(returned) = ended.tally.returned {
            measures.returned.note(returned);
        }
        note_writes(measures, print, ended.tally);
        if let Some(examined) = &ended.tally.examined {
            let counters = &examined.counters;
            measures.keys_examined.note(counters.keys_examined);
            measures.docs_examined.note(counters.docs_examined);
            measures.bytes_read.note(counters.bytes_read);
            measures.sorts += u64::from(counters.sorted);
            measures.spills += u64::from(counters.used_disk);
            measures.cached_plans += u64::from(examined.is_from_cache());
            self.note_plan(examined);
        }
    }

    /// Adds a later batch of a cursor to the statement that opened it. The least of each number
    /// stays that of the first batch.
    fn note_batch(&mut self, ended: &Ended<'_>, now_ms: i64) {
        let measures = &mut self.measures;
        measures.first_ms = measures.first_ms.min(now_ms);
        measures.last_ms = measures.last_ms.max(now_ms);
        measures.get_mores += 1;
        measures.total_micros.sum += ended.micros;
        measures.errors += u64::from(ended.error.is_some());
        let Some(examined) = &ended.tally.examined else { return };
        let (before, added) = (&ended.tally.earlier, &examined.counters);
        grow(&mut measures.keys_examined, before.keys_examined, added.keys_examined);
        grow(&mut measures.docs_examined, before.docs_examined, added.docs_examined);
        grow(&mut measures.bytes_read, before.bytes_read, added.bytes_read);
        grow(&mut measures.returned, before.returned, ended.tally.returned.unwrap_or(0));
        measures.spills += u64::from(added.used_disk && !before.used_disk);
    }

    fn note_plan(&mut self, examined: &Examined) {
        let Some(mark) = examined.mark() else { return };
        let slot = match self.plans.iter().position(|slot| slot.mark == mark) {
            Some(at) => self.plans.get_mut(at),
            None if self.plans.len() < PLANS_MAX => {
                self.plans.push(PlanSlot {
                    mark,
                    summary: examined.summary(),
                    index: examined.index_name().to_owned(),
                    scans: examined.scans_collection(),
                    count: 0,
                });
                self.plans.last_mut()
            }
            None => {
                self.measures.collection_scans += u64::from(examined.scans_collection());
                None
            }
        };
        if let Some(slot) = slot {
            slot.count += 1;
            self.measures.collection_scans += u64::from(slot.scans);
        }
    }
}

/// Adds the documents that a statement wrote.
fn note_writes(measures: &mut Measures, print: &Fingerprint, tally: &Tally) {
    measures.inserted += tally.inserted.unwrap_or(0);
    if let Some(matched) = tally.matched {
        measures.matched.note(matched);
        measures.modified.note(tally.modified.unwrap_or(0));
        measures.upserted += tally.upserted.unwrap_or(0);
        measures.replacements += u64::from(print.replaces);
    }
    if let Some(deleted) = tally.deleted {
        measures.deleted.note(deleted);
    }
}

/// Replaces a number `before` that was counted by `before + added`.
fn grow(figure: &mut Figure, before: u64, added: u64) {
    let after = before + added;
    figure.sum = figure.sum.wrapping_add(added);
    figure.max = figure.max.max(after);
    let square = |number: u64| u128::from(number) * u128::from(number);
    figure.squares = figure.squares.wrapping_add(square(after) - square(before));
}
