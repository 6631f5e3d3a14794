//! A session: an id that commands carry, the times that they have seen, for a snapshot session the
//! time of all its reads, and its transaction.

use crate::Client;
use crate::command::Command;
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::reply::write_concern_error;
use crate::session_state::{Seen, SessionState};
use crate::transaction::{End, TransactionOptions};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, Timestamp, doc};
use parking_lot::Mutex;
use std::sync::Arc;

/// A session of a [`Client`]. Operations join it by their `session` option; it ends when it is
/// dropped. In process every write is visible to all after it has returned, so a session is needed
/// only for a [transaction](ClientSession::start_transaction) or for a *snapshot session*, whose
/// reads are all at one time.
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
    pub(crate) state: Arc<SessionState>,
}

impl ClientSession {
    pub(crate) fn new(client: &Client, snapshot: bool, snapshot_time: Option<Timestamp>) -> Self {
        let bytes = bson::Uuid::new().bytes().to_vec();
        let id = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes });
        let seen = Mutex::new(Seen { snapshot_time, ..Seen::default() });
        let transactions = Mutex::default();
        let state = Arc::new(SessionState { id: doc! { "id": id }, snapshot, seen, transactions });
        ClientSession { client: client.clone(), state }
    }

    /// Returns the client of the session.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns the session's id, which commands carry in `lsid`.
    pub fn id(&self) -> &Document {
        &self.state.id
    }

    /// Returns the latest `operationTime` of its operations.
    pub fn operation_time(&self) -> Option<Timestamp> {
        self.state.seen.lock().operation_time
    }

    /// Returns the latest `$clusterTime` of its operations.
    pub fn cluster_time(&self) -> Option<Document> {
        self.state.seen.lock().cluster_time.clone()
    }

    /// Returns the time of a snapshot session's reads; `None` before its first read.
    pub fn snapshot_time(&self) -> Option<Timestamp> {
        self.state.seen.lock().snapshot_time
    }

    pub(crate) fn begin(&self, options: TransactionOptions) -> Result<()> {
        if self.state.snapshot {
            let text = "Transactions are not supported in snapshot sessions";
            return Err(Error::invalid_argument(text));
        }
        self.state.transactions.lock().start(options)
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        self.state.transactions.lock().is_open()
    }

    /// Ends the transaction, and informs the database if it knows the transaction.
    pub(crate) fn end(&self, end: End) -> Result<()> {
        let name = match end {
            End::Commit => "commitTransaction",
            End::Abort => "abortTransaction",
        };
        let mut command = Command::new(&self.client.embedded, "admin", name, 1);
        command.set_session(&self.state);
        command.set("lsid", self.state.id.clone());
        {
            let mut transactions = self.state.transactions.lock();
            if !transactions.end(end)? {
                return Ok(());
            }
            transactions.prepare_end(end, command.body_mut());
        }
        let reply = command.send(None)?;
        match write_concern_error(&reply)? {
            Some(_) => Error::from_write_reply(&reply),
            None => Ok(()),
        }
    }
}

impl Drop for ClientSession {
    fn drop(&mut self) {
        // The database aborts the session's transaction, too.
        let ids = vec![Bson::Document(self.state.id.clone())];
        let embedded: &Arc<Embedded> = &self.client.embedded;
        // A closed database has no sessions.
        let _ = Command::new(embedded, "admin", "endSessions", ids).run();
    }
}

impl std::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSession").field("id", &self.state.id).finish_non_exhaustive()
    }
}
