//! A long walk over a collection by several threads: record ids ahead are cut into pieces, each
//! thread reads and filters the next piece that nobody has, and what they found comes out in order,
//! with what was looked at for it, as if one thread had read everything. For a `$group` the threads
//! also compute what it takes of each document.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{thread, vec};

use bumpalo::Bump;
use bytes::Bytes;
use parking_lot::Mutex;
use quire_catalog::Collection;
use quire_collections::{CollectionCursor, Record, RecordId, View};
use quire_document::Doc;
use quire_error::{Error, Result};
use quire_mql::filter::Filter;
use quire_storage::Direction;

use crate::env::{Env, Run};
use crate::filtering::Matcher;
use crate::grouping::{Columns, Grouping};
use crate::helpers::Helpers;
use crate::row::Row;

/// Rows that a piece should have: a processor has room in its own cache for the blocks of so many.
const PIECE_ROWS: u64 = 512;
/// Bytes at which a piece ends early.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces of a stretch, for each thread. At its end the threads wait for each other.
const PIECES_EACH: usize = 64;
/// Pieces of the shortest stretch that is worth it, for each thread.
const PIECES_EACH_MIN: usize = 8;
/// Bytes kept of a stretch, for each thread, at which it ends early.
const KEPT_BYTES_EACH: usize = 8 << 20;

/// What was read of a stretch of record ids.
pub(crate) struct Stretch(VecDeque<Piece>);

/// What a stretch gives next, with how many documents were looked at for it.
pub(crate) enum Step {
    Row(Row, u64),
    /// Nothing up to this record id.
    Nothing(RecordId, u64),
    End,
}

impl Stretch {
    /// What comes next.
    ///
    /// # Errors
    /// What ended the stretch.
    pub fn next(&mut self) -> Result<Step> {
        let Some(piece) = self.0.front_mut() else { return Ok(Step::End) };
        if let Some(found) = piece.rows.next() {
            let examined = found.examined;
            return Ok(Step::Row(found.into_row(), examined));
        }
        let step = Step::Nothing(piece.end, piece.tail);
        match self.0.pop_front().and_then(|piece| piece.failed) {
            Some(error) => Err(error),
            None => Ok(step),
        }
    }
}

/// Cuts the way ahead into pieces.
pub(crate) struct Splitter {
    /// Record ids of a piece: more than rows where many records were deleted.
    width: u64,
}

/// What is kept of a collection.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'k> {
    /// Documents that it lets pass.
    pub filter: Option<&'k Arc<Filter>>,
    /// The `$group` that takes all of them.
    pub grouping: Option<&'k Grouping>,
}

impl Splitter {
    pub fn new() -> Self {
        Splitter { width: PIECE_ROWS }
    }

    /// About how many documents the shortest stretch holds.
    pub fn stretch_rows(run: &Run<'_>) -> u64 {
        run.env.params.threads_max.saturating_mul(PIECES_EACH_MIN) as u64 * PIECE_ROWS
    }

    /// Reads a stretch that begins at a record id. `None` if little is left of the collection or
    /// no thread is free.
    pub fn read(
        &mut self,
        run: &Run<'_>,
        collection: &Collection,
        filter: Option<&Arc<Filter>>,
        from: RecordId,
    ) -> Result<Option<Stretch>> {
        let mut stretch = VecDeque::new();
        let kept = Kept { filter, grouping: None };
        let any = self.feed(run, collection, kept, from, &mut |piece| {
            stretch.push_back(piece);
            Ok(())
        })?;
        Ok(any.then_some(Stretch(stretch)))
    }

    /// The same for somebody who takes each piece while the threads read on, in order, up to the
    /// first that is not whole. False if nothing was read.
    pub fn feed(
        &mut self,
        run: &Run<'_>,
        collection: &Collection,
        kept: Kept<'_>,
        from: RecordId,
        take: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<bool> {
        let helpers = Helpers::acquire(run.env.params.threads_max.saturating_sub(1));
        if helpers.count() == 0 {
            return Ok(false);
        }
        let bound = run.view().record_id_bound(collection)?;
        if bound.0.saturating_sub(from.0) < 2 * self.width {
            return Ok(false);
        }
        let threads = helpers.count() + 1;
        let task = Task {
            view: run.view(),
            env: run.env,
            collection,
            kept,
            from,
            bound,
            width: self.width,
            pieces: threads * PIECES_EACH,
            taken: AtomicUsize::new(0),
            rows_left: Budget::new(run.wanted),
            bytes_left: Budget::new(threads * KEPT_BYTES_EACH),
            done: Mutex::default(),
        };
        let mut queue = Queue { pieces: 0, examined: 0, whole: true, ended: false, take };
        thread::scope(|scope| {
            for _ in 0..helpers.count() {
                let name = thread::Builder::new().name("scan".to_owned());
                if name.spawn_scoped(scope, || task.work(|| Ok(()))).is_err() {
                    break;
                }
            }
            task.work(|| queue.advance(&task.done))
        })?;
        queue.advance(&task.done)?;
        self.adapt(&queue);
        Ok(true)
    }

    /// Pieces of the next stretch that have about as many rows as they should.
    fn adapt(&mut self, read: &Queue<'_>) {
        if !read.whole {
            self.width = (self.width / 2).max(1);
        } else if read.examined < read.pieces as u64 * PIECE_ROWS / 2 {
            self.width = self.width.saturating_mul(2).min(1 << 40);
        }
    }
}

/// Puts pieces back into their order.
struct Queue<'q> {
    /// How many were taken, documents looked at for them, and whether the last of them was whole.
    pieces: usize,
    examined: u64,
    whole: bool,
    /// What follows is of no use.
    ended: bool,
    take: &'q mut dyn FnMut(Piece) -> Result<()>,
}

impl Queue<'_> {
    /// Gives away those whose turn it is.
    fn advance(&mut self, done: &Mutex<BTreeMap<usize, Piece>>) -> Result<()> {
        while !self.ended {
            let Some(piece) = done.lock().remove(&self.pieces) else { break };
            self.pieces += 1;
            self.examined += piece.examined;
            self.whole = piece.whole;
            self.ended = !piece.whole || piece.failed.is_some();
            (self.take)(piece)?;
        }
        Ok(())
    }
}

/// What the threads share.
struct Task<'t> {
    view: View<'t>,
    env: &'t Env,
    collection: &'t Collection,
    kept: Kept<'t>,
    from: RecordId,
    bound: RecordId,
    width: u64,
    pieces: usize,
    /// Pieces that somebody has.
    taken: AtomicUsize,
    rows_left: Budget,
    bytes_left: Budget,
    /// What has been read and not been given away.
    done: Mutex<BTreeMap<usize, Piece>>,
}

/// How much of something may still be kept, by all threads together.
struct Budget(AtomicUsize);

impl Budget {
    fn new(all: usize) -> Self {
        Budget(AtomicUsize::new(all))
    }

    /// Takes some of it away; true if nothing is left.
    fn spend(&self, amount: usize) -> bool {
        let rest = |left: usize| Some(left.saturating_sub(amount));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        before.is_ok_and(|left| left <= amount)
    }
}

/// What a thread makes of a piece.
pub(crate) struct Piece {
    pub rows: vec::IntoIter<Found>,
    /// What the `$group` takes of the documents; there are no rows then.
    pub columns: Option<Columns>,
    /// Documents looked at, how many of them after the last row, and how many passed.
    pub examined: u64,
    tail: u64,
    pub passed: u64,
    /// Bytes of the documents looked at.
    bytes: usize,
    /// The last record id that it covers.
    pub end: RecordId,
    /// It was read to its end.
    whole: bool,
    /// What ended it, after the rows.
    pub failed: Option<Error>,
}

/// A document that the filter lets pass.
pub(crate) struct Found {
    id: RecordId,
    doc: Bytes,
    /// Documents looked at since the one before in the piece, this one among them.
    examined: u64,
}

impl Found {
    pub fn into_row(self) -> Row {
        Row::of_document(self.id, self.doc)
    }
}

/// What a thread keeps from piece to piece.
struct Worker {
    matcher: Option<Matcher>,
    arena: Bump,
    records: Vec<Record>,
}

impl Task<'_> {
    /// Reads pieces until none are left, and does something after each of them.
    fn work(&self, mut after: impl FnMut() -> Result<()>) -> Result<()> {
        let matcher = self.kept.filter.cloned().map(Matcher::sharing);
        let mut worker = Worker { matcher, arena: Bump::new(), records: Vec::new() };
        loop {
            let at = self.taken.fetch_add(1, Ordering::Relaxed);
            let from = self.from.0.saturating_add((at as u64).saturating_mul(self.width));
            if at >= self.pieces || from >= self.bound.0 {
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

    /// Nobody needs what follows.
    fn end(&self) {
        self.taken.fetch_max(self.pieces, Ordering::Relaxed);
    }

    /// Whether all that may be kept has been found.
    fn is_enough(&self, piece: &Piece) -> bool {
        let rows = piece.rows.len();
        let bytes = match &piece.columns {
            Some(columns) => columns.size(),
            // A row may keep a whole block of the engine in memory.
            None if rows > 0 => piece.bytes,
            None => 0,
        };
        let rows = self.rows_left.spend(rows);
        self.bytes_left.spend(bytes) || rows
    }

    fn read(&self, worker: &mut Worker, from: RecordId, to: RecordId) -> Piece {
        let mut piece = Piece {
            rows: Vec::new().into_iter(),
            columns: None,
            examined: 0,
            tail: 0,
            passed: 0,
            bytes: 0,
            end: to,
            whole: true,
            failed: None,
        };
        let mut rows = Vec::new();
        match self.fill(&mut piece, worker, from, &mut rows) {
            Ok(()) => piece.columns = self.columns(&rows, &mut worker.arena),
            Err(error) => piece.failed = Some(error),
        }
        piece.passed = rows.len() as u64;
        if piece.columns.is_none() {
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
        let env = self.env;
        env.check_interrupt()?;
        let bounds = (Some(from), Some(piece.end));
        let mut cursor =
            CollectionCursor::between(self.collection, Direction::Forward, bounds.0, bounds.1);
        let records = &mut worker.records;
        records.clear();
        let rows_max = usize::try_from(self.width).unwrap_or(usize::MAX).min(4096);
        piece.whole =
            !cursor.next_page(&self.view, self.collection, rows_max, PIECE_BYTES, records)?;
        if let (false, Some(last)) = (piece.whole, records.last()) {
            piece.end = last.id;
        }
        for record in records.drain(..) {
            piece.tail += 1;
            piece.examined += 1;
            piece.bytes += record.doc.as_doc().len();
            if let Some(matcher) = &mut worker.matcher
                && !matcher.matches(record.doc.as_doc(), env)?
            {
                continue;
            }
            let examined = std::mem::take(&mut piece.tail);
            rows.push(Found { id: record.id, doc: record.doc.into_bytes(), examined });
        }
        Ok(())
    }

    /// What the `$group` takes of the documents, if it can take all of them at once.
    fn columns(&self, rows: &[Found], arena: &mut Bump) -> Option<Columns> {
        let grouping = self.kept.grouping.filter(|_| !rows.is_empty())?;
        let docs: Vec<Doc<'_>> = rows.iter().map(|row| Doc::from_valid_bytes(&row.doc)).collect();
        grouping.columns(&docs, arena, self.env)
    }
}
