//! COLLSCAN: all documents in record order, read by several threads if the scan is long.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{CollectionCursor, Record, RecordId};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::explain::NodeStats;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::operators::projection::Shaper;
use crate::operators::{BATCH_BYTES, Operator, Passed, at_most, make_and_drop};
use crate::row::Row;
use crate::scans::scan_pieces::{ExaminedDocs, Found, Kept, Piece};
use crate::scans::split_scan::{Splitter, Step, Stretch};
use crate::scans::tail_scan::position_lost;
use crate::table::Table;
use crate::taking::{Given, Taker};

/// The rows of the first page; later pages are larger.
const PAGE_ROWS_FIRST: usize = 16;
/// The rows of the largest page.
const PAGE_ROWS_MAX: usize = 1024;
/// The rows skipped between two checks of the interrupt.
const PASSED_ROWS_MAX: usize = 4096;
/// The bytes of a page.
const PAGE_BYTES: usize = 1 << 20;

/// A scan of a collection.
pub(crate) struct CollectionScan {
    table: Table,
    direction: Direction,
    filter: Option<Matcher>,
    shaper: Option<Shaper>,
    cursor: Option<CollectionCursor>,
    page: std::vec::IntoIter<Record>,
    page_rows: usize,
    /// The rows that several threads have read.
    stretch: Option<Stretch>,
    splitter: Splitter,
    last: Option<RecordId>,
    generation: u64,
    stats: NodeStats,
}

impl CollectionScan {
    pub fn new(collection: &Arc<Collection>, backward: bool, filter: Option<Filter>) -> Self {
        CollectionScan {
            table: Table::new(collection),
            direction: if backward { Direction::Reverse } else { Direction::Forward },
            filter: filter.map(Matcher::new),
            shaper: None,
            cursor: None,
            page: Vec::new().into_iter(),
            page_rows: PAGE_ROWS_FIRST,
            stretch: None,
            splitter: Splitter::new(),
            last: None,
            generation: 0,
            stats: NodeStats::default(),
        }
    }

    /// Returns a scan that projects each document.
    pub fn shaping(self, shaper: Shaper) -> ShapingScan {
        ShapingScan(CollectionScan { shaper: Some(shaper), ..self })
    }

    /// Returns the scan as an operator that also counts for a projection above it that is not run.
    pub fn unshaped(self) -> ShapingScan {
        ShapingScan(self)
    }

    /// Reads the next page or stretch. Returns false at the end.
    fn fill(&mut self, run: &mut Run<'_>, wanted: usize) -> Result<bool> {
        run.pause()?;
        self.check_place(run)?;
        let long = self.is_long(run);
        let collection = self.table.resolve(run)?;
        if let Some(last) = self.last
            && long
        {
            let filter = self.filter.as_ref().map(Matcher::filter);
            let projection = self.shaper.as_ref().map(Shaper::projection);
            let kept = Kept { filter, projection, taker: None };
            self.stretch = self.splitter.read(run, collection, kept, after(last))?;
            if self.stretch.is_some() {
                (self.cursor, self.generation) = (None, run.generation);
                return Ok(true);
            }
        }
        self.position(run)?;
        let collection = self.table.resolve(run)?;
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        if cursor.is_done() {
            return Ok(false);
        }
        let rows =
            self.page_rows.max(if self.filter.is_none() { wanted.min(PAGE_ROWS_MAX) } else { 0 });
        self.page_rows = (self.page_rows * 4).min(PAGE_ROWS_MAX);
        let mut page = Vec::new();
        cursor.next_page(&run.view(), collection, rows, PAGE_BYTES, &mut page)?;
        let any = !page.is_empty();
        self.page = page.into_iter();
        Ok(any)
    }

    /// Fails if the scan of a capped collection cannot continue on a newer view, because its last
    /// record was deleted and with it perhaps the next ones.
    fn check_place(&mut self, run: &Run<'_>) -> Result<()> {
        let Some(last) = self.last.filter(|_| self.generation != run.generation) else {
            return Ok(());
        };
        let collection = self.table.resolve(run)?;
        if collection.options.capped().is_none() || run.of_write {
            return Ok(());
        }
        match run.view().get(collection, last)? {
            Some(_) => Ok(()),
            None => Err(position_lost(last, false)),
        }
    }

    /// Makes sure that the cursor is positioned after the last record, for the current view.
    fn position(&mut self, run: &Run<'_>) -> Result<()> {
        if self.cursor.is_some() && self.generation == run.generation {
            return Ok(());
        }
        self.generation = run.generation;
        let collection = self.table.resolve(run)?;
        let after = match (self.last, self.direction) {
            (None, _) => (None, None),
            (Some(last), Direction::Forward) => (Some(after(last)), None),
            (Some(last), Direction::Reverse) => (None, Some(RecordId(last.0.saturating_sub(1)))),
        };
        self.cursor = Some(match after {
            (None, None) => CollectionCursor::new(collection, self.direction),
            (from, to) => CollectionCursor::between(collection, self.direction, from, to),
        });
        Ok(())
    }

    /// Returns true if several threads should continue: the scan is long, and judging by the rows
    /// so far as many rows are wanted as a stretch has.
    fn is_long(&self, run: &Run<'_>) -> bool {
        let (examined, returned) = (self.stats.docs_examined, self.stats.returned);
        let given = returned.saturating_mul(Splitter::stretch_rows(run)) / examined.max(1);
        examined >= run.env.params.long_scan_docs
            && self.direction == Direction::Forward
            && given <= run.wanted as u64
    }

    /// Returns rows that are left of a stretch. Returns false if there are none.
    fn take_stretch(&mut self, limit: usize, out: &mut Vec<Row>) -> Result<bool> {
        let Some(stretch) = &mut self.stretch else { return Ok(false) };
        while out.len() < limit {
            match stretch.next()? {
                Step::Row(row, examined) => {
                    count(&mut self.stats, examined);
                    self.stats.returned += 1;
                    self.last = Some(row.record);
                    out.push(row);
                }
                Step::Nothing(end, examined) => {
                    count(&mut self.stats, examined);
                    self.last = Some(end);
                }
                Step::End => {
                    self.stretch = None;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

fn count(stats: &mut NodeStats, examined: ExaminedDocs) {
    stats.docs_examined += examined.docs;
    stats.bytes_read += examined.bytes;
}

/// Returns the next record id.
fn after(id: RecordId) -> RecordId {
    RecordId(id.0.saturating_add(1))
}

impl Operator for CollectionScan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let limit = out.len() + max;
        let (mut begun, mut made) = (false, 0);
        if self.generation != run.generation {
            self.rest();
        }
        while out.len() < limit {
            if self.take_stretch(limit, out)? {
                return Ok(true);
            }
            let Some(record) = self.page.next() else {
                if begun && !out.is_empty() {
                    return Ok(true);
                }
                begun = true;
                if !self.fill(run, limit - out.len())? {
                    self.stats.is_eof = true;
                    return Ok(false);
                }
                continue;
            };
            self.stats.docs_examined += 1;
            self.stats.bytes_read += record.doc.as_doc().len() as u64;
            self.last = Some(record.id);
            if let Some(filter) = &mut self.filter
                && !filter.matches(record.doc.as_doc(), run.scope())?
            {
                continue;
            }
            self.stats.returned += 1;
            let doc = match &mut self.shaper {
                Some(shaper) => {
                    let doc = shaper.shape(record.doc.as_doc(), run.scope())?;
                    made += doc.len();
                    doc
                }
                None => record.doc.into_bytes(),
            };
            out.push(Row::of_document(record.id, doc));
            // The page limits the bytes that are read; projected documents may be much larger.
            if made >= BATCH_BYTES {
                break;
            }
        }
        Ok(true)
    }

    fn feed(
        &mut self,
        run: &mut Run<'_>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        while let Some(last) = self.last
            && self.is_long(run)
        {
            run.pause()?;
            let filter = self.filter.as_ref().map(Matcher::filter);
            let projection = self.shaper.as_ref().map(Shaper::projection);
            let kept = Kept { filter, projection, taker: Some(taker) };
            let (stats, end) = (&mut self.stats, &mut self.last);
            let mut take = |piece: Piece| {
                count(stats, piece.examined);
                stats.returned += piece.passed;
                *end = Some(piece.end);
                give(match piece.taken {
                    Some(taken) => Given::Taken(taken),
                    None => Given::Rows(piece.rows.map(Found::into_row).collect()),
                })?;
                piece.failed.map_or(Ok(()), Err)
            };
            let (collection, from) = (self.table.resolve(run)?, after(last));
            if !self.splitter.feed(run, collection, kept, from, &mut take)? {
                break;
            }
            self.rest();
            self.generation = run.generation;
        }
        Ok(())
    }

    /// Reads no documents if there is no filter.
    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        if self.generation != run.generation {
            self.rest();
        }
        let at_hand = self.stretch.is_some() || !self.page.as_slice().is_empty();
        if self.filter.is_some() || at_hand {
            return make_and_drop(self, run, max);
        }
        run.pause()?;
        self.check_place(run)?;
        self.position(run)?;
        let Some(cursor) = &mut self.cursor else { return Ok(Passed { rows: 0, more: false }) };
        let (passed, last) = cursor.pass_page(
            &run.view(),
            self.table.resolve(run)?,
            at_most(max, PASSED_ROWS_MAX),
        )?;
        self.last = last.or(self.last);
        self.stats.docs_examined += passed as u64;
        self.stats.returned += passed as u64;
        self.stats.is_eof = cursor.is_done();
        Ok(Passed { rows: passed as u64, more: !cursor.is_done() })
    }

    fn counts(&self) -> bool {
        self.filter.is_none()
    }

    /// Drops the cursor too, with the memory of its pages.
    fn rest(&mut self) {
        (self.page, self.stretch, self.cursor) = (Vec::new().into_iter(), None, None);
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}

/// A scan of a collection with a projection.
pub(crate) struct ShapingScan(CollectionScan);

impl Operator for ShapingScan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        self.0.next(run, max, out)
    }

    fn feed(
        &mut self,
        run: &mut Run<'_>,
        taker: &dyn Taker,
        give: &mut dyn FnMut(Given) -> Result<()>,
    ) -> Result<()> {
        self.0.feed(run, taker, give)
    }

    fn rest(&mut self) {
        self.0.rest();
    }

    fn stats(&self) -> NodeStats {
        let scan = self.0.stats();
        let (returned, is_eof) = (scan.returned, scan.is_eof);
        NodeStats { returned, is_eof, inputs: vec![scan], ..NodeStats::default() }
    }
}
