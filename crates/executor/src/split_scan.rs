//! A long walk over a collection by several threads: record ids ahead are cut into pieces, each
//! thread reads and filters the next piece that nobody has, and the rows come out in order, with
//! what was looked at for each of them, as if one thread had read everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bumpalo::Bump;
use bytes::Bytes;
use quire_catalog::Collection;
use quire_collections::{CollectionCursor, Record, RecordId, View};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, Result};
use quire_mql::EvalContext;
use quire_mql::filter::Filter;
use quire_mql::projection::Projection;
use quire_storage::Direction;

use crate::env::{Env, Run};
use crate::filtering::{Matcher, reset};
use crate::helpers::Helpers;
use crate::row::Row;

/// Rows that a piece should have.
const PIECE_ROWS: u64 = 512;
/// Bytes at which a piece ends early.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces of a stretch, for each thread: a few, so that all threads end at about the same time.
const PIECES_EACH: usize = 8;

/// Rows of a stretch of record ids.
pub(crate) struct Stretch {
    rows: std::vec::IntoIter<Found>,
    /// Documents looked at after the last of the rows.
    tail: u64,
    /// The last record id that it covers.
    end: RecordId,
    /// What ended it.
    failed: Option<Error>,
}

/// A document that the filter lets pass.
struct Found {
    id: RecordId,
    doc: Bytes,
    /// Documents looked at since the one before, this one among them.
    examined: u64,
}

/// What a stretch gives next.
pub(crate) enum Step {
    /// A row, and how many documents were looked at for it.
    Row(Row, u64),
    /// Nothing more: the last record id that was covered, and documents looked at for no row.
    End(RecordId, u64),
}

impl Stretch {
    /// No rows, up to a record id.
    fn nothing(end: RecordId) -> Self {
        Stretch { rows: Vec::new().into_iter(), tail: 0, end, failed: None }
    }

    /// The next row. After its end a stretch must not be asked again.
    pub fn next(&mut self) -> Result<Step> {
        if let Some(found) = self.rows.next() {
            return Ok(Step::Row(Row::of_document(found.id, found.doc), found.examined));
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(Step::End(self.end, self.tail)),
        }
    }
}

/// Cuts the way ahead into pieces.
pub(crate) struct Splitter {
    /// Record ids of a piece: more than rows where many records were deleted.
    width: u64,
}

impl Splitter {
    pub fn new() -> Self {
        Splitter { width: PIECE_ROWS }
    }

    /// About how many documents a stretch holds.
    pub fn stretch_rows(run: &Run<'_>) -> u64 {
        run.env.params.threads_max.saturating_mul(PIECES_EACH) as u64 * PIECE_ROWS
    }

    /// Reads a stretch that begins at a record id. `None` if little is left of the collection or
    /// no thread is free.
    pub fn read(
        &mut self,
        run: &Run<'_>,
        collection: &Collection,
        kept: Kept<'_>,
        from: RecordId,
    ) -> Result<Option<Stretch>> {
        let helpers = Helpers::acquire(run.env.params.threads_max.saturating_sub(1));
        if helpers.count() == 0 {
            return Ok(None);
        }
        let bound = run.view().record_id_bound(collection)?;
        if bound.0.saturating_sub(from.0) < 2 * self.width {
            return Ok(None);
        }
        let pieces = (helpers.count() + 1) * PIECES_EACH;
        let taken = AtomicUsize::new(0);
        let task = Task {
            view: run.view(),
            env: run.env,
            collection,
            kept,
            from,
            bound,
            width: self.width,
            pieces,
            taken: &taken,
        };
        let mut read = thread::scope(|scope| {
            let others: Vec<_> = (0..helpers.count())
                .map_while(|_| {
                    let name = thread::Builder::new().name("scan".to_owned());
                    name.spawn_scoped(scope, || task.work()).ok()
                })
                .collect();
            let mut read = task.work();
            for other in others {
                match other.join() {
                    Ok(pieces) => read.extend(pieces),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            read
        });
        read.sort_unstable_by_key(|(at, _)| *at);
        Ok(Some(self.join(read.into_iter().map(|(_, piece)| piece))))
    }

    /// One stretch of pieces that follow each other, up to the first that is not whole.
    fn join(&mut self, pieces: impl Iterator<Item = Piece>) -> Stretch {
        let mut stretch = Stretch::nothing(RecordId(0));
        let mut rows = Vec::new();
        let (mut count, mut examined, mut whole) = (0, 0, true);
        for mut piece in pieces {
            if let Some(first) = piece.rows.first_mut() {
                first.examined += std::mem::take(&mut stretch.tail);
            }
            count += 1;
            examined += piece.examined;
            whole = piece.whole;
            rows.append(&mut piece.rows);
            stretch.tail += piece.tail;
            stretch.end = piece.end;
            stretch.failed = piece.failed;
            if !whole || stretch.failed.is_some() {
                break;
            }
        }
        if !whole {
            self.width = (self.width / 2).max(1);
        } else if examined < count * PIECE_ROWS / 2 {
            self.width = self.width.saturating_mul(2).min(1 << 40);
        }
        stretch.rows = rows.into_iter();
        stretch
    }
}

/// What is kept of a collection.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'k> {
    /// Documents that it lets pass.
    pub filter: Option<&'k Arc<Filter>>,
    /// The fields that are read of them.
    pub fields: Option<&'k Projection>,
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
    taken: &'t AtomicUsize,
}

/// What a thread makes of a piece.
struct Piece {
    rows: Vec<Found>,
    tail: u64,
    examined: u64,
    end: RecordId,
    /// It was read to its end.
    whole: bool,
    failed: Option<Error>,
}

impl Task<'_> {
    /// Reads pieces until none are left.
    fn work(&self) -> Vec<(usize, Piece)> {
        let mut matcher = self.kept.filter.cloned().map(Matcher::sharing);
        let mut records = Vec::new();
        let mut done = Vec::new();
        loop {
            let at = self.taken.fetch_add(1, Ordering::Relaxed);
            let from = self.from.0.saturating_add((at as u64).saturating_mul(self.width));
            if at >= self.pieces || from >= self.bound.0 {
                return done;
            }
            let to = from.saturating_add(self.width - 1).min(self.bound.0 - 1);
            let mut piece = Piece {
                rows: Vec::new(),
                tail: 0,
                examined: 0,
                end: RecordId(to),
                whole: true,
                failed: None,
            };
            if let Err(error) = self.fill(&mut piece, from, matcher.as_mut(), &mut records) {
                piece.failed = Some(error);
            }
            if piece.failed.is_some() || !piece.whole {
                // Nobody needs what follows.
                self.taken.fetch_max(self.pieces, Ordering::Relaxed);
            }
            done.push((at, piece));
        }
    }

    fn fill(
        &self,
        piece: &mut Piece,
        from: u64,
        mut matcher: Option<&mut Matcher>,
        records: &mut Vec<Record>,
    ) -> Result<()> {
        let env = self.env;
        env.check_interrupt()?;
        let bounds = (Some(RecordId(from)), Some(piece.end));
        let mut cursor =
            CollectionCursor::between(self.collection, Direction::Forward, bounds.0, bounds.1);
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
            if let Some(matcher) = &mut matcher
                && !matcher.matches(record.doc.as_doc(), env)?
            {
                continue;
            }
            let examined = std::mem::take(&mut piece.tail);
            piece.rows.push(Found { id: record.id, doc: record.doc.into_bytes(), examined });
        }
        match self.kept.fields {
            Some(fields) => narrow(&mut piece.rows, fields, env),
            None => Ok(()),
        }
    }
}

/// Copies the fields that are read of each document, so that the thread that goes on with them finds
/// them side by side, and not in blocks that another processor has in its cache.
fn narrow(rows: &mut [Found], fields: &Projection, env: &Env) -> Result<()> {
    let mut arena = Bump::new();
    let mut bytes = Vec::with_capacity(rows.len() * 64);
    let mut ends = Vec::with_capacity(rows.len());
    for row in &*rows {
        reset(&mut arena);
        let doc = Doc::from_valid_bytes(&row.doc);
        let mut writer = DocWriter::new(&mut bytes);
        fields.apply(doc, &mut writer, &EvalContext::new(&arena, doc, &env.shared))?;
        writer.finish();
        ends.push(bytes.len());
    }
    let bytes = Bytes::from(bytes);
    let mut start = 0;
    for (row, end) in rows.iter_mut().zip(ends) {
        row.doc = bytes.slice(start..end);
        start = end;
    }
    Ok(())
}
