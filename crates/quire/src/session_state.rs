//! The state that a session's operations share: its id, the times they have seen, and the
//! transaction. Each command of the session takes its fields from it and notes its reply.

use crate::error::Result;
use crate::transaction::Transactions;
use bson::{Document, RawBsonRef, RawDocument, Timestamp, doc};
use parking_lot::Mutex;

/// The commands that read in a snapshot session.
const READS: &[&str] = &["find", "aggregate", "distinct", "count"];

/// The state that a session's operations share.
pub(crate) struct SessionState {
    pub(crate) id: Document,
    pub(crate) snapshot: bool,
    pub(crate) seen: Mutex<Seen>,
    pub(crate) transactions: Mutex<Transactions>,
}

/// The times in the session's replies.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) operation_time: Option<Timestamp>,
    pub(crate) cluster_time: Option<Document>,
    pub(crate) snapshot_time: Option<Timestamp>,
}

impl SessionState {
    /// Adds the session's fields to a command.
    ///
    /// # Errors
    /// A concern that an operation in a transaction must not have.
    pub fn prepare(&self, body: &mut Document) -> Result<()> {
        self.transactions.lock().prepare(body)?;
        body.insert("lsid", self.id.clone());
        let reads = body.keys().next().is_some_and(|name| READS.contains(&name.as_str()));
        if !self.snapshot || !reads {
            return Ok(());
        }
        let mut concern = doc! { "level": "snapshot" };
        if let Some(time) = self.seen.lock().snapshot_time {
            concern.insert("atClusterTime", time);
        }
        body.insert("readConcern", concern);
        Ok(())
    }

    /// Notes the times in a reply.
    pub fn note(&self, reply: &RawDocument) {
        let time = |document: &RawDocument, name: &str| match document.get(name) {
            Ok(Some(RawBsonRef::Timestamp(time))) => Some(time),
            _ => None,
        };
        let mut seen = self.seen.lock();
        seen.operation_time = seen.operation_time.max(time(reply, "operationTime"));
        if let Ok(Some(RawBsonRef::Document(told))) = reply.get("$clusterTime") {
            seen.cluster_time = Document::try_from(told).ok();
        }
        if self.snapshot && seen.snapshot_time.is_none() {
            let cursor = reply.get_document("cursor").ok();
            let in_cursor = cursor.and_then(|cursor| time(cursor, "atClusterTime"));
            seen.snapshot_time = in_cursor.or_else(|| time(reply, "atClusterTime"));
        }
    }
}
