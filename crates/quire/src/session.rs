//! A session: an id that commands carry, what they have seen of time, for a snapshot session the
//! one time at which all of it is read, and its transaction.

use crate::Client;
use crate::command::Command;
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::transaction::{End, TransactionOptions, Transactions};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawBsonRef, RawDocument, Timestamp, doc};
use parking_lot::Mutex;
use std::sync::Arc;

/// Commands that a snapshot session reads with.
const READS: &[&str] = &["find", "aggregate", "distinct", "count"];

/// A session of a [`Client`]. Operations join it by their `session` option; it ends when it is
/// dropped. In process everybody sees every write that has returned, so a session is needed for
/// two things: a [transaction](ClientSession::start_transaction), and a *snapshot session*, which
/// reads everything at one time.
///
/// ```
/// use quire::bson::{Document, doc};
/// # fn main() -> quire::error::Result<()> {
/// let client = quire::Client::in_memory()?;
/// let stock = client.database("shop").collection::<Document>("stock");
/// stock.insert_one(doc! { "_id": "lamp", "left": 3 }).run()?;
/// let session = client.start_session().snapshot(true).run()?;
/// let before = stock.find_one(doc! {}).session(&session).run()?;
/// stock.update_one(doc! {}, doc! { "$inc": { "left": -1 } }).run()?;
/// assert_eq!(stock.find_one(doc! {}).session(&session).run()?, before);
/// # Ok(())
/// # }
/// ```
pub struct ClientSession {
    client: Client,
    pub(crate) shared: Arc<Shared>,
}

/// What a session's operations share.
pub(crate) struct Shared {
    id: Document,
    snapshot: bool,
    seen: Mutex<Seen>,
    transactions: Mutex<Transactions>,
}

#[derive(Default)]
struct Seen {
    operation_time: Option<Timestamp>,
    cluster_time: Option<Document>,
    snapshot_time: Option<Timestamp>,
}

impl ClientSession {
    pub(crate) fn new(client: &Client, snapshot: bool, snapshot_time: Option<Timestamp>) -> Self {
        let bytes = bson::Uuid::new().bytes().to_vec();
        let id = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes });
        let seen = Mutex::new(Seen { snapshot_time, ..Seen::default() });
        let transactions = Mutex::default();
        let shared = Arc::new(Shared { id: doc! { "id": id }, snapshot, seen, transactions });
        ClientSession { client: client.clone(), shared }
    }

    /// The client that it is a session of.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The session's id, as commands carry it in `lsid`.
    pub fn id(&self) -> &Document {
        &self.shared.id
    }

    /// The latest `operationTime` of its operations.
    pub fn operation_time(&self) -> Option<Timestamp> {
        self.shared.seen.lock().operation_time
    }

    /// The latest `$clusterTime` of its operations.
    pub fn cluster_time(&self) -> Option<Document> {
        self.shared.seen.lock().cluster_time.clone()
    }

    /// The time at which a snapshot session reads; none before its first read.
    pub fn snapshot_time(&self) -> Option<Timestamp> {
        self.shared.seen.lock().snapshot_time
    }

    pub(crate) fn begin(&self, options: TransactionOptions) -> Result<()> {
        if self.shared.snapshot {
            let text = "Transactions are not supported in snapshot sessions";
            return Err(Error::invalid_argument(text));
        }
        self.shared.transactions.lock().start(options)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.shared.transactions.lock().is_open()
    }

    /// Ends the transaction and tells the database if it knows of it.
    pub(crate) fn end(&self, end: End) -> Result<()> {
        let name = match end {
            End::Commit => "commitTransaction",
            End::Abort => "abortTransaction",
        };
        let mut command = Command::new(&self.client.embedded, "admin", name, 1);
        command.set_session(self);
        command.set("lsid", self.shared.id.clone());
        {
            let mut transactions = self.shared.transactions.lock();
            if !transactions.end(end)? {
                return Ok(());
            }
            transactions.prepare_end(end, command.body_mut());
        }
        let reply = command.send(None)?;
        match crate::error::write_concern_error(&reply)? {
            Some(_) => Error::from_write_reply(&reply),
            None => Ok(()),
        }
    }
}

impl Shared {
    /// Adds the session's fields to a command.
    ///
    /// # Errors
    /// A concern that an operation in a transaction does not take.
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

    /// Notes the times that a reply tells.
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

impl Drop for ClientSession {
    fn drop(&mut self) {
        // The database aborts the session's transaction, too.
        let ids = vec![Bson::Document(self.shared.id.clone())];
        let embedded: &Arc<Embedded> = &self.client.embedded;
        // A database that was closed has no sessions any more.
        let _ = Command::new(embedded, "admin", "endSessions", ids).run();
    }
}

impl std::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSession").field("id", &self.shared.id).finish_non_exhaustive()
    }
}
