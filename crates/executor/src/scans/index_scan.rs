//! IXSCAN and COUNT_SCAN: the keys of an index within bounds, each record once.

use bytes::Bytes;
use quire_catalog::Collection;
use quire_collections::{IndexCursor, IndexEntry, IndexRange, RecordId};
use quire_document::key::{self, KeyError};
use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::filter::{Filter, Node as Condition, Test};
use quire_planner::explain::NodeStats;
use quire_planner::{IndexScan, Interval};
use quire_storage::Direction;

use crate::env::Run;
use crate::execution::FIRST_GENERATION;
use crate::operators::filtering::Matcher;
use crate::operators::{Operator, Passed, at_most};
use crate::record_set::RecordSet;
use crate::row::Row;
use crate::scans::index_bounds::{ByteBounds, Seek, Verdict};
use crate::table::Table;

const PAGE_ROWS_FIRST: usize = 8;
const PAGE_ROWS_MAX: usize = 1000;
/// A page is dense if at least one in this many of its keys is the target of a seek.
const DENSE_SHARE: usize = 4;
/// The keys that are counted between two checks of the interrupt.
const PASSED_KEYS_MAX: usize = 4096;

/// The last entry of a scan. Its bytes are copied into the same buffer each time, which costs less
/// than references to the page.
#[derive(Default)]
struct Last {
    /// `None` before the first entry.
    record: Option<RecordId>,
    values: Vec<u8>,
    is_shortened: bool,
}

impl Last {
    #[inline]
    fn set(&mut self, entry: &IndexEntry) {
        self.record = Some(entry.record);
        self.values.clear();
        self.values.extend_from_slice(&entry.values);
        self.is_shortened = entry.is_shortened();
    }
}

/// A scan of an index.
pub(crate) struct IndexScanOp {
    table: Table,
    scan: Box<IndexScan>,
    direction: Direction,
    /// True if each key is compared with the bounds: the scan is not one range of keys.
    checks_keys: bool,
    /// These bounds, encoded when the scan begins.
    bounds: Option<ByteBounds>,
    filter: Option<Matcher>,
    /// The number of leading fields on which alone the filter depends, if all keys that agree in them are skipped
    /// when one fails.
    skipped: Option<usize>,
    /// The records returned so far, if a record can have several keys.
    seen: Option<RecordSet>,
    /// True if keys are needed, and not only record ids.
    keep_keys: bool,
    /// True for a COUNT_SCAN, which reads one key after its range.
    counts_end: bool,
    cursor: Option<IndexCursor>,
    page: std::vec::IntoIter<IndexEntry>,
    page_rows: usize,
    /// The number of entries of the current page, and of the seeks that ended in it.
    page_len: usize,
    near: usize,
    last: Last,
    generation: u64,
    done: bool,
    stats: NodeStats,
}

impl IndexScanOp {
    pub fn new(
        scan: Box<IndexScan>,
        filter: Option<Filter>,
        keep_keys: bool,
        counts: bool,
    ) -> Self {
        let one_range = scan.range.is_some() || scan.is_one_range();
        let seen = scan.repeats_documents().then(RecordSet::default);
        IndexScanOp {
            table: Table::new(&scan.collection),
            direction: if scan.backward { Direction::Reverse } else { Direction::Forward },
            checks_keys: !one_range,
            bounds: None,
            filter: filter.map(Matcher::new),
            skipped: None,
            seen,
            keep_keys: keep_keys || scan.filter.is_some(),
            counts_end: counts,
            cursor: None,
            page: Vec::new().into_iter(),
            page_rows: PAGE_ROWS_FIRST,
            page_len: 0,
            near: 0,
            last: Last::default(),
            generation: 0,
            done: false,
            stats: NodeStats::default(),
            scan,
        }
    }

    /// Returns a scan that checks each key, because it skips keys: those that agree in the fields up to `field`.
    pub fn distinct(scan: Box<IndexScan>, filter: Option<Filter>, field: usize) -> Self {
        let fails_group = scan.filter.as_ref().is_some_and(|filter| {
            let mut within = treats_equals_alike(filter);
            filter.visit_paths(&mut |node| {
                let read = scan.keys.fields().iter().position(|key| {
                    let rest = node.path.as_str().strip_prefix(key.path.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                });
                within &= read.is_some_and(|read| read <= field);
            });
            within
        });
        let skipped = fails_group.then_some(field + 1);
        IndexScanOp { checks_keys: true, skipped, ..Self::new(scan, filter, true, false) }
    }

    /// Positions a new cursor, at the start or after the last key.
    fn position(&mut self, run: &Run<'_>) -> Result<()> {
        self.generation = run.generation;
        if self.checks_keys && self.bounds.is_none() {
            let check = || run.env.check_interrupt();
            self.bounds = Some(ByteBounds::new(&self.scan, &check)?);
        }
        let index = &self.scan.index;
        let range = match &self.bounds {
            Some(bounds) => match bounds.start() {
                Some(seek) => seek_range(&self.scan, &seek),
                None => {
                    self.done = true;
                    return Ok(());
                }
            },
            None => whole_range(&self.scan),
        };
        let range = match self.last.record {
            Some(last) => {
                if grown_multikey(self.table.resolve(run)?, &self.scan, self.keep_keys)? {
                    self.seen.get_or_insert_with(RecordSet::default);
                }
                let whole = if self.checks_keys { IndexRange::whole(index) } else { range };
                whole.after(index, &self.last.values, last, self.direction)
            }
            None => {
                if run.generation != FIRST_GENERATION
                    && !index.is_clustered()
                    && grown_multikey(self.table.resolve(run)?, &self.scan, self.keep_keys)?
                {
                    self.seen.get_or_insert_with(RecordSet::default);
                }
                self.stats.seeks += 1;
                range
            }
        };
        self.cursor = Some(IndexCursor::new(index, range, self.direction));
        Ok(())
    }

    /// Returns the next key, before the bounds are checked.
    fn next_entry(&mut self, run: &mut Run<'_>, may_pause: bool) -> Result<Option<IndexEntry>> {
        loop {
            if self.done {
                return Ok(None);
            }
            if let Some(entry) = self.page.next() {
                return Ok(Some(entry));
            }
            if may_pause {
                run.pause()?;
            } else {
                run.env.check_interrupt()?;
            }
            if self.cursor.is_none() || self.generation != run.generation {
                self.position(run)?;
                continue;
            }
            let Some(cursor) = &mut self.cursor else { return Ok(None) };
            if cursor.is_done() {
                return Ok(None);
            }
            let rows = match self.page_rows {
                // The first page of a single range has as many rows as are wanted.
                PAGE_ROWS_FIRST if !self.checks_keys && run.wanted <= PAGE_ROWS_MAX => {
                    run.wanted.max(2)
                }
                rows => rows,
            };
            let mut page = Vec::new();
            cursor.next_page(&run.view(), rows, &mut page)?;
            (self.page_len, self.near) = (page.len(), 0);
            self.page_rows = (self.page_rows * 4).min(PAGE_ROWS_MAX);
            if page.is_empty() && cursor.is_done() {
                return Ok(None);
            }
            self.page = page.into_iter();
        }
    }

    /// Returns the next entry within the bounds whose record was not returned before and whose key
    /// matches the filter.
    pub fn next_match(&mut self, run: &mut Run<'_>, may_pause: bool) -> Result<Option<IndexEntry>> {
        if self.generation != run.generation && self.cursor.is_some() {
            self.page = Vec::new().into_iter();
        }
        while let Some(entry) = self.next_entry(run, may_pause)? {
            self.stats.keys_examined += 1;
            if let Some(bounds) = &self.bounds
                && !entry.is_shortened()
            {
                match bounds.check(&entry.values).map_err(damaged)? {
                    Verdict::Valid => {}
                    Verdict::Seek(seek) => {
                        self.last.set(&entry);
                        self.seek(&seek);
                        continue;
                    }
                    Verdict::Done => {
                        self.done = true;
                        break;
                    }
                }
            }
            self.last.set(&entry);
            if let Some(seen) = &mut self.seen {
                self.stats.dups_tested += 1;
                if !seen.insert(entry.record, run.env)? {
                    self.stats.dups_dropped += 1;
                    continue;
                }
            }
            if !self.key_passes(&entry, run)? {
                if let Some(fields) = self.skipped {
                    self.skip_group(fields)?;
                }
                continue;
            }
            self.stats.returned += 1;
            return Ok(Some(entry));
        }
        self.end();
        Ok(None)
    }

    /// Notes the end of the scan.
    fn end(&mut self) {
        if !self.stats.is_eof && self.counts_end {
            self.stats.keys_examined += 1;
        }
        self.done = true;
        self.stats.is_eof = true;
    }

    fn seek(&mut self, seek: &Seek) {
        self.stats.seeks += 1;
        // A target within the current page needs no new read.
        while let Some(next) = self.page.as_slice().first() {
            if within(&self.scan, seek, &next.values) {
                self.near += 1;
                return;
            }
            self.page.next();
        }
        // If the targets are close together, pages grow as if every key was read.
        if self.near * DENSE_SHARE < self.page_len {
            self.page_rows = PAGE_ROWS_FIRST;
        }
        let range = seek_range(&self.scan, seek);
        if let Some(cursor) = &mut self.cursor {
            cursor.seek(range);
        }
    }

    fn key_passes(&mut self, entry: &IndexEntry, run: &Run<'_>) -> Result<bool> {
        let Some(filter) = &mut self.filter else { return Ok(true) };
        let doc: Bytes = Row::of_entry(&self.scan.keys, entry.clone()).doc_or_key()?;
        filter.matches(Doc::from_valid_bytes(&doc), run.scope())
    }

    /// Returns the bytes of the first `fields` fields of the last key. `None` for a shortened key, which does not show where
    /// its values end: the next one may agree with it or not.
    pub fn group(&self, fields: usize) -> Result<Option<&[u8]>> {
        if self.last.record.is_none() || self.last.is_shortened {
            return Ok(None);
        }
        let mut rest = self.last.values.as_slice();
        for field in self.scan.keys.fields().iter().take(fields) {
            rest = key::skip(rest, field.descending).map_err(damaged)?;
        }
        Ok(self.last.values.get(..self.last.values.len() - rest.len()))
    }

    /// Continues after all keys that have the same values in the first `fields` fields as the last
    /// one: this is how a DISTINCT_SCAN skips keys.
    pub fn skip_group(&mut self, fields: usize) -> Result<()> {
        let Some(bytes) = self.group(fields)?.map(<[u8]>::to_vec) else { return Ok(()) };
        self.seek(&Seek { bytes, exclusive: true });
        Ok(())
    }

    /// Returns the scan that the plan describes.
    pub fn scan(&self) -> &IndexScan {
        &self.scan
    }

    /// Returns its statistics.
    pub fn counters(&self) -> &NodeStats {
        &self.stats
    }
}

impl Operator for IndexScanOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        while out.len() < start + max {
            let may_pause = out.len() == start;
            let Some(entry) = self.next_match(run, may_pause)? else { return Ok(false) };
            if self.keep_keys {
                out.push(Row::of_entry(&self.scan.keys, entry));
            } else {
                out.push(Row { record: entry.record, doc: None, extra: None });
            }
        }
        Ok(true)
    }

    /// Counts the keys of one range a page at a time.
    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        let at_hand = !self.page.as_slice().is_empty() || self.done;
        let max = at_most(max, PASSED_KEYS_MAX);
        if !self.counts() || at_hand {
            let (mut passed, mut more) = (0, true);
            while passed < max && more {
                more = self.next_match(run, passed == 0)?.is_some();
                passed += usize::from(more);
            }
            return Ok(Passed { rows: passed as u64, more });
        }
        run.pause()?;
        if self.cursor.is_none() || self.generation != run.generation {
            self.position(run)?;
            if self.seen.is_some() || self.done {
                return Ok(Passed { rows: 0, more: true });
            }
        }
        let Some(cursor) = &mut self.cursor else { return Ok(Passed { rows: 0, more: false }) };
        let (passed, last) = cursor.pass_page(&run.view(), max)?;
        if let Some(last) = &last {
            self.last.set(last);
        }
        self.stats.keys_examined += passed as u64;
        self.stats.returned += passed as u64;
        if cursor.is_done() {
            self.end();
        }
        Ok(Passed { rows: passed as u64, more: !self.done })
    }

    fn counts(&self) -> bool {
        !self.checks_keys && self.seen.is_none() && self.filter.is_none()
    }

    /// Drops the cursor too, with the memory of its pages.
    fn rest(&mut self) {
        (self.page, self.cursor) = (Vec::new().into_iter(), None);
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}

/// Returns true if a condition has the same result for values that are equal in an index, such as 1 and 1.0, or null and
/// a missing value: it only compares.
pub(crate) fn treats_equals_alike(condition: &Condition) -> bool {
    let mut compares = condition.reads_only_paths();
    condition.visit_paths(&mut |node| compares &= matches!(node.test, Test::Compare(..)));
    compares
}

/// Returns true if the index has become multikey since the plan was made. Fails if the plan uses
/// keys instead of documents, which is no longer correct then, or if the index is gone.
pub(crate) fn grown_multikey(
    collection: &Collection,
    scan: &IndexScan,
    by_keys: bool,
) -> Result<bool> {
    let killed = |why: String| Err(Error::new(ErrorCode::QueryPlanKilled, why));
    match collection.index_by_id(scan.index.id) {
        None => killed(format!("index '{}' dropped", scan.index.name)),
        Some(index) if scan.keys.is_seen_in_views() => {
            match scan.keys.refreshed_view(&index.multikey) {
                Some(view) if scan.multikey.covers(&view.multikey) => Ok(false),
                Some(_) if !by_keys => Ok(true),
                _ => killed(format!("index '{}' has met new arrays", index.name)),
            }
        }
        Some(index) if scan.multikey.covers(&index.multikey_paths()) => Ok(false),
        Some(index) if by_keys => killed(format!("index '{}' became multikey", index.name)),
        Some(_) => Ok(true),
    }
}

pub(crate) fn seek_range(scan: &IndexScan, seek: &Seek) -> IndexRange {
    let mut after = seek.bytes.clone();
    let open = !quire_document::key::successor(&mut after);
    match (scan.backward, seek.exclusive) {
        (false, false) => IndexRange::of_encoded(&scan.index, &seek.bytes, &[]),
        (false, true) => {
            IndexRange::of_encoded(&scan.index, if open { &[0xff] } else { &after }, &[])
        }
        (true, false) => IndexRange::of_encoded(&scan.index, &[], if open { &[] } else { &after }),
        (true, true) => IndexRange::of_encoded(&scan.index, &[], &seek.bytes),
    }
}

/// Returns true if a key is at or after the target of a seek.
fn within(scan: &IndexScan, seek: &Seek, values: &[u8]) -> bool {
    let begins = values.starts_with(&seek.bytes);
    match (scan.backward, seek.exclusive) {
        (false, false) => values >= seek.bytes.as_slice(),
        (false, true) => values > seek.bytes.as_slice() && !begins,
        (true, false) => values <= seek.bytes.as_slice() || begins,
        (true, true) => values < seek.bytes.as_slice(),
    }
}

/// Returns the single range that a scan visits.
pub(crate) fn whole_range(scan: &IndexScan) -> IndexRange {
    if let Some(range) = &scan.range {
        let values = |doc: &Option<quire_document::DocBuf>| -> Vec<quire_document::ValueBuf> {
            doc.as_ref().map_or(Vec::new(), |doc| {
                doc.as_doc().fields().map(|(_, value)| scan.keys.key_value(value)).collect()
            })
        };
        let (start, end) = (values(&range.start), values(&range.end));
        let start: Vec<Value<'_>> = start.iter().map(|value| value.as_value()).collect();
        let end: Vec<Value<'_>> = end.iter().map(|value| value.as_value()).collect();
        return IndexRange::new(&scan.index, &start, true, &end, false);
    }
    let (mut start, mut end) = (Vec::new(), Vec::new());
    let (mut start_in, mut end_in) = (true, true);
    for (field, intervals) in scan.keys.fields().iter().zip(&scan.bounds) {
        let Some(interval) = intervals.0.first() else { break };
        let (first, first_in, last, last_in) = ends(interval, field.descending);
        let outermost = |value: Value<'_>, low: bool| match value {
            Value::MinKey => low,
            Value::MaxKey => !low,
            _ => false,
        };
        if !(first_in && outermost(first, !field.descending)) {
            start.push(first);
            start_in = first_in;
        }
        if !(last_in && outermost(last, field.descending)) {
            end.push(last);
            end_in = last_in;
        }
        if !interval.is_point() {
            break;
        }
    }
    IndexRange::new(&scan.index, &start, start_in, &end, end_in)
}

/// Returns the ends of an interval in index order.
fn ends(interval: &Interval, descending: bool) -> (Value<'_>, bool, Value<'_>, bool) {
    let low = (interval.low.as_value(), interval.low_inclusive);
    let high = (interval.high.as_value(), interval.high_inclusive);
    let (first, last) = if descending { (high, low) } else { (low, high) };
    (first.0, first.1, last.0, last.1)
}

/// Returns the error of a key that cannot be split into values.
fn damaged(_: KeyError) -> Error {
    Error::new(ErrorCode::DataCorruptionDetected, "stored data is damaged: an index key")
}
