//! Replies with a cursor: the first batch of any source, and the cursor that stays open.

use crate::frame::context::Context;
use quire_document::memory::Charge;
use quire_document::{ArrayWriter, Doc, DocBuf, DocWriter, Timestamp};
use quire_error::Result;
use quire_executor::{BatchEnd, BatchLimits, Follows, UnitOfWork, Views};
use quire_session::{Cursor, Source, parsed_bytes};
use quire_storage::{ClusterTime, Interrupt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The default number of documents in a first batch.
pub const FIRST_BATCH_DOCS: u64 = 101;

/// A source whose documents are all known, such as a listing.
pub struct Rows(pub VecDeque<DocBuf>);

impl Source for Rows {
    fn next_batch(
        &mut self,
        _: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        interrupt.check().map_err(crate::frame::reply::from_interruption)?;
        let mut docs = 0;
        while docs < limits.docs_max {
            let Some(row) = self.0.front() else { break };
            if docs > 0 && out.len() + row.as_bytes().len() > limits.bytes_max {
                break;
            }
            out.push(row);
            docs += 1;
            self.0.pop_front();
        }
        Ok(BatchEnd::of_rows(docs, !self.0.is_empty()))
    }

    fn held_bytes(&self) -> u64 {
        self.0.iter().map(|row| row.as_bytes().len() as u64).sum()
    }
}

/// The options of a new cursor.
pub struct Opening<'c> {
    /// `database.collection` of the reply.
    pub namespace: String,
    /// The largest number of documents in the first batch.
    pub batch_size: Option<u64>,
    /// True to close the cursor after the first batch.
    pub single_batch: bool,
    /// True to never close the cursor for being idle.
    pub no_timeout: bool,
    /// The number of documents that the cursor returns in total; 0 for no limit.
    pub limit: u64,
    /// True if a first batch that is exactly full leaves the cursor open even if nothing follows,
    /// as for a find.
    pub full_batch_stays_open: bool,
    /// The command, for `currentOp`.
    pub command: Doc<'c>,
}

/// Appends the time of a snapshot read, at which the client may read again.
pub fn write_read_time(reply: &mut DocWriter<'_>, time: Option<ClusterTime>) {
    if let Some(time) = time {
        reply.append("atClusterTime", Timestamp::from_u64(time.0));
    }
}

impl Context<'_> {
    /// Appends `cursor: {firstBatch, id, ns}`, read on `views`. Keeps the source open if more
    /// documents follow.
    pub fn open_cursor(
        &mut self,
        reply: &mut DocWriter<'_>,
        opening: Opening<'_>,
        mut source: Box<dyn Source>,
        views: &mut dyn Views,
    ) -> Result<()> {
        let docs = opening.batch_size.unwrap_or(FIRST_BATCH_DOCS);
        let limits = BatchLimits::docs(usize::try_from(docs).unwrap_or(usize::MAX));
        let limits = BatchLimits { is_whole: opening.single_batch, ..limits };
        let mut cursor = reply.document("cursor");
        let end = {
            let mut batch = cursor.array("firstBatch");
            source.next_batch(views, &self.interrupt, limits, &mut batch)?
        };
        self.service.metrics.documents_returned.add(end.docs as u64);
        self.tally.returned = Some(end.docs as u64);
        self.tally.examined = source.examined();
        let (time, token) = (source.read_time(), source.resume_token());
        let full = end.docs as u64 == docs && opening.full_batch_stays_open;
        let reached = opening.limit > 0 && end.docs as u64 >= opening.limit;
        let done = match end.follows {
            Follows::NothingYet { .. } => false,
            Follows::Rows | Follows::End => {
                opening.single_batch || reached || (end.is_last() && !full)
            }
        };
        let (mut memory, mut parsed) = (Charge::default(), 0);
        if !done {
            parsed = parsed_bytes(opening.command);
            Cursor::charge(&mut memory, parsed, &*source)?;
        }
        let id = match done {
            true => 0,
            false => self.service.cursors.open(Cursor {
                owner: self.owner(),
                namespace: opening.namespace.as_str().into(),
                session: self.generic.session,
                transaction: self.generic.txn_number.filter(|_| self.in_transaction()),
                api: self.generic.api.to_doc(),
                command: opening.command.to_owned(),
                fingerprint: self.tally.fingerprint.map(|print| print.hash),
                durable_reads: self.command.takes_read_concern()
                    && !self.in_transaction()
                    && self.read_level().is_durable(),
                no_timeout: opening.no_timeout,
                memory,
                parsed_bytes: parsed,
                time_left: self
                    .interrupt
                    .deadline()
                    .filter(|_| self.generic.max_time_ms > 0 && source.awaits().is_none())
                    .map(|deadline| deadline.saturating_duration_since(Instant::now())),
                source,
            }),
        };
        self.tally.cursor_exhausted = id == 0;
        self.tally.cursor = (id != 0).then_some(id);
        if let Some(token) = token {
            cursor.append("postBatchResumeToken", &token);
        }
        cursor.append("id", id).append("ns", opening.namespace.as_str());
        write_read_time(&mut cursor, time);
        Ok(())
    }

    /// Returns the reply of `command`, which lists `rows`.
    pub fn list_reply(
        &mut self,
        reply: &mut DocWriter<'_>,
        namespace: &str,
        rows: Vec<DocBuf>,
        batch_size: Option<u64>,
        command: Doc<'_>,
    ) -> Result<()> {
        let opening = Opening {
            namespace: namespace.to_owned(),
            batch_size: batch_size.or(Some(u64::MAX)),
            single_batch: false,
            no_timeout: false,
            limit: 0,
            full_batch_stays_open: false,
            command,
        };
        let unit = self.unit_at(None);
        self.open_cursor(reply, opening, Box::new(Rows(rows.into())), &mut unit.views()?)
    }
}
