//! The end of the change log's window: old records go, with the documents that only they need.

use std::sync::Arc;

use quire_catalog::CollectionId;
use quire_document::Doc;
use quire_error::Result;
use quire_storage::committer::{LOG_END, log_key, split_log_key};
use quire_storage::{
    Bytes, ClusterTime, CommitOptions, Interrupt, Mode, Page, ScanRequest, Snapshot, Space, Txn,
    Version, begin,
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
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        let mut bytes =
            self.engine().approximate_size(Space::Log, &[], &[]).map_err(from_storage)?.bytes;
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
        let size = self.change_log_bytes()?;
        let excess = match size > window.bytes_max {
            true => size - window.bytes_max / SLACK * (SLACK - 1),
            false => 0,
        };
        let age_max_ms = window.age_max_ms.max(window.age_min_ms);
        let oldest_ms = now_ms.saturating_sub(age_max_ms.saturating_add(age_max_ms / SLACK));
        if excess == 0 && !self.has_change_before(oldest_ms)? {
            return Ok(trimmed);
        }
        for _ in 0..STEPS_MAX {
            interrupt.check().map_err(from_interruption)?;
            let age_ms = if trimmed.bytes < excess { window.age_min_ms } else { age_max_ms };
            if !self.trim_step(now_ms.saturating_sub(age_ms), &mut trimmed)? {
                break;
            }
        }
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        if let Some(beginning) = LogBeginning::read(&*snapshot)? {
            self.engine().truncate_log(beginning.version).map_err(from_storage)?;
        }
        Ok(trimmed)
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
            if decode(&value.slice(8..))?.wall_ms >= before_ms {
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
