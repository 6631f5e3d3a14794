//! Frees the space of dropped ranges. A small range is deleted key by key. A large one is added to
//! a set that filters every compaction; tables that lie wholly inside it are dropped at once, and
//! while the keyspace is small and the disk has room the rest is compacted now. A range is freed when no table that is
//! older than its drop overlaps it.
//!
//! A freed range is not yet gone: an open replays the part of the log that is newer than the newest
//! row in any table of the space, as the tables say it (`flush`), and that can be rows of the freed
//! range. It is gone when all log
//! files are younger.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use quire_storage::backend::{Backend, RawSnapshot, Reclaimed, Room, delete_range};
use quire_storage::{DropRange, Op, Page, Result, ScanRequest, Space, StorageError};

use crate::store::Store;
use crate::table::dropped::{DroppedRanges, Remains};

/// A range with fewer rows and bytes than these is deleted key by key.
const SMALL_ROWS: usize = 2000;
const SMALL_BYTES: usize = 4 << 20;
/// A keyspace of at most this size, in bytes, is compacted as a whole when its tables contain a
/// dropped range.
const COMPACT_BYTES_MAX: u64 = 1 << 30;

fn bounds(range: &DropRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let end = if range.end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&range.end[..]) };
    (Bound::Included(&range.start[..]), end)
}

/// Returns the bytes in tables with numbers up to `newest` that overlap the range.
fn left_in_tables(store: &Store, range: &DropRange, newest: u64) -> u64 {
    let view = store.view();
    let overlapping = view.of(range.space).tables.tables().filter(|table| {
        let keys = &table.metadata.key_range;
        table.id() <= newest
            && keys.max()[..] >= range.start[..]
            && (range.end.is_empty() || keys.min()[..] < range.end[..])
    });
    overlapping.map(|table| table.metadata.file_size).sum()
}

/// One round of freeing dropped ranges.
pub(crate) struct Reclaim<'a, B> {
    /// The backend that reads and deletes the keys of small ranges.
    pub backend: &'a B,
    pub store: &'a Store,
    pub dropped: &'a DroppedRanges,
    /// The numbers of all log files, oldest first.
    pub logs: Vec<u64>,
}

impl<B: Backend> Reclaim<'_, B> {
    /// Returns the state of each range.
    pub fn ranges(
        &self,
        ranges: &[DropRange],
        apply: &dyn Fn(Vec<Op>) -> Result<()>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Reclaimed>> {
        let mut became = vec![Reclaimed::Left; ranges.len()];
        let mut fresh = Vec::new();
        let is_first = !self.dropped.is_asked.load(Ordering::Relaxed);
        for (range, became) in ranges.iter().zip(&mut became) {
            if stop() {
                return Ok(vec![Reclaimed::Left; ranges.len()]);
            }
            match self.dropped.place(range) {
                // An earlier drop of its tables has failed.
                Some(Remains::Tables(u64::MAX)) => {
                    fresh.push(range.clone());
                    continue;
                }
                Some(_) => continue,
                None => {}
            }
            if self.is_small(range)? {
                if self.store.space.room() == Room::None {
                    // Its keys cannot be deleted now.
                    continue;
                }
                *became = delete_range(self.backend, range, apply, stop)?;
                // A range that an earlier process freed looks empty, while newer tables prevent a
                // replay of the log.
                if is_first && *became == Reclaimed::Gone {
                    self.dropped.set_place(range, Remains::Log(self.newest_log()));
                }
            } else {
                fresh.push(range.clone());
            }
        }
        if !fresh.is_empty() {
            self.drop_tables(&fresh)?;
        }
        for space in Space::ALL {
            self.compact_if_cheap(ranges.iter().filter(|range| range.space == space))?;
        }
        for (range, became) in ranges.iter().zip(&mut became) {
            if let Some(place) = self.dropped.place(range) {
                *became = self.judge(range, place);
            }
        }
        self.dropped.is_asked.store(true, Ordering::Relaxed);
        Ok(became)
    }

    fn newest_log(&self) -> u64 {
        self.logs.last().copied().unwrap_or(0)
    }

    /// Returns the state of a large range.
    fn judge(&self, range: &DropRange, place: Remains) -> Reclaimed {
        match place {
            Remains::Tables(newest) if left_in_tables(self.store, range, newest) > 0 => {
                Reclaimed::Left
            }
            Remains::Tables(_) => {
                self.dropped.free(range, self.newest_log());
                Reclaimed::Freed
            }
            Remains::Log(newest) if self.logs.iter().any(|log| *log <= newest) => Reclaimed::Freed,
            Remains::Log(_) => {
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
        self.backend.snapshot()?.scan(&request, &mut page)?;
        Ok(page.resume.is_none())
    }

    /// Flushes the memtables, so that only tables hold the ranges, then drops every table that lies
    /// wholly inside one of them. The drop waits for running compactions, which do not filter the
    /// ranges: the tables that they have written by then count as tables that may hold the ranges.
    fn drop_tables(&self, ranges: &[DropRange]) -> Result<()> {
        for space in Space::ALL {
            if ranges.iter().any(|range| range.space == space)
                && let Err(error) = self.store.flush(space)
            {
                if error == StorageError::Full {
                    // What they free may be the room that the flush needs. The rest follows later.
                    for range in ranges {
                        self.dropped.filter(range);
                        self.store.drop_tables(range.space, bounds(range))?;
                    }
                }
                return Err(error);
            }
        }
        for range in ranges {
            self.dropped.filter(range);
            self.store.drop_tables(range.space, bounds(range))?;
            let view = self.store.view();
            let newest = view.of(range.space).tables.tables().map(|table| table.id()).max();
            self.dropped.set_place(range, Remains::Tables(newest.unwrap_or(0)));
        }
        Ok(())
    }

    fn compact_if_cheap<'r>(&self, ranges: impl Iterator<Item = &'r DropRange>) -> Result<()> {
        let mut left = 0;
        let mut of = None;
        for range in ranges {
            let Some(newest) = self.dropped.newest_table(range) else { continue };
            left += left_in_tables(self.store, range, newest);
            of = Some(range.space);
        }
        let Some(space) = of.filter(|_| left > 0) else { return Ok(()) };
        let bytes = self.store.view().of(space).tables.bytes();
        let is_cheap = bytes <= COMPACT_BYTES_MAX && self.store.has_room_for(bytes);
        if is_cheap { self.store.merge_all(space) } else { Ok(()) }
    }
}
