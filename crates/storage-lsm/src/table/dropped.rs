//! The dropped ranges that compactions filter out, and the files that may still hold their rows.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lsm_tree::compaction::filter::{
    CompactionFilter, Context, Factory as FilterFactory, ItemAccessor, Verdict,
};
use quire_storage::{DropRange, Space};

use crate::table::early_sync::EarlySync;

type Ranges = Arc<Vec<(Bytes, Bytes)>>;

/// The files that may still hold rows of a dropped range.
#[derive(Clone, Copy)]
pub(crate) enum Remains {
    /// Tables up to this number.
    Tables(u64),
    /// Log files up to this number.
    Log(u64),
}

/// The dropped ranges whose rows are still in files, and the ranges that compactions filter out.
#[derive(Default)]
pub(crate) struct DroppedRanges {
    filtered: Mutex<[Ranges; 4]>,
    places: Mutex<HashMap<(Space, Bytes), Remains>>,
    /// True after the first request since the opening. That request contains all ranges that the
    /// previous process left.
    pub is_asked: AtomicBool,
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

    /// Returns the files that may still hold rows of a range; `None` if this process has not
    /// filtered it.
    pub fn place(&self, range: &DropRange) -> Option<Remains> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(&(range.space, range.start.clone())).copied()
    }

    /// Returns the number of the newest table that may hold rows of a range; `None` if tables hold
    /// none.
    pub fn newest_table(&self, range: &DropRange) -> Option<u64> {
        match self.place(range)? {
            Remains::Tables(newest) => Some(newest),
            Remains::Log(_) => None,
        }
    }

    /// Notes the files that may still hold rows of a range.
    pub fn set_place(&self, range: &DropRange, place: Remains) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.insert((range.space, range.start.clone()), place);
    }

    /// Makes every compaction that begins later filter out the range.
    pub fn filter(&self, range: &DropRange) {
        self.set_place(range, Remains::Tables(u64::MAX));
        let entry = (range.start.clone(), range.end.clone());
        self.change(range.space, |ranges| {
            if !ranges.contains(&entry) {
                ranges.push(entry);
            }
        });
    }

    /// Notes that no table holds the range any more; log files up to `newest_log` may.
    pub fn free(&self, range: &DropRange, newest_log: u64) {
        self.change(range.space, |ranges| ranges.retain(|(start, _)| *start != range.start));
        self.set_place(range, Remains::Log(newest_log));
    }

    /// Removes a range that no file holds any more.
    pub fn forget(&self, range: &DropRange) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.remove(&(range.space, range.start.clone()));
    }
}

/// Creates the filter of each compaction, with the ranges of its keyspace.
pub(crate) struct Factory {
    space: Space,
    dropped: Arc<DroppedRanges>,
    /// The directory of the keyspace's tables.
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
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
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
