//! A long collection scan, by several threads if they are free. A stretch of record ids is divided into pieces. Each
//! thread reads and filters the next free piece. The results are returned in order, with the number
//! of examined documents, as if one thread had read everything. For a stage that reads its whole input the
//! threads also compute what it takes of each document.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use quire_catalog::Collection;
use quire_collections::{Helpers, RecordId};
use quire_error::Result;

use crate::env::Run;
use crate::row::Row;
use crate::scans::scan_pieces::{ExaminedDocs, Kept, Piece, Pieces};

/// The intended number of rows of a piece: their blocks fit into the cache of one core.
const PIECE_ROWS: u64 = 512;
/// The pieces of a stretch for each thread. At the end of a stretch the threads wait for each
/// other.
const PIECES_EACH: usize = 64;
/// The pieces of the shortest worthwhile stretch for each thread.
const PIECES_EACH_MIN: usize = 8;
/// The kept bytes of a stretch, for each thread, at which it ends early.
const KEPT_BYTES_EACH: usize = 8 << 20;
/// The same of a stretch that a thread reads alone. Any number of operations may do so at once, so
/// each keeps as little as a page of a scan.
const PIECES_ALONE: usize = 4;
const KEPT_BYTES_ALONE: usize = 1 << 20;

/// The results of a stretch of record ids.
pub(crate) struct Stretch(VecDeque<Piece>);

/// The next result of a stretch, with the documents that were examined for it.
pub(crate) enum Step {
    Row(Row, ExaminedDocs),
    /// No match up to this record id.
    Nothing(RecordId, ExaminedDocs),
    End,
}

impl Stretch {
    /// Returns the next result.
    ///
    /// # Errors
    /// The error that ended the stretch.
    pub fn next(&mut self) -> Result<Step> {
        let Some(piece) = self.0.front_mut() else { return Ok(Step::End) };
        if let Some(found) = piece.rows.next() {
            let examined = found.examined;
            return Ok(Step::Row(found.into_row(), examined));
        }
        // The document that failed is counted before its error is returned.
        let (end, tail) = (piece.end, std::mem::take(&mut piece.tail));
        if tail.docs == 0
            && let Some(error) = piece.failed.take()
        {
            return Err(error);
        }
        if piece.failed.is_none() {
            self.0.pop_front();
        }
        Ok(Step::Nothing(end, tail))
    }
}

/// Divides the record ids ahead into pieces.
pub(crate) struct Splitter {
    /// The record ids of a piece: more than its rows if many records were deleted.
    width: u64,
}

impl Splitter {
    pub fn new() -> Self {
        Splitter { width: PIECE_ROWS }
    }

    /// Returns the approximate number of documents of the shortest stretch.
    pub fn stretch_rows(run: &Run<'_>) -> u64 {
        run.env.params.threads_max.saturating_mul(PIECES_EACH_MIN) as u64 * PIECE_ROWS
    }

    /// Reads a stretch that begins at a record id, alone if no other thread is free. `None` if little
    /// is left of the collection.
    pub fn read(
        &mut self,
        run: &Run<'_>,
        collection: &Collection,
        kept: Kept<'_>,
        from: RecordId,
    ) -> Result<Option<Stretch>> {
        let mut stretch = VecDeque::new();
        let any = self.feed(run, collection, kept, from, &mut |piece| {
            stretch.push_back(piece);
            Ok(())
        })?;
        Ok(any.then_some(Stretch(stretch)))
    }

    /// Reads a stretch as [`read`](Self::read) does, but passes each piece to `take` while the
    /// threads go on reading: in order, up to the first piece that is not whole. Returns false if
    /// nothing was read.
    pub fn feed(
        &mut self,
        run: &Run<'_>,
        collection: &Collection,
        kept: Kept<'_>,
        from: RecordId,
        take: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<bool> {
        let bound = run.view().record_id_bound(collection)?;
        if bound.0.saturating_sub(from.0) < 2 * self.width {
            return Ok(false);
        }
        let helpers = Helpers::acquire(run.env.params.threads_max.saturating_sub(1));
        let (pieces, bytes) = match helpers.count() {
            0 => (PIECES_ALONE, KEPT_BYTES_ALONE),
            helpers => ((helpers + 1) * PIECES_EACH, (helpers + 1) * KEPT_BYTES_EACH),
        };
        let size = (pieces, self.width, bytes);
        let pieces = Pieces::new(run, collection, kept, from..bound, size);
        let mut queue = Queue { pieces: 0, examined: 0, whole: true, ended: false, take };
        // The error of a helper is in its piece.
        let help = || drop(pieces.work(|| Ok(())));
        helpers.run("scan", help, || pieces.work(|| queue.advance(pieces.done())))?;
        queue.advance(pieces.done())?;
        self.adapt(&queue);
        Ok(true)
    }

    /// Adapts the width of the next pieces so that they have the intended number of rows.
    fn adapt(&mut self, read: &Queue<'_>) {
        if !read.whole {
            self.width = (self.width / 2).max(1);
        } else if read.examined < read.pieces as u64 * PIECE_ROWS / 2 {
            self.width = self.width.saturating_mul(2).min(1 << 40);
        }
    }
}

/// Puts pieces into order.
struct Queue<'q> {
    /// How many were passed on, the documents examined for them, and whether the last one was
    /// whole.
    pieces: usize,
    examined: u64,
    whole: bool,
    /// True if later pieces are not needed.
    ended: bool,
    take: &'q mut dyn FnMut(Piece) -> Result<()>,
}

impl Queue<'_> {
    /// Passes on the pieces that are next in order.
    fn advance(&mut self, done: &Mutex<BTreeMap<usize, Piece>>) -> Result<()> {
        while !self.ended {
            let Some(piece) = done.lock().remove(&self.pieces) else { break };
            self.pieces += 1;
            self.examined += piece.examined.docs;
            self.whole = piece.whole;
            self.ended = !piece.whole || piece.failed.is_some();
            (self.take)(piece)?;
        }
        Ok(())
    }
}
