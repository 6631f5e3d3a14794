//! The work of one thread of a split scan. A piece is a range of record ids that only one thread
//! reads. Of each piece the thread keeps the rows that match the filter, or what the stage above
//! takes of them.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec;

use bytes::Bytes;
use parking_lot::Mutex;
use quire_catalog::Collection;
use quire_collections::{CollectionCursor, RecordId, View, VisitedDoc};
use quire_document::Doc;
use quire_error::{Error, Result};
use quire_mql::filter::Filter;
use quire_mql::projection::Projection;
use quire_storage::Direction;

use crate::env::{Run, Scope};
use crate::operators::filtering::Matcher;
use crate::operators::projection::Shaper;
use crate::row::Row;
use crate::taking::{Documents, Scratch, Taken, Taker};

/// The kept bytes at which a piece ends early.
const PIECE_BYTES: usize = 1 << 20;

/// The parts of a scan's plan that decide which documents and fields are kept.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'k> {
    /// The filter of the scan.
    pub filter: Option<&'k Arc<Filter>>,
    /// The projection of the matching documents.
    pub projection: Option<&'k Arc<Projection>>,
    /// The stage above, if it reads its whole input.
    pub taker: Option<&'k dyn Taker>,
}

/// The pieces of a collection, shared by the threads that read them.
pub(crate) struct Pieces<'t> {
    view: View<'t>,
    scope: Scope<'t>,
    collection: &'t Collection,
    kept: Kept<'t>,
    from: RecordId,
    bound: RecordId,
    width: u64,
    count: usize,
    /// The number of pieces that threads have taken.
    taken: AtomicUsize,
    rows_left: Budget,
    bytes_left: Budget,
    /// The pieces that were read and not yet passed on.
    done: Mutex<BTreeMap<usize, Piece>>,
}

/// A number of rows or bytes that all threads together may still keep.
struct Budget(AtomicUsize);

impl Budget {
    fn new(all: usize) -> Self {
        Budget(AtomicUsize::new(all))
    }

    /// Subtracts an amount. Returns true if nothing is left.
    fn spend(&self, amount: usize) -> bool {
        let rest = |left: usize| Some(left.saturating_sub(amount));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.is_ok_and(|left| left <= amount)
    }
}

/// The result of reading a piece.
pub(crate) struct Piece {
    pub rows: vec::IntoIter<Found>,
    /// What the stage above takes of the documents; there are no rows then.
    pub taken: Option<Taken>,
    /// The examined documents, and those of them that came after the last row.
    pub examined: ExaminedDocs,
    pub tail: ExaminedDocs,
    /// The number of documents that matched.
    pub passed: u64,
    /// The bytes of memory that its rows may keep.
    bytes: usize,
    /// The last record id that it covers.
    pub end: RecordId,
    /// True if it was read to its end.
    pub whole: bool,
    /// The error that ended it, after the rows.
    pub failed: Option<Error>,
}

/// A document that matches the filter.
pub(crate) struct Found {
    id: RecordId,
    doc: Bytes,
    /// The documents examined since the previous match in the piece, including this one.
    pub examined: ExaminedDocs,
}

/// Documents that were examined: their number, and their bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct ExaminedDocs {
    pub docs: u64,
    pub bytes: u64,
}

impl ExaminedDocs {
    fn add(&mut self, doc: Doc<'_>) {
        self.docs += 1;
        self.bytes += doc.len() as u64;
    }
}

impl Found {
    pub fn into_row(self) -> Row {
        Row::of_document(self.id, self.doc)
    }
}

/// Buffers that a thread reuses for each piece.
struct Worker {
    matcher: Option<Matcher>,
    shaper: Option<Shaper>,
    scratch: Scratch,
}

impl<'t> Pieces<'t> {
    /// Returns `count` pieces of `width` record ids each, up to the end of `range`. All of them end
    /// when `bytes_max` bytes are kept.
    pub fn new(
        run: &'t Run<'_>,
        collection: &'t Collection,
        kept: Kept<'t>,
        range: Range<RecordId>,
        (count, width, bytes_max): (usize, u64, usize),
    ) -> Self {
        Pieces {
            view: run.view(),
            scope: run.scope(),
            collection,
            kept,
            from: range.start,
            bound: range.end,
            width,
            count,
            taken: AtomicUsize::new(0),
            rows_left: Budget::new(run.wanted),
            bytes_left: Budget::new(bytes_max),
            done: Mutex::default(),
        }
    }

    /// Returns the pieces that were read and not yet passed on, by number.
    pub fn done(&self) -> &Mutex<BTreeMap<usize, Piece>> {
        &self.done
    }
}

impl Pieces<'_> {
    /// Reads pieces until none are left, and calls `after` after each of them.
    pub fn work(&self, mut after: impl FnMut() -> Result<()>) -> Result<()> {
        let matcher = self.kept.filter.cloned().map(Matcher::sharing);
        let shaper = self.kept.projection.cloned().map(Shaper::sharing);
        let mut worker = Worker { matcher, shaper, scratch: Scratch::default() };
        loop {
            let at = self.taken.fetch_add(1, Ordering::Relaxed);
            let from = self.from.0.saturating_add((at as u64).saturating_mul(self.width));
            if at >= self.count || from >= self.bound.0 {
                return Ok(());
            }
            let to = from.saturating_add(self.width - 1).min(self.bound.0 - 1);
            let piece = self.read(&mut worker, RecordId(from), RecordId(to));
            if piece.failed.is_some() || !piece.whole || self.is_enough(&piece) {
                self.end();
            }
            self.done.lock().insert(at, piece);
            after().inspect_err(|_| self.end())?;
        }
    }

    /// Notes that the following rows are not needed.
    fn end(&self) {
        self.taken.fetch_max(self.count, Ordering::Relaxed);
    }

    /// Returns true if as much was found as may be kept.
    fn is_enough(&self, piece: &Piece) -> bool {
        let rows = piece.rows.len();
        let bytes = match &piece.taken {
            Some(taken) => taken.size(),
            None if rows > 0 => piece.bytes,
            None => 0,
        };
        let rows = self.rows_left.spend(rows);
        self.bytes_left.spend(bytes) || rows
    }

    fn read(&self, worker: &mut Worker, from: RecordId, to: RecordId) -> Piece {
        let mut piece = Piece {
            rows: Vec::new().into_iter(),
            taken: None,
            examined: ExaminedDocs::default(),
            tail: ExaminedDocs::default(),
            passed: 0,
            bytes: 0,
            end: to,
            whole: true,
            failed: None,
        };
        let mut rows = Vec::new();
        let taken = self.scope.env.interruptible(|| {
            self.fill(&mut piece, worker, from, &mut rows)?;
            Ok(self.take(&rows, &mut worker.scratch))
        });
        match taken {
            Ok(taken) => piece.taken = taken,
            Err(error) => piece.failed = Some(error),
        }
        piece.passed = rows.len() as u64;
        if piece.taken.is_none() {
            piece.rows = rows.into_iter();
        }
        piece
    }

    fn fill(
        &self,
        piece: &mut Piece,
        worker: &mut Worker,
        from: RecordId,
        rows: &mut Vec<Found>,
    ) -> Result<()> {
        let scope = self.scope;
        scope.env.check_interrupt()?;
        let to = piece.end;
        let mut cursor =
            CollectionCursor::between(self.collection, Direction::Forward, Some(from), Some(to));
        let rows_max = usize::try_from(self.width).unwrap_or(usize::MAX).min(4096);
        let Worker { matcher, shaper, .. } = worker;
        let mut last = from;
        let mut visit = |record: VisitedDoc<'_>| {
            piece.tail.add(record.doc);
            piece.examined.add(record.doc);
            last = record.id;
            // A row that no projection has copied may keep a whole block of the engine in memory.
            if shaper.is_none() {
                piece.bytes += record.doc.len();
            }
            if let Some(matcher) = matcher
                && !matcher.matches(record.doc, scope)?
            {
                return Ok(ControlFlow::Continue(()));
            }
            let doc = match shaper {
                Some(shaper) => {
                    let doc = shaper.shape(record.doc, scope)?;
                    piece.bytes += size_of::<Found>() + doc.len();
                    doc
                }
                None => record.to_bytes(),
            };
            let examined = std::mem::take(&mut piece.tail);
            rows.push(Found { id: record.id, doc, examined });
            // The page limits the bytes that are read; projected documents may be much larger.
            if piece.bytes > PIECE_BYTES && shaper.is_some() && record.id < to {
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        };
        let (view, collection) = (&self.view, self.collection);
        piece.whole = !cursor.visit_page(view, collection, rows_max, PIECE_BYTES, &mut visit)?;
        if !piece.whole {
            piece.end = last;
        }
        Ok(())
    }

    /// Returns what the stage above takes of the documents, if it takes them in one batch.
    fn take(&self, rows: &[Found], scratch: &mut Scratch) -> Option<Taken> {
        let taker = self.kept.taker.filter(|_| !rows.is_empty())?;
        let docs: Vec<Doc<'_>> = rows.iter().map(|row| Doc::from_valid_bytes(&row.doc)).collect();
        let record = |at: usize| rows.get(at).map_or(RecordId(0), |row| row.id);
        taker.take(&Documents { docs: &docs, record: &record }, scratch, self.scope)
    }
}
