//! The snapshot that readers use: the view of its time, and the last batch that it sees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quire_storage::backend::{RangeReader, RawSnapshot};
use quire_storage::{Direction, Page, Result, ScanRequest, Space, StorageError, Visitor};

use crate::directory::damage::Damage;
use crate::error::storage;
use crate::read::held::{HeldMark, HeldViews};
use crate::read::lookups;
use crate::read::range::{RangeSources, Walk};
use crate::space::gaps::Skip;
use crate::space::heads::Heads;
use crate::store::view::View;
use crate::table::locate;
use crate::table::opened;

/// A snapshot of all spaces.
pub struct LsmSnapshot {
    view: Arc<View>,
    /// The last batch that it sees.
    seqno: u64,
    heads: Arc<Heads>,
    epoch: u64,
    /// Counts the view among those that are held for long.
    _held: Option<HeldMark>,
}

impl LsmSnapshot {
    /// Returns a snapshot that sees the batches up to `seqno` of a view.
    pub(crate) fn new((view, seqno): (Arc<View>, u64), heads: Arc<Heads>, epoch: u64) -> Self {
        Self { view, seqno, heads, epoch, _held: None }
    }

    /// Returns a snapshot of the same content whose memory counts as held; see
    /// [`Backend::hold`](quire_storage::backend::Backend::hold).
    pub(crate) fn hold(&self, held: &Arc<HeldViews>) -> Self {
        Self {
            view: Arc::clone(&self.view),
            seqno: self.seqno,
            heads: Arc::clone(&self.heads),
            epoch: self.epoch,
            _held: Some(held.add(&self.view)),
        }
    }

    /// Converts the error of a read near `key`. If the tables have a damaged block there, the error
    /// names its file and position.
    fn failure(
        &self,
        error: lsm_tree::Error,
        space: Space,
        key: &[u8],
        direction: Direction,
    ) -> StorageError {
        named(storage(error, space.name()), || {
            locate::damage_near(&self.view.of(space).tables, key, direction)
        })
    }

    /// Converts the error of a scan that has read some rows.
    fn scan_failure(
        &self,
        error: lsm_tree::Error,
        request: &ScanRequest<'_>,
        sink: &Sink<'_, '_>,
    ) -> StorageError {
        let begin = match request.direction {
            Direction::Forward => request.start,
            Direction::Reverse => request.end,
        };
        let reached = sink.last_key().map_or(begin, |key| key);
        self.failure(error, request.space, reached, request.direction)
    }
}

impl RawSnapshot for LsmSnapshot {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        lookups::get(self.view.of(space), self.seqno, key)
            .map_err(|error| self.failure(error, space, key, Direction::Forward))
    }

    fn get_many(&self, space: Space, keys: &[&[u8]], out: &mut Vec<Option<Bytes>>) -> Result<()> {
        if let [key] = keys {
            out.push(self.get(space, key)?);
            return Ok(());
        }
        let start = out.len();
        out.resize(start + keys.len(), None);
        let values = out.get_mut(start..).unwrap_or_default();
        let view = self.view.of(space);
        lookups::get_many(view, self.seqno, keys, values).map_err(|error| {
            let near = |key: &&[u8]| locate::damage_near(&view.tables, key, Direction::Forward);
            named(storage(error, space.name()), || keys.iter().find_map(near))
        })
    }

    fn scan(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<()> {
        self.read(request, &mut Sink::Page(page)).map(|_| ())
    }

    fn pass(&self, request: &ScanRequest<'_>, page: &mut Page) -> Result<usize> {
        let passed = self.read(&request.keys_only(), &mut Sink::Last(page))?;
        if !request.keys_only
            && let Some((key, value)) = page.rows.last_mut()
        {
            *value = self.get(request.space, key)?.unwrap_or_default();
        }
        Ok(passed)
    }

    fn reader(&self) -> Option<Box<dyn RangeReader>> {
        let view = (Arc::clone(&self.view), self.seqno);
        Some(Box::new(Self::new(view, Arc::clone(&self.heads), self.epoch)))
    }
}

impl RangeReader for LsmSnapshot {
    fn visit(&self, request: &ScanRequest<'_>, visitor: &mut Visitor<'_>) -> Result<Option<Bytes>> {
        let mut visit = Visit::default();
        self.read(request, &mut Sink::Visitor(visitor, &mut visit))?;
        Ok(visit.resume)
    }
}

/// Where the rows of a range go.
enum Sink<'r, 'v> {
    /// A page, which is empty, of all rows.
    Page(&'r mut Page),
    /// A page, which is empty, of the last row.
    Last(&'r mut Page),
    /// A visitor of all rows.
    Visitor(&'r mut Visitor<'v>, &'r mut Visit),
}

/// What is known after a visit.
#[derive(Default)]
struct Visit {
    /// Where the scan continues.
    resume: Option<Bytes>,
    /// How long it took to find the first row.
    found_after: Duration,
}

impl LsmSnapshot {
    /// Reads the first rows of a range. Returns their number.
    fn read(&self, request: &ScanRequest<'_>, sink: &mut Sink<'_, '_>) -> Result<usize> {
        let bound;
        let mut request = *request;
        match self.heads.gaps(request.space).skip(self.epoch, &request) {
            Skip::Nothing => {}
            Skip::All => return Ok(0),
            Skip::To(key) => {
                bound = key;
                request = request.resumed(&bound);
            }
        }
        if request.is_empty() {
            return Ok(0);
        }
        let since = Instant::now();
        let mut from = Bytes::new();
        let count = loop {
            let rest = if from.is_empty() { request } else { request.resumed(&from) };
            match self.read_tables(&request, &rest, (&mut *sink, since)) {
                Ok((_, Some(edge))) => from = edge,
                Ok((count, None)) => break count,
                Err(error) => return Err(self.scan_failure(error, &rest, sink)),
            }
        };
        if count == 0 {
            self.heads.gaps(request.space).learn(self.epoch, &request, None, since.elapsed());
        }
        // The time of a visitor says nothing about tombstones.
        let (rows, took) = match sink {
            Sink::Page(_) | Sink::Last(_) => (count, since.elapsed()),
            Sink::Visitor(_, visit) => (count.min(1), visit.found_after),
        };
        self.heads.tombstones.scanned(request.space, rows, took);
        Ok(count)
    }

    /// Reads the range `rest` of the scan `whole` from the next tables. Returns the number of rows,
    /// and the key at which the scan continues if the tables contain no row.
    fn read_tables(
        &self,
        whole: &ScanRequest<'_>,
        rest: &ScanRequest<'_>,
        (sink, since): (&mut Sink<'_, '_>, Instant),
    ) -> opened::Result<(usize, Option<Bytes>)> {
        let sources = RangeSources::of(self.view.of(rest.space), self.seqno, rest);
        match rest.direction {
            Direction::Forward => {
                let mut rows = sources.rows(rest)?;
                self.learn(whole, &rows, since);
                sink.read(&sources, &mut rows, rest, since)
            }
            Direction::Reverse => {
                let mut rows = sources.rows_back(rest)?;
                self.learn(whole, &rows, since);
                sink.read(&sources, &mut rows, rest, since)
            }
        }
    }

    /// Remembers the empty range before the first row, if it took long to find that.
    fn learn(&self, request: &ScanRequest<'_>, rows: &impl Walk, since: Instant) {
        if rows.key().is_some() {
            let gaps = self.heads.gaps(request.space);
            gaps.learn(self.epoch, request, rows.key(), since.elapsed());
        }
    }
}

impl Sink<'_, '_> {
    fn read(
        &mut self,
        sources: &RangeSources,
        rows: &mut impl Walk,
        request: &ScanRequest<'_>,
        since: Instant,
    ) -> opened::Result<(usize, Option<Bytes>)> {
        match self {
            Sink::Page(page) => {
                let edge = sources.fill(rows, request, page)?;
                Ok((page.rows.len(), edge))
            }
            Sink::Last(page) => sources.pass(rows, request, page),
            Sink::Visitor(visitor, visit) => {
                visit.found_after = since.elapsed();
                let (visited, resume) = sources.visit(rows, request, visitor)?;
                if visited == 0 {
                    return Ok((0, resume));
                }
                visit.resume = resume;
                Ok((visited, None))
            }
        }
    }

    /// Returns the key of the last row that was read; `None` if that is not known.
    fn last_key(&self) -> Option<&Bytes> {
        match self {
            Sink::Page(page) | Sink::Last(page) => page.rows.last().map(|(key, _)| key),
            Sink::Visitor(..) => None,
        }
    }
}

/// Returns the error, for damage with the place that `find` returns instead of the engine's text.
fn named(error: StorageError, find: impl FnOnce() -> Option<Damage>) -> StorageError {
    match error {
        StorageError::Corruption { .. } => find().map_or(error, StorageError::from),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use quire_storage::Op;

    use super::*;
    use crate::LsmOptions;
    use crate::store::{Running, Store};
    use crate::table::dropped::DroppedRanges;

    /// A regression test: the time of a slow filter counted as time for passing tombstones, and every
    /// 20,000 deletes the whole space was merged.
    #[test]
    fn a_slow_visitor_is_no_hint_of_tombstones() {
        let directory = tempfile::tempdir().unwrap();
        let dropped = Arc::new(DroppedRanges::default());
        let store = Store::open(directory.path(), &LsmOptions::default(), &dropped, 0).unwrap();
        let running = Running::start(store, 1).unwrap();
        let op = |key: u8| {
            let (key, value) = (Bytes::copy_from_slice(&[key]), Some(Bytes::from_static(b"v")));
            Op { space: Space::Doc, key, value }
        };
        running.store().write((0..3).map(op).collect(), false).unwrap();
        let heads = Arc::new(Heads::new(Duration::MAX));
        let snapshot = LsmSnapshot::new(running.store().snapshot(), Arc::clone(&heads), 0);
        let slow = |_: &quire_storage::VisitedRow<'_>| {
            std::thread::sleep(Duration::from_millis(10));
            ControlFlow::Continue(())
        };
        let request = ScanRequest::new(Space::Doc, b"", b"");
        assert_eq!(snapshot.visit(&request, &mut { slow }), Ok(None));
        assert!(!heads.tombstones.is_hinted(Space::Doc));
    }
}
