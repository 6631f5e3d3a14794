//! A session: an id that commands carry, what they have seen of time, and for a snapshot session
//! the one time at which all of it is read.

use crate::Client;
use crate::command::Command;
use crate::embedded::Embedded;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawBsonRef, RawDocument, Timestamp, doc};
use parking_lot::Mutex;
use std::sync::Arc;

/// Commands that a snapshot session reads with.
const READS: &[&str] = &["find", "aggregate", "distinct", "count"];

/// A session of a [`Client`]. Operations join it by their `session` option; it ends when it is
/// dropped. In process everybody sees every write that has returned, so a session is needed for
/// one thing only: a *snapshot session* reads everything at one time.
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
        let shared = Arc::new(Shared { id: doc! { "id": id }, snapshot, seen });
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
}

impl Shared {
    /// Adds the session's fields to a command.
    pub fn prepare(&self, body: &mut Document) {
        body.insert("lsid", self.id.clone());
        let reads = body.keys().next().is_some_and(|name| READS.contains(&name.as_str()));
        if !self.snapshot || !reads {
            return;
        }
        let mut concern = doc! { "level": "snapshot" };
        if let Some(time) = self.seen.lock().snapshot_time {
            concern.insert("atClusterTime", time);
        }
        body.insert("readConcern", concern);
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
