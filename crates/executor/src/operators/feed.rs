//! Documents from outside of the collections.

use bytes::Bytes;
use quire_collections::RecordId;
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::stage::Served;
use quire_planner::explain::NodeStats;
use quire_storage::Interrupt;
use std::sync::Arc;

use crate::env::Run;
use crate::operators::Operator;
use crate::params::{Awaits, Follows};
use crate::row::Row;

/// Provides the documents of a plan's leaf without a collection, such as `$currentOp`.
pub trait Feed: Send {
    /// Appends at most `max` documents to `out`, and returns what follows them. A feed that follows
    /// commits returns [`Follows::NothingYet`] instead of waiting. Long work checks `interrupt`.
    ///
    /// # Errors
    /// The errors of producing the documents; the error of the interrupt.
    fn next(
        &mut self,
        max: usize,
        interrupt: &Arc<Interrupt>,
        out: &mut Vec<DocBuf>,
    ) -> Result<Follows>;

    /// Returns the commits that can add documents; `None` if the documents have an end.
    fn awaits(&self) -> Option<Awaits> {
        None
    }
}

impl Feed for std::vec::IntoIter<DocBuf> {
    fn next(&mut self, max: usize, _: &Arc<Interrupt>, out: &mut Vec<DocBuf>) -> Result<Follows> {
        out.extend(self.by_ref().take(max));
        Ok(if self.len() > 0 { Follows::Rows } else { Follows::End })
    }
}

/// The leaf that a feed provides.
pub(crate) struct FeedOp {
    feed: Box<dyn Feed>,
    docs: Vec<DocBuf>,
    stats: NodeStats,
}

impl FeedOp {
    pub fn new(feed: Box<dyn Feed>) -> Self {
        FeedOp { feed, docs: Vec::new(), stats: NodeStats::default() }
    }
}

impl Operator for FeedOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let follows = self.feed.next(max, &run.env.interrupt(), &mut self.docs)?;
        let more = match follows {
            Follows::Rows => true,
            Follows::NothingYet { past } => {
                run.nothing_yet = Some(past);
                true
            }
            Follows::End => {
                run.has_ended = true;
                false
            }
        };
        self.stats.returned += self.docs.len() as u64;
        self.stats.is_eof = !more;
        let row = |doc: DocBuf| Row::of_document(RecordId(0), Bytes::from(doc.into_bytes()));
        out.extend(self.docs.drain(..).map(row));
        Ok(more)
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}

/// The leaf of a stage about the server. It requests the documents when it is first read.
pub(crate) struct ServedOp {
    stage: Arc<Served>,
    /// `None` before the first read.
    rows: Option<FeedOp>,
}

impl ServedOp {
    pub fn new(stage: &Arc<Served>) -> Self {
        ServedOp { stage: Arc::clone(stage), rows: None }
    }
}

impl Operator for ServedOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => {
                let made = run.env.params.rows_of_server(&self.stage)?;
                none.insert(FeedOp::new(Box::new(made.into_iter())))
            }
        };
        rows.next(run, max, out)
    }

    fn stats(&self) -> NodeStats {
        self.rows.as_ref().map_or_else(NodeStats::default, FeedOp::stats)
    }
}
