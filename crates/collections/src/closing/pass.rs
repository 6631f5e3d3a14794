//! Closing: packs points of one source that are records as a bucket, a few buckets in a commit.
//!
//! A pass walks the index that has the points source by source. It reads index entries only, until it has found points
//! that make buckets; then their documents, those of several sources in the order of their insertion: where sources take
//! turns, each block of documents has points of all of them. So a pass over sources without enough points costs little,
//! and memory is bounded by the points of a commit, whose lengths are known from those of the commit before.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, Index, IndexId};
use quire_document::{Value, ValueBuf, identical_or_absent};
use quire_error::Result;
use quire_mql::time_series::TimeSeriesOptions;
use quire_storage::{CommitOptions, Direction, Interrupt};

use crate::ddl::number_buckets;
use crate::failure::Attempt;
use crate::layout::damaged;
use crate::series::layout::POINTS_MAX;
use crate::series::{is_long, source_index, stays_row, takes_buckets};
use crate::write::{Attempts, ClosingPoints};
use crate::{IndexCursor, IndexEntry, IndexRange, RecordId, Store, StoredDoc, Writer, WriterMode};

/// The sum of the lengths of the points at which a bucket is full.
const BYTES_MAX: usize = 1 << 20;
/// The fewest points of a bucket that is closed because it is full.
const POINTS_MIN: usize = 64;
/// The fewest points of a bucket that is closed because they are old. A bucket takes about 171 bytes beside its
/// points, so fewer points take less space as records.
const OLD_POINTS_MIN: usize = 4;
/// The most points of a step, and the most bytes of their documents, by the average length in the step before.
const STEP_POINTS_MAX: usize = 8 * POINTS_MAX;
const STEP_BYTES_MAX: usize = 8 << 20;
/// The entries of a page.
const PAGE_ROWS: usize = 1024;
/// The entries after which a step that found nothing to close ends, so that it releases its view.
const STEP_ENTRIES_MAX: usize = 64 << 10;

/// When points are closed.
#[derive(Debug, Clone, Copy)]
pub struct ClosePolicy {
    /// The time of the pass, in milliseconds since 1970. Points that are older than a bucket's span are closed even if
    /// their bucket is not full.
    pub now_ms: i64,
    /// True to close all points that can be closed, however few and new they are.
    pub everything: bool,
    /// True to close points also while executions that read them are open.
    pub is_forced: bool,
}

/// What a pass has closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Closed {
    /// The number of buckets.
    pub buckets: u64,
    /// The number of their points.
    pub points: u64,
}

/// A pass over a collection that closes points.
pub struct Closing {
    collection: Arc<Collection>,
    policy: ClosePolicy,
    /// Where the next step begins; `None` for the beginning.
    place: Option<IndexRange>,
    closed: Closed,
    is_held_up: bool,
    /// The most points of the next step.
    room: usize,
    /// When the points that are enough for a bucket, and too new, are old; `i64::MAX` if there are none.
    next_due_ms: i64,
}

/// The entries of one source that are next to each other in the index.
#[derive(Default)]
struct Run {
    entries: Vec<(IndexEntry, i64)>,
    /// The encoded meta value, with which the entries begin.
    prefix: Bytes,
    /// True if the next entry of the source does not fit into a bucket with these.
    is_full: bool,
}

/// The runs whose points are closed in this step, each with the fewest points of its bucket.
#[derive(Default)]
struct Due {
    runs: Vec<(Run, usize)>,
    points: usize,
}

/// A place in the index, and what a step did up to there.
struct Stepped {
    /// Where the next step begins; `None` at the end.
    next: Option<IndexRange>,
    buckets: usize,
    points: usize,
    /// The sum of the lengths of the points.
    bytes: usize,
    /// True if the step has found a bucket and the collection has no number for buckets yet.
    needs_number: bool,
    /// When the points that are too new are old.
    due_ms: i64,
}

impl Stepped {
    /// A step that has closed nothing.
    fn to(next: Option<IndexRange>) -> Self {
        Stepped { next, buckets: 0, points: 0, bytes: 0, needs_number: false, due_ms: i64::MAX }
    }
}

/// One step of a pass: what it reads on.
struct Step<'s> {
    collection: &'s Collection,
    buckets: Option<IndexId>,
    series: &'s TimeSeriesOptions,
    index: &'s Arc<Index>,
    policy: ClosePolicy,
    /// The most points of the step, but for a single bucket.
    room: usize,
}

impl Closing {
    /// Begins a pass over a collection.
    pub fn new(collection: &Arc<Collection>, policy: ClosePolicy) -> Self {
        let collection = Arc::clone(collection);
        Closing {
            collection,
            policy,
            place: None,
            closed: Closed::default(),
            is_held_up: false,
            room: POINTS_MAX,
            next_due_ms: i64::MAX,
        }
    }

    /// Makes the next step, which closes a few buckets or none. Returns false at the end of the pass, which is also when a
    /// statement needs the points as records.
    ///
    /// # Errors
    /// The errors of reading and of the commit; the error of an interrupt. What was closed before stays closed.
    pub fn step(&mut self, store: &Arc<Store>, interrupt: &Arc<Interrupt>) -> Result<bool> {
        let collection = &self.collection;
        if !takes_buckets(collection) {
            return Ok(false);
        }
        let gate = store.series_gate(collection.id);
        let from = (&self.place, self.room);
        let step = || store.closing_step(collection, from, self.policy, interrupt);
        let stepped = gate.closing(self.policy.is_forced, step).transpose()?.flatten();
        let Some(Stepped { next, buckets, points, bytes, needs_number, due_ms }) = stepped else {
            self.is_held_up = true;
            return Ok(false);
        };
        if needs_number && !store.prepare_buckets(collection, interrupt)? {
            return Ok(false);
        }
        self.next_due_ms = self.next_due_ms.min(due_ms);
        self.closed.buckets += buckets as u64;
        self.closed.points += points as u64;
        if let Some(each) = bytes.checked_div(points) {
            self.room = (STEP_BYTES_MAX / each.max(1)).clamp(POINTS_MAX, STEP_POINTS_MAX);
        }
        self.place = next;
        Ok(self.place.is_some())
    }

    /// Returns true if the pass has ended because statements or open executions need the points where they are.
    pub fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    /// Returns the time, in milliseconds since 1970, before which another pass finds nothing to close that this one did
    /// not find, if no points change.
    pub fn next_due_ms(&self) -> i64 {
        self.next_due_ms
    }

    /// Returns what the pass has closed.
    pub fn closed(&self) -> Closed {
        self.closed
    }

    /// Makes all steps, and returns what the pass has closed.
    ///
    /// # Errors
    /// Those of [`step`](Self::step).
    pub fn run(mut self, store: &Arc<Store>, interrupt: &Arc<Interrupt>) -> Result<Closed> {
        while self.step(store, interrupt)? {}
        Ok(self.closed)
    }
}

impl Store {
    /// Makes sure that the collection has a number for its buckets. Returns false if it was dropped.
    fn prepare_buckets(
        self: &Arc<Self>,
        collection: &Collection,
        interrupt: &Arc<Interrupt>,
    ) -> Result<bool> {
        let catalog = self.catalog();
        match catalog.by_id(collection.id) {
            None => Ok(false),
            Some(found) if found.buckets.is_some() => Ok(true),
            Some(_) => {
                let options = CommitOptions::buffered().ended_by(interrupt);
                number_buckets(self, collection.id, &options)
            }
        }
    }

    /// Makes a step from a place in the index on, of at most some points. Returns `None` if executions are open that
    /// read points.
    fn closing_step(
        self: &Arc<Self>,
        collection: &Collection,
        from: (&Option<IndexRange>, usize),
        policy: ClosePolicy,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Option<Stepped>> {
        let mut attempts = Attempts::new(self, interrupt);
        loop {
            match self.try_step(&attempts, collection, from, policy) {
                Ok(stepped) => return Ok(stepped),
                Err(failure) => attempts.wait_after(failure)?,
            }
        }
    }

    fn try_step(
        self: &Arc<Self>,
        attempts: &Attempts<'_>,
        collection: &Collection,
        (place, room): (&Option<IndexRange>, usize),
        policy: ClosePolicy,
    ) -> Attempt<Option<Stepped>> {
        let turn = attempts.begin()?;
        let mut writer = self.writer(WriterMode::Statement)?;
        writer.set_turn(turn);
        let ended = Stepped::to(None);
        let found =
            writer.collection(&collection.namespace).filter(|found| found.id == collection.id);
        let Some(collection) = found.filter(|found| takes_buckets(found)) else {
            return Ok(Some(ended));
        };
        let Some(series) = collection.options.time_series() else { return Ok(Some(ended)) };
        let Some(index) = source_index(&collection, series) else { return Ok(Some(ended)) };
        let buckets = collection.buckets;
        let step = Step { collection: &collection, buckets, series, index, policy, room };
        let range = place.clone().unwrap_or_else(|| IndexRange::whole(index));
        let stepped = step.run(&mut writer, range)?;
        if stepped.points > 0 {
            let gate = self.series_gate(collection.id);
            let Some(_readers_out) = gate.readers_out(policy.is_forced) else { return Ok(None) };
            self.commit_move(writer, collection.id, attempts)?;
        }
        Ok(Some(stepped))
    }
}

impl Step<'_> {
    /// Reads entries from the beginning of a range on, until points are found that make buckets, and writes these.
    fn run(&self, writer: &mut Writer, range: IndexRange) -> Attempt<Stepped> {
        let mut cursor = IndexCursor::new(self.index, range, Direction::Forward);
        let (mut run, mut page, mut seen) = (Run::default(), Vec::new(), 0);
        let (mut more, mut due_ms) = (true, i64::MAX);
        let mut due = Due::default();
        while more {
            page.clear();
            more = cursor.next_page(&writer.view(), PAGE_ROWS, &mut page)?;
            seen += page.len();
            for entry in page.drain(..) {
                let (prefix, time) = self.split(&entry)?;
                if run.takes(&prefix, time, self.span_ms()) {
                    run.push(prefix, time, entry);
                    continue;
                }
                let is_room = due.points + POINTS_MAX <= self.room;
                if !is_room && let Some(stepped) = self.close(writer, &mut due, Some(&run))? {
                    return Ok(Stepped { due_ms, ..stepped });
                }
                due_ms = due_ms.min(self.due_ms(&run));
                due.take(self, std::mem::take(&mut run));
                run.push(prefix, time, entry);
            }
            // An unfinished run begins again in the next step.
            if more && seen >= STEP_ENTRIES_MAX {
                if let Some(stepped) = self.close(writer, &mut due, Some(&run))? {
                    return Ok(Stepped { due_ms, ..stepped });
                }
                let next = run.entries.first().map_or_else(
                    || cursor.remaining().clone(),
                    |(first, _)| self.beginning_at(first),
                );
                return Ok(Stepped { due_ms, ..Stepped::to(Some(next)) });
            }
        }
        let due_ms = due_ms.min(self.due_ms(&run));
        due.take(self, run);
        let closed = self.close(writer, &mut due, None)?;
        Ok(Stepped { due_ms, ..closed.unwrap_or(Stepped::to(None)) })
    }

    /// Returns when the points of a run are old, if they are enough for a bucket and are not closed now; otherwise
    /// `i64::MAX`.
    fn due_ms(&self, run: &Run) -> i64 {
        match run.entries.last() {
            Some((_, last))
                if run.entries.len() >= OLD_POINTS_MIN && self.fewest(run).is_none() =>
            {
                last.saturating_add(self.span_ms()).saturating_add(1)
            }
            _ => i64::MAX,
        }
    }

    /// Returns the fewest points of which a bucket is made now, if the points of a run are enough; otherwise `None`.
    fn fewest(&self, run: &Run) -> Option<usize> {
        let ClosePolicy { now_ms, everything, .. } = self.policy;
        let ((_, first), (_, last)) = run.entries.first().zip(run.entries.last())?;
        let is_old = last.saturating_add(self.span_ms()) < now_ms;
        let fewest = match (everything, is_old, run.is_full) {
            (true, ..) => 1,
            (_, true, _) => OLD_POINTS_MIN,
            (_, _, true) => POINTS_MIN,
            _ => return None,
        };
        // A long meta value has no time.
        (*first != i64::MAX && run.entries.len() >= fewest).then_some(fewest)
    }

    fn span_ms(&self) -> i64 {
        i64::from(self.series.buckets.span_seconds()) * 1000
    }

    /// Returns the encoded meta value of an entry, and its time.
    fn split(&self, entry: &IndexEntry) -> Result<(Bytes, i64)> {
        let broken = || damaged("an entry of the index of sources");
        let decoded = entry.decode(&self.index.keys)?;
        let at = usize::from(self.series.meta_field.is_some());
        if let Some(key) = decoded
            && let Some(Some(time)) = key.values.get(at)
            && let Value::Date(time) = time.as_value()
        {
            let values = &entry.values[..];
            let rest = match at {
                0 => values,
                _ => quire_document::key::skip(values, false).map_err(|_| broken())?,
            };
            return Ok((entry.values.slice(..values.len() - rest.len()), time));
        }
        // A long meta value: such a point stays a record, and a run of its own is not closed.
        Ok((entry.values.clone(), i64::MAX))
    }

    /// Returns the rest of the index from an entry on.
    fn beginning_at(&self, entry: &IndexEntry) -> IndexRange {
        let before = RecordId(entry.record.0.saturating_sub(1));
        IndexRange::whole(self.index).after(self.index, &entry.values, before, Direction::Forward)
    }

    /// Writes the buckets of the points that are due; `next` is the run after them. Returns `None` if they make none.
    fn close(
        &self,
        writer: &mut Writer,
        due: &mut Due,
        next: Option<&Run>,
    ) -> Attempt<Option<Stepped>> {
        let runs = std::mem::take(due).runs;
        let mut next =
            next.and_then(|next| next.entries.first()).map(|(at, _)| self.beginning_at(at));
        let ids: Vec<RecordId> = runs.iter().flat_map(|(run, _)| run.ids()).collect();
        let mut found = Vec::new();
        writer.view().get_many(self.collection, &ids, &mut found)?;
        let mut found = ids.into_iter().zip(found);
        let (mut closing, mut points, mut bytes) = (Vec::new(), 0, 0);
        for (run, fewest) in &runs {
            let rows = self.fitting(found.by_ref().take(run.entries.len()));
            let Some((begin, _)) = run.entries.first().filter(|_| rows.len() >= *fewest) else {
                continue;
            };
            let is_whole = rows.len() == run.entries.len();
            points += rows.len();
            bytes += rows.iter().map(|(_, doc)| doc.as_bytes().len()).sum::<usize>();
            let times = (self.time(rows.first())?, self.time(rows.last())?);
            let meta = rows.first().and_then(|(_, doc)| self.meta(doc)).map(ValueBuf::new);
            closing.push(ClosingPoints { rows, times, meta });
            if !is_whole {
                // Points of the run that did not fit into this bucket may make another one.
                next = Some(self.beginning_at(begin));
                break;
            }
        }
        if closing.is_empty() {
            return Ok(None);
        }
        let Some(buckets) = self.buckets else {
            let first = runs.first().and_then(|(run, _)| run.entries.first());
            let again = Stepped::to(first.map(|(at, _)| self.beginning_at(at)));
            return Ok(Some(Stepped { needs_number: true, ..again }));
        };
        writer.close_points(self.collection, (buckets, self.series), &closing)?;
        Ok(Some(Stepped { buckets: closing.len(), points, bytes, ..Stepped::to(next) }))
    }

    /// Returns the documents of a run that fit into one bucket: they have the same meta value, byte for byte.
    fn fitting(
        &self,
        found: impl Iterator<Item = (RecordId, Option<StoredDoc>)>,
    ) -> Vec<(RecordId, StoredDoc)> {
        let (mut rows, mut bytes): (Vec<(RecordId, StoredDoc)>, usize) = (Vec::new(), 0);
        for (id, doc) in found {
            let Some(doc) = doc.filter(|_| bytes < BYTES_MAX) else { continue };
            let meta = self.meta(&doc);
            let fits = match rows.first() {
                None => !stays_row(doc.as_doc(), meta),
                // The meta value of the first one was tested.
                Some((_, first)) => {
                    !is_long(doc.as_doc()) && identical_or_absent(self.meta(first), meta)
                }
            };
            if !fits {
                continue;
            }
            bytes += doc.as_bytes().len();
            rows.push((id, doc));
        }
        rows
    }

    fn meta<'d>(&self, doc: &'d StoredDoc) -> Option<Value<'d>> {
        doc.get(self.series.meta_field.as_deref()?)
    }

    fn time(&self, row: Option<&(RecordId, StoredDoc)>) -> Result<i64> {
        match row.and_then(|(_, doc)| doc.get(&self.series.time_field)) {
            Some(Value::Date(time)) => Ok(time),
            _ => Err(damaged("a point without a date")),
        }
    }
}

impl Due {
    /// Takes a run if its points make a bucket.
    fn take(&mut self, step: &Step<'_>, run: Run) {
        if let Some(fewest) = step.fewest(&run) {
            self.points += run.entries.len();
            self.runs.push((run, fewest));
        }
    }
}

impl Run {
    fn ids(&self) -> impl Iterator<Item = RecordId> {
        self.entries.iter().map(|(entry, _)| entry.record)
    }

    /// Returns true if a point fits into a bucket with these. Sets `is_full` if only its time or the number of points
    /// is against it.
    fn takes(&mut self, prefix: &[u8], time: i64, span_ms: i64) -> bool {
        let Some((_, first)) = self.entries.first() else { return true };
        let is_same = self.prefix[..] == *prefix;
        let fits = self.entries.len() < POINTS_MAX && time.saturating_sub(*first) < span_ms;
        self.is_full = is_same && !fits;
        is_same && fits
    }

    fn push(&mut self, prefix: Bytes, time: i64, entry: IndexEntry) {
        if self.entries.is_empty() {
            self.prefix = prefix;
        }
        self.entries.push((entry, time));
    }
}
