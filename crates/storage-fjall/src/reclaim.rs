//! How the space of dropped ranges comes back. A small range is deleted key by key. A large one
//! goes into a set that every compaction asks; whole tables of it are dropped at once, and while
//! the keyspace is small the rest is compacted now. A range is freed when no table is left that
//! is older than its drop and overlaps it.
//!
//! It is not gone with that: fjall reads again what its log has beyond the newest key in any table,
//! and a freed range may have been what was newest. So it is gone when all log files are younger.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use fjall::AbstractTree;
use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory as FilterFactory, ItemAccessor,
    Verdict,
};
use quire_storage::backend::{Backend, RawSnapshot, Reclaimed, delete_range};
use quire_storage::{DropRange, Op, Page, Result, ScanRequest, Size, Space};

use crate::backend::{FjallBackend, Parts, TABLE_BYTES};
use crate::early_sync::EarlySync;
use crate::error::storage;
use crate::journal;

/// A range with fewer rows and bytes than these is deleted key by key.
const SMALL_ROWS: usize = 2000;
const SMALL_BYTES: usize = 4 << 20;
/// A keyspace of at most this size is compacted as a whole when a dropped range is in its tables.
const COMPACT_BYTES_MAX: u64 = 1 << 30;

type Ranges = Arc<Vec<(Bytes, Bytes)>>;

/// The files that may still hold rows of a dropped range.
#[derive(Clone, Copy)]
enum Place {
    /// In tables up to this number.
    Tables(u64),
    /// In log files up to this number.
    Log(u64),
}

/// The dropped ranges whose rows are still in files, and those that compactions leave out.
#[derive(Default)]
pub(crate) struct DroppedRanges {
    filtered: Mutex<[Ranges; 4]>,
    places: Mutex<HashMap<(Space, Bytes), Place>>,
    /// Ranges have been asked for since the opening; the first time all are there that the
    /// process before has left.
    is_asked: AtomicBool,
}

impl DroppedRanges {
    fn of(&self, space: Space) -> Ranges {
        let ranges = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.get(space.index()).cloned().unwrap_or_default()
    }

    fn change(&self, space: Space, change: impl FnOnce(&mut Vec<(Bytes, Bytes)>)) {
        let mut ranges = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ranges) = ranges.get_mut(space.index()) {
            let mut changed = ranges.to_vec();
            change(&mut changed);
            changed.sort();
            *ranges = Arc::new(changed);
        }
    }

    fn place(&self, range: &DropRange) -> Option<Place> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&(range.space, range.start.clone())).copied()
    }

    fn newest_table(&self, range: &DropRange) -> Option<u64> {
        match self.place(range)? {
            Place::Tables(newest) => Some(newest),
            Place::Log(_) => None,
        }
    }

    fn set_place(&self, range: &DropRange, place: Place) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert((range.space, range.start.clone()), place);
    }

    /// From now on no compaction that begins writes keys of the range.
    fn filter(&self, range: &DropRange) {
        self.set_place(range, Place::Tables(u64::MAX));
        let entry = (range.start.clone(), range.end.clone());
        self.change(range.space, |ranges| ranges.push(entry));
    }

    /// No table has the range any more.
    fn free(&self, range: &DropRange, newest_log: u64) {
        self.change(range.space, |ranges| ranges.retain(|(start, _)| *start != range.start));
        self.set_place(range, Place::Log(newest_log));
    }

    fn forget(&self, range: &DropRange) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.remove(&(range.space, range.start.clone()));
    }
}

/// Gives each compaction the ranges of its keyspace.
pub(crate) struct Factory {
    space: Space,
    dropped: Arc<DroppedRanges>,
    /// Where the keyspace has its tables.
    tables: PathBuf,
}

impl Factory {
    pub fn shared(
        space: Space,
        dropped: &Arc<DroppedRanges>,
        tables: PathBuf,
    ) -> Arc<dyn FilterFactory> {
        Arc::new(Self { space, dropped: Arc::clone(dropped), tables })
    }
}

impl FilterFactory for Factory {
    fn name(&self) -> &str {
        "dropped ranges"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter {
            ranges: self.dropped.of(self.space),
            written: EarlySync::begin(&self.tables),
        })
    }
}

struct Filter {
    ranges: Ranges,
    written: EarlySync,
}

fn covers(ranges: &[(Bytes, Bytes)], key: &[u8]) -> bool {
    let after = ranges.partition_point(|(start, _)| &start[..] <= key);
    let last = after.checked_sub(1).and_then(|at| ranges.get(at));
    last.is_some_and(|(_, end)| end.is_empty() || key < &end[..])
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        if !self.ranges.is_empty() && covers(&self.ranges, item.key()) {
            return Ok(Verdict::Destroy);
        }
        self.written.wrote(item.key().len() + item.value()?.len());
        Ok(Verdict::Keep)
    }

    fn finish(mut self: Box<Self>) {
        self.written.sync();
    }
}

fn bounds(range: &DropRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let end = if range.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&range.end[..]) };
    (Bound::Included(&range.start[..]), end)
}

/// Bytes in tables up to `newest` that overlap the range.
fn left_in_tables(parts: &Parts, range: &DropRange, newest: u64) -> u64 {
    let version = parts.space(range.space).tree.current_version();
    let overlapping = version.iter_tables().filter(|table| {
        let keys = &table.metadata.key_range;
        table.id() <= newest
            && keys.max()[..] >= range.start[..]
            && (range.end.is_empty() || keys.min()[..] < range.end[..])
    });
    overlapping.map(|table| table.metadata.file_size).sum()
}

impl FjallBackend {
    pub(crate) fn reclaim_ranges(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        let mut became = vec![Reclaimed::Left; ranges.len()];
        let mut fresh = Vec::new();
        let logs = journal::numbers(&self.data()?)?;
        let is_first = !self.dropped.is_asked.swap(true, Ordering::Relaxed);
        for (range, became) in ranges.iter().zip(&mut became) {
            if stop() {
                return Ok(vec![Reclaimed::Left; ranges.len()]);
            }
            if self.dropped.place(range).is_some() {
                continue;
            }
            if self.is_small(range)? {
                *became = delete_range(self, range, apply, stop)?;
                // What an earlier process has freed looks empty while newer tables keep the log
                // from being read again.
                if is_first && *became == Reclaimed::Gone {
                    self.dropped.set_place(range, Place::Log(logs.last().copied().unwrap_or(0)));
                }
            } else {
                fresh.push(range.clone());
            }
        }
        let parts = self.parts()?;
        if !fresh.is_empty() {
            self.drop_tables(&parts, &fresh)?;
        }
        for space in Space::ALL {
            self.compact_if_cheap(&parts, ranges.iter().filter(|range| range.space == space))?;
        }
        for (range, became) in ranges.iter().zip(&mut became) {
            if let Some(place) = self.dropped.place(range) {
                *became = self.judge(&parts, range, place, &logs);
            }
        }
        Ok(became)
    }

    /// What has become of a large range. `logs`: the numbers of all log files.
    fn judge(&self, parts: &Parts, range: &DropRange, place: Place, logs: &[u64]) -> Reclaimed {
        match place {
            Place::Tables(newest) if left_in_tables(parts, range, newest) > 0 => Reclaimed::Left,
            Place::Tables(_) => {
                self.dropped.free(range, logs.last().copied().unwrap_or(0));
                Reclaimed::Freed
            }
            Place::Log(newest) if logs.iter().any(|log| *log <= newest) => Reclaimed::Freed,
            Place::Log(_) => {
                self.dropped.forget(range);
                Reclaimed::Gone
            }
        }
    }

    fn is_small(&self, range: &DropRange) -> Result<bool> {
        let mut page = Page::default();
        let mut request =
            ScanRequest::new(range.space, &range.start, &range.end).rows_max(SMALL_ROWS);
        request.bytes_max = SMALL_BYTES;
        self.snapshot()?.scan(&request, &mut page)?;
        Ok(page.resume.is_none())
    }

    /// Moves what is in memory to tables, so that only tables hold the ranges, then drops every
    /// table that holds nothing else. Dropping waits for compactions under way, which know nothing
    /// of the ranges: what they have written by then belongs to the tables that may hold them.
    fn drop_tables(&self, parts: &Parts, ranges: &[DropRange]) -> Result<()> {
        for space in Space::ALL {
            if ranges.iter().any(|range| range.space == space) {
                parts.flush_space(space)?;
            }
        }
        for range in ranges {
            let tree = &parts.space(range.space).tree;
            self.dropped.filter(range);
            tree.drop_range::<&[u8], _>(bounds(range))
                .map_err(|error| storage(error.into(), "dropping tables"))?;
            let newest = tree.current_version().iter_tables().map(|table| table.id()).max();
            self.dropped.set_place(range, Place::Tables(newest.unwrap_or(0)));
        }
        Ok(())
    }

    fn compact_if_cheap<'r>(
        &self,
        parts: &Parts,
        ranges: impl Iterator<Item = &'r DropRange>,
    ) -> Result<()> {
        let mut left = 0;
        let mut of = None;
        for range in ranges {
            let Some(newest) = self.dropped.newest_table(range) else { continue };
            left += left_in_tables(parts, range, newest);
            of = Some(range.space);
        }
        let Some(space) = of.filter(|_| left > 0).map(|space| parts.space(space)) else {
            return Ok(());
        };
        if space.disk_space() <= COMPACT_BYTES_MAX {
            let watermark = self.oldest.load(std::sync::atomic::Ordering::Relaxed);
            space
                .tree
                .major_compact(TABLE_BYTES, watermark.saturating_sub(1))
                .map_err(|error| storage(error.into(), "compacting"))?;
        }
        Ok(())
    }

    /// Exact for some thousand keys; else whole tables, and half of those that overlap partly.
    pub(crate) fn estimate(&self, space: Space, start: &[u8], end: &[u8]) -> Result<Size> {
        let mut page = Page::default();
        let request = ScanRequest::new(space, start, end).rows_max(SMALL_ROWS);
        if request.is_empty() {
            return Ok(Size::default());
        }
        self.snapshot()?.scan(&request, &mut page)?;
        let bytes: usize = page.rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        let seen = Size { bytes: bytes as u64, keys: page.rows.len() as u64 };
        if page.resume.is_none() {
            return Ok(seen);
        }
        let parts = self.parts()?;
        let version = parts.space(space).tree.current_version();
        let mut size = Size::default();
        for table in version.iter_tables() {
            let keys = &table.metadata.key_range;
            if keys.max()[..] < *start || (!end.is_empty() && keys.min()[..] >= *end) {
                continue;
            }
            let whole = keys.min()[..] >= *start && (end.is_empty() || keys.max()[..] < *end);
            let share = if whole { 1 } else { 2 };
            size.bytes += table.metadata.file_size / share;
            size.keys += table.metadata.item_count / share;
        }
        Ok(Size { bytes: size.bytes.max(seen.bytes), keys: size.keys.max(seen.keys) })
    }
}
