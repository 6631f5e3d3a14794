//! Documents from outside of the collections.

use bytes::Bytes;
use quire_collections::RecordId;
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::stage::Served;
use quire_planner::explain::NodeStats;
use std::sync::Arc;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;

/// Provides the documents of a plan's leaf without a collection, such as `$currentOp`.
pub trait Feed: Send {
    /// Appends at most `max` documents to `out`. Returns false if no more follow.
    ///
    /// # Errors
    /// The errors of producing the documents.
    fn next(&mut self, max: usize, out: &mut Vec<DocBuf>) -> Result<bool>;
}

impl Feed for std::vec::IntoIter<DocBuf> {
    fn next(&mut self, max: usize, out: &mut Vec<DocBuf>) -> Result<bool> {
        out.extend(self.by_ref().take(max));
        Ok(self.len() > 0)
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
    fn next(&mut self, _: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let more = self.feed.next(max, &mut self.docs)?;
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
