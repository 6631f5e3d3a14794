//! Scans a collection in the order of record ids, page by page. A cursor holds only bytes, so it
//! can continue on any later view.

use std::ops::ControlFlow;

use bytes::Bytes;
use quire_catalog::Collection;
use quire_error::Result;
use quire_storage::{Direction, Page, ScanRequest, Space, VisitedRow};

use crate::failure::from_storage;
use crate::layout::{collection_end, doc_key, record_id_of};
use crate::{Record, RecordId, StoredDoc, View, VisitedDoc};

/// A scan of a collection. It returns records that exist during the whole scan exactly once.
#[derive(Debug)]
pub struct CollectionCursor {
    range: Rest,
    /// True if a forward scan begins at the start of the collection, so that it may use the
    /// low-water mark.
    from_head: bool,
    done: bool,
    page: Page,
}

/// The keys that a scan has not read yet.
#[derive(Debug)]
struct Rest {
    direction: Direction,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl Rest {
    /// Returns the request for the next page.
    fn request(&self, rows_max: usize, bytes_max: usize) -> ScanRequest<'_> {
        ScanRequest {
            space: Space::Doc,
            start: &self.start,
            end: &self.end,
            direction: self.direction,
            keys_only: false,
            rows_max: rows_max.max(1),
            bytes_max,
        }
    }
}

impl CollectionCursor {
    /// Returns a cursor over the whole collection.
    pub fn new(collection: &Collection, direction: Direction) -> Self {
        CollectionCursor {
            range: Rest {
                direction,
                start: collection.id.to_bytes().to_vec(),
                end: collection_end(collection.id),
            },
            from_head: direction == Direction::Forward,
            done: false,
            page: Page::default(),
        }
    }

    /// Returns a cursor over the records in `[from, to]`, in either direction.
    pub fn between(
        collection: &Collection,
        direction: Direction,
        from: Option<RecordId>,
        to: Option<RecordId>,
    ) -> Self {
        let mut cursor = Self::new(collection, direction);
        if let Some(from) = from {
            cursor.range.start = doc_key(collection.id, from).to_vec();
            cursor.from_head = false;
        }
        if let Some(to) = to
            && to < RecordId::MAX
        {
            cursor.range.end = doc_key(collection.id, RecordId(to.0 + 1)).to_vec();
        }
        cursor
    }

    /// Appends the next records to `out`: at most `rows_max`, and none after the bytes reach
    /// `bytes_max`. Returns false if there are no more.
    pub fn next_page(
        &mut self,
        view: &View<'_>,
        collection: &Collection,
        rows_max: usize,
        bytes_max: usize,
        out: &mut Vec<Record>,
    ) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let from_head = self.start_at_low_water(view, collection);
        let request = self.range.request(rows_max, bytes_max);
        view.snapshot().scan(&request, &mut self.page).map_err(from_storage)?;
        if from_head {
            view.saw_first(collection, self.page.rows.first().map(|(key, _)| &key[..]))?;
        }
        self.move_past_page();
        out.reserve(self.page.rows.len());
        for (key, value) in self.page.rows.drain(..) {
            out.push(Record { id: record_id_of(&key)?, doc: StoredDoc::decode(value)? });
        }
        Ok(!self.done)
    }

    /// Calls `visitor` for the records that [`next_page`](Self::next_page) would append, without a
    /// copy or a reference count for each. The visitor ends the page with `Break` or an error.
    /// Returns false if there are no more.
    pub fn visit_page(
        &mut self,
        view: &View<'_>,
        collection: &Collection,
        rows_max: usize,
        bytes_max: usize,
        visitor: &mut dyn FnMut(VisitedDoc<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let from_head = self.start_at_low_water(view, collection);
        let request = self.range.request(rows_max, bytes_max);
        let (mut first, mut failed) = (None, None);
        let mut visit = |row: &VisitedRow<'_>| {
            if from_head && first.is_none() {
                first = Some(Bytes::copy_from_slice(row.key));
            }
            let next = VisitedDoc::decode(*row).and_then(&mut *visitor);
            next.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let resume = view.snapshot().visit(&request, &mut visit).map_err(from_storage)?;
        if let Some(error) = failed {
            return Err(error);
        }
        if from_head {
            view.saw_first(collection, first.as_deref())?;
        }
        self.move_to(resume);
        Ok(!self.done)
    }

    /// Skips the next records, at most `rows_max`, without reading their documents. Returns their
    /// number and the id of the last one.
    pub fn pass_page(
        &mut self,
        view: &View<'_>,
        collection: &Collection,
        rows_max: usize,
    ) -> Result<(usize, Option<RecordId>)> {
        if self.done {
            return Ok((0, None));
        }
        self.start_at_low_water(view, collection);
        let request = self.range.request(rows_max, usize::MAX).keys_only();
        let passed = view.snapshot().pass(&request, &mut self.page).map_err(from_storage)?;
        self.move_past_page();
        let last = self.page.rows.pop();
        Ok((passed, last.map(|(key, _)| record_id_of(&key)).transpose()?))
    }

    /// Lets the first page of a scan of the whole collection begin at the low-water mark. Returns
    /// true if this is the first page of such a scan.
    fn start_at_low_water(&mut self, view: &View<'_>, collection: &Collection) -> bool {
        let from_head = std::mem::take(&mut self.from_head);
        if from_head {
            let low = view.low_water(collection);
            if low.0 > 0 {
                self.range.start = doc_key(collection.id, low).to_vec();
            }
        }
        from_head
    }

    fn move_past_page(&mut self) {
        let resume = self.page.resume.take();
        self.move_to(resume);
    }

    fn move_to(&mut self, resume: Option<Bytes>) {
        match (resume, self.range.direction) {
            (None, _) => self.done = true,
            (Some(resume), Direction::Forward) => self.range.start = resume.into(),
            (Some(resume), Direction::Reverse) => self.range.end = resume.into(),
        }
    }

    /// Returns true after the end of the scan.
    pub fn is_done(&self) -> bool {
        self.done
    }
}
