//! The end of the change log's window: old records go, with the documents that only they need.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quire_catalog::CollectionId;
use quire_document::Doc;
use quire_error::Result;
use quire_storage::committer::{LOG_END, log_key, split_log_key};
use quire_storage::{
    Bytes, ClusterTime, CommitOptions, Interrupt, Maintenance, Mode, Page, ScanRequest, Snapshot,
    Space, Txn, Version, begin,
};

use super::LogBeginning;
use super::beginning::{drop_collection, dropped_collections, range_of};
use crate::failure::from_storage;
use crate::layout::damaged;
use crate::log_record::{LogContent, LoggedChange, LoggedName, Place, decode, saved_key};
use crate::{Store, from_interruption};

/// How much of the past the log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogWindow {
    /// The most bytes, with those of the dropped collections that the log keeps. Changes younger
    /// than `age_min_ms` stay beyond it.
    pub bytes_max: u64,
    /// Changes younger than this stay, in milliseconds.
    pub age_min_ms: u64,
    /// Changes older than this go, in milliseconds.
    pub age_max_ms: u64,
}

/// What was removed from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// The number of records.
    pub records: u64,
    /// The bytes of these records, and of the dropped collections that went with them.
    pub bytes: u64,
}

/// The records of one step: a bound on the work and on the size of its commit.
const STEP_RECORDS: usize = 10_000;
const STEP_BYTES: usize = 4 << 20;
/// The prefix of the documents that the log saves.
const SAVED: [u8; 1] = [0xff];
/// The steps of one call.
const STEPS_MAX: usize = 64;
/// The part of the window by which the log may exceed it before it is trimmed. The engine rewrites
/// its tables for each removal, so that many small ones would cost much.
const SLACK: u64 = 8;

impl Store {
    /// Returns the estimated bytes of the log, with the dropped collections that it keeps.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn change_log_bytes(&self) -> Result<u64> {
        let (engine, snapshot) = (self.engine(), self.engine().snapshot().map_err(from_storage)?);
        let Some(beginning) = LogBeginning::read(&*snapshot)? else { return Ok(0) };
        let start = log_key(beginning.version.as_u64(), 0);
        let size = |start: &[u8], end: &[u8]| {
            let size = engine.approximate_size(Space::Log, start, end);
            size.map(|size| size.bytes).map_err(from_storage)
        };
        // What a trim has deleted stays in the tables until these are merged. It must not count, or
        // each call would remove as much again.
        let dead = engine.reclaimable_bytes(Space::Log, &SAVED, &[], None);
        let saved = size(&SAVED, &[])?.saturating_sub(dead.map_err(from_storage)?);
        let mut bytes = size(&start, &LOG_END)? + saved;
        for id in dropped_collections(&*snapshot)? {
            bytes += self.dropped_bytes(id)?;
        }
        Ok(bytes)
    }

    fn dropped_bytes(&self, id: CollectionId) -> Result<u64> {
        let (start, end) = range_of(id);
        let size = self.engine().approximate_size(Space::Doc, &start, &end);
        Ok(size.map_err(from_storage)?.bytes)
    }

    /// Removes the oldest changes if the log is larger than `window`, or older by an eighth of it:
    /// at most 64 times 10,000 records, in whole commits. A later call removes the rest.
    ///
    /// # Errors
    /// The errors of the engine; that of `interrupt`.
    pub fn trim_change_log(
        self: &Arc<Self>,
        window: &LogWindow,
        now_ms: u64,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Trimmed> {
        let mut trimmed = Trimmed::default();
        if !self.logs_changes() {
            return Ok(trimmed);
        }
        let measured = self.change_log_bytes()?;
        let size = self.size_since_trim(measured, window);
        let kept = window.bytes_max / SLACK * (SLACK - 1);
        let excess = if size > window.bytes_max { size - kept } else { 0 };
        let age_max_ms = window.age_max_ms.max(window.age_min_ms);
        let oldest_ms = now_ms.saturating_sub(age_max_ms.saturating_add(age_max_ms / SLACK));
        if excess == 0 && !self.has_change_before(oldest_ms)? {
            return Ok(trimmed);
        }
        for _ in 0..STEPS_MAX {
            interrupt.check().map_err(from_interruption)?;
            let before_ms = match trimmed.bytes < excess {
                true if window.age_min_ms == 0 => u64::MAX,
                true => now_ms.saturating_sub(window.age_min_ms),
                false => now_ms.saturating_sub(age_max_ms),
            };
            if !self.trim_step(before_ms, &mut trimmed)? {
                break;
            }
        }
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        if let Some(beginning) = LogBeginning::read(&*snapshot)? {
            self.engine().truncate_log(beginning.version).map_err(from_storage)?;
        }
        if excess > 0 && trimmed.records > 0 {
            // Only deletions in tables are known to `change_log_bytes`.
            self.engine().maintenance(Maintenance::Flush).map_err(from_storage)?;
            self.log_size_trimmed.store(self.change_log_bytes()?, Ordering::Relaxed);
        }
        Ok(trimmed)
    }

    /// Returns the size of the log. After a trim, tables that the engine has not merged yet make the
    /// measured size too large, and a trim by it would remove as much again each time. So the size is
    /// that after the last trim and what was added since, but at least half of the measured size.
    fn size_since_trim(&self, measured: u64, window: &LogWindow) -> u64 {
        if self.log_size_trimmed.load(Ordering::Relaxed) == u64::MAX {
            return measured;
        }
        // Merges make the measured size smaller without removing a change.
        let before = self.log_size_trimmed.fetch_min(measured, Ordering::Relaxed).min(measured);
        let kept = window.bytes_max / SLACK * (SLACK - 1);
        measured.min(kept + (measured - before)).max(measured / 2)
    }

    /// Returns true if the first change is earlier than `wall_ms`.
    fn has_change_before(&self, wall_ms: u64) -> Result<bool> {
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        let Some(beginning) = LogBeginning::read(&*snapshot)? else { return Ok(false) };
        let page = first_page(&*snapshot, &beginning, 1)?;
        let first = page.rows.first().map(|(_, value)| value.slice(8..));
        first.map_or(Ok(false), |record| Ok(decode(&record)?.wall_ms < wall_ms))
    }

    /// Removes the first commits, if they are earlier than `before_ms`. Returns false if there are
    /// none.
    fn trim_step(self: &Arc<Self>, before_ms: u64, trimmed: &mut Trimmed) -> Result<bool> {
        let mut txn = begin(self.engine(), Mode::Write).map_err(from_storage)?;
        let Some(beginning) = LogBeginning::read(&txn)? else { return Ok(false) };
        let (page, step) = first_step(&txn, &beginning, before_ms)?;
        let Some((version, time)) = step.last else { return Ok(false) };
        for (key, value) in page.rows.iter().take(step.records) {
            trimmed.records += 1;
            trimmed.bytes += (key.len() + value.len()) as u64;
            for id in forget(&mut txn, value)? {
                trimmed.bytes += self.dropped_bytes(id)?;
            }
        }
        let next = LogBeginning { version: Version::from_u64(version + 1), time, whole: false };
        next.write(&mut txn)?;
        txn.commit(CommitOptions::buffered()).map_err(from_storage)?;
        Ok(true)
    }
}

/// Returns the first records of the log.
fn first_page(snapshot: &dyn Snapshot, beginning: &LogBeginning, rows_max: usize) -> Result<Page> {
    let (start, mut page) = (log_key(beginning.version.as_u64(), 0), Page::default());
    let request = ScanRequest {
        rows_max,
        bytes_max: STEP_BYTES * rows_max.div_ceil(STEP_RECORDS),
        ..ScanRequest::new(Space::Log, &start, &LOG_END)
    };
    snapshot.scan(&request, &mut page).map_err(from_storage)?;
    Ok(page)
}

/// Returns the records to remove in one step. The page is as large as the first commit.
fn first_step(
    snapshot: &dyn Snapshot,
    beginning: &LogBeginning,
    before_ms: u64,
) -> Result<(Page, Step)> {
    let mut rows_max = STEP_RECORDS;
    loop {
        let page = first_page(snapshot, beginning, rows_max)?;
        let step = Step::of(&page, before_ms)?;
        if !step.is_cut {
            return Ok((page, step));
        }
        rows_max *= 4;
    }
}

/// The records that one step removes.
#[derive(Default)]
struct Step {
    records: usize,
    /// The version and the cluster time of the last commit; `None` if none can go.
    last: Option<(u64, ClusterTime)>,
    /// True if the page ends within its first commit.
    is_cut: bool,
}

impl Step {
    /// Returns the first records of a page, as whole commits that are older than `before_ms`.
    fn of(page: &Page, before_ms: u64) -> Result<Self> {
        let (mut step, mut current) = (Step::default(), None);
        for (seen, (key, value)) in page.rows.iter().enumerate() {
            let (version, _) = split_log_key(key).ok_or_else(|| damaged("a key of the log"))?;
            let time = value.first_chunk().map(|time| ClusterTime(u64::from_be_bytes(*time)));
            let time = time.ok_or_else(|| damaged("a record of the change log"))?;
            if current.is_some_and(|(before, _)| before != version) {
                (step.records, step.last) = (seen, current);
            }
            // A clock that was set back must not keep records that the size of the log drives out.
            if before_ms < u64::MAX && decode(&value.slice(8..))?.wall_ms >= before_ms {
                return Ok(step);
            }
            current = Some((version, time));
        }
        if page.resume.is_none() {
            (step.records, step.last) = (page.rows.len(), current);
        }
        step.is_cut = step.last.is_none() && page.resume.is_some();
        Ok(step)
    }
}

/// Removes what only one record needs: the document that its change saved, or the documents of the
/// collections that it dropped, which it returns.
fn forget(txn: &mut Txn, value: &Bytes) -> Result<Vec<CollectionId>> {
    let record = value.slice(8..);
    let mut dropped = Vec::new();
    match decode(&record)?.content {
        LogContent::Documents { collection: LoggedName { id: collection, .. }, change } => {
            let (LoggedChange::Update { place, .. }
            | LoggedChange::Replace { place, .. }
            | LoggedChange::Delete { place, .. }) = change
            else {
                return Ok(dropped);
            };
            let Place { id, saved } = place;
            if saved {
                txn.delete_entry(Space::Log, saved_key(collection, id)).map_err(from_storage)?;
            }
        }
        LogContent::Catalog(entry) => {
            let gone = Doc::from_valid_bytes(&entry).get("gone").and_then(|gone| gone.as_array());
            let numbers = gone.into_iter().flat_map(|gone| gone.iter()).collect::<Vec<_>>();
            for number in numbers.iter().filter_map(|number| number.exact_i64()) {
                let number = u32::try_from(number).map_err(|_| damaged("a dropped collection"))?;
                drop_collection(txn, CollectionId(number))?;
                dropped.push(CollectionId(number));
            }
        }
        LogContent::Transaction { .. } => {}
    }
    Ok(dropped)
}
