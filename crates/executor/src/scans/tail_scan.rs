//! COLLSCAN of a tailable cursor: the documents of a capped collection in the order of insertion,
//! then those that are inserted later.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{CollectionCursor, Record, RecordId};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::filter::Filter;
use quire_planner::explain::NodeStats;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::Operator;
use crate::operators::filtering::Matcher;
use crate::row::Row;
use crate::table::Table;

/// The rows of the first page; later pages are larger.
const PAGE_ROWS_FIRST: usize = 16;
/// The rows of the largest page.
const PAGE_ROWS_MAX: usize = 1024;
/// The bytes of a page.
const PAGE_BYTES: usize = 1 << 20;

/// A scan that has no end, unless the collection was empty when it began.
pub(crate) struct TailScan {
    /// The collection as it was when the cursor was opened.
    opened: Arc<Collection>,
    table: Table,
    filter: Option<Matcher>,
    page: std::vec::IntoIter<Record>,
    page_rows: usize,
    /// The last record that was read, also if the filter refused it.
    last: Option<RecordId>,
    /// True if `last` was the newest record.
    at_end: bool,
    stats: NodeStats,
}

/// The result of reading a page.
enum Filled {
    Rows,
    /// No document that is settled follows in the current view.
    NothingYet,
    /// The collection is empty, and no document has been read.
    Dead,
}

impl TailScan {
    pub fn new(collection: &Arc<Collection>, filter: Option<Filter>) -> Self {
        TailScan {
            opened: Arc::clone(collection),
            table: Table::new(collection),
            filter: filter.map(Matcher::new),
            page: Vec::new().into_iter(),
            page_rows: PAGE_ROWS_FIRST,
            last: None,
            at_end: false,
            stats: NodeStats::default(),
        }
    }

    /// Reads the next page on a new view. Stops before the first record id of an unfinished writer,
    /// because a later page begins after the last record that was read.
    fn fill(&mut self, run: &mut Run<'_>) -> Result<Filled> {
        let bound = run.settle(&self.opened)?;
        let collection = Arc::clone(self.table.resolve(run)?);
        check_name(&self.opened, &collection)?;
        let view = run.view();
        if let Some(last) = self.last
            && view.get(&collection, last)?.is_none()
        {
            return Err(position_lost(last, self.at_end));
        }
        let from = match self.last {
            Some(last) => RecordId(last.0.saturating_add(1)),
            None => RecordId(view.record_ids(&collection)?.start),
        };
        let mut page = Vec::new();
        if from < bound {
            let to = Some(RecordId(bound.0 - 1));
            let mut cursor =
                CollectionCursor::between(&collection, Direction::Forward, Some(from), to);
            cursor.next_page(&view, &collection, self.page_rows, PAGE_BYTES, &mut page)?;
        }
        self.page_rows = (self.page_rows * 4).min(PAGE_ROWS_MAX);
        self.at_end = page.is_empty();
        if !page.is_empty() {
            self.page = page.into_iter();
            return Ok(Filled::Rows);
        }
        if self.last.is_none() {
            let mut cursor = CollectionCursor::new(&collection, Direction::Forward);
            cursor.next_page(&view, &collection, 1, PAGE_BYTES, &mut page)?;
            if page.is_empty() {
                return Ok(Filled::Dead);
            }
        }
        run.nothing_yet = Some(run.view().version());
        Ok(Filled::NothingYet)
    }
}

/// Fails with 175 QueryPlanKilled if the collection was renamed.
fn check_name(before: &Collection, now: &Collection) -> Result<()> {
    if before.namespace == now.namespace {
        return Ok(());
    }
    let (from, to) = (&before.namespace, &now.namespace);
    let text = format!("collection renamed from '{from}' to '{to}'. UUID {}", now.uuid);
    Err(Error::new(ErrorCode::QueryPlanKilled, text))
}

/// Returns the error of a scan whose last record was deleted: documents between that record and the
/// oldest one may be missing. `at_end` is true for a cursor that waited behind the newest record.
pub(crate) fn position_lost(last: RecordId, at_end: bool) -> Error {
    let why = match at_end {
        true => "failure to restore tailable cursor position",
        false => "position in capped collection being deleted",
    };
    let text = format!("CollectionScan died due to {why}. Last seen record id: RecordId({last})");
    Error::new(ErrorCode::CappedPositionLost, text)
}

impl Operator for TailScan {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let limit = out.len() + max;
        let mut begun = false;
        while out.len() < limit {
            let Some(record) = self.page.next() else {
                if begun && !out.is_empty() {
                    return Ok(true);
                }
                begun = true;
                match self.fill(run)? {
                    Filled::Rows => continue,
                    Filled::NothingYet => return Ok(true),
                    Filled::Dead => {
                        (self.stats.is_eof, run.has_ended) = (true, true);
                        return Ok(false);
                    }
                }
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
            out.push(Row::of_document(record.id, record.doc.into_bytes()));
        }
        Ok(true)
    }

    fn rest(&mut self) {
        self.page = Vec::new().into_iter();
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}
