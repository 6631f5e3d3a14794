//! A cursor: iterates over the documents of a result, which are fetched in batches.

use crate::command::Command;
use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::reply::{Fields, checked, needed};
use crate::session_state::SessionState;
use bson::{RawDocument, RawDocumentBuf, doc};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// The documents of a result, fetched in batches: an iterator over `Result<T>`. Dropping it early
/// closes the cursor in the database.
pub struct Cursor<T> {
    embedded: Arc<Embedded>,
    session: Option<Arc<SessionState>>,
    db: String,
    collection: String,
    /// The id of the cursor; 0 after the last batch was fetched.
    id: i64,
    batch_size: Option<u32>,
    /// Sent as `maxTimeMS` with each getMore: the wait for new data in milliseconds.
    await_ms: Option<i64>,
    /// The reply with the current batch, and the positions of its remaining documents.
    reply: RawDocumentBuf,
    left: VecDeque<Range<usize>>,
    current: Option<Range<usize>>,
    documents: PhantomData<fn() -> T>,
}

impl<T> Cursor<T> {
    /// Runs a command whose reply is a cursor. `batch_size` applies to the later batches.
    pub(crate) fn open(
        command: Command,
        batch_size: Option<u32>,
        await_ms: Option<i64>,
    ) -> Result<Cursor<T>> {
        let from = command.clone();
        let mut cursor = Cursor::of_reply(&from, command.run()?)?;
        (cursor.batch_size, cursor.await_ms) = (batch_size, await_ms);
        Ok(cursor)
    }

    /// Returns the cursor in the reply to a command.
    pub(crate) fn of_reply(command: &Command, reply: RawDocumentBuf) -> Result<Cursor<T>> {
        let (id, collection) = opened(&reply)?;
        let mut cursor = Cursor {
            embedded: Arc::clone(&command.embedded),
            session: command.session.clone(),
            db: command.db.clone(),
            collection,
            id,
            batch_size: None,
            await_ms: None,
            reply: RawDocumentBuf::new(),
            left: VecDeque::new(),
            current: None,
            documents: PhantomData,
        };
        cursor.take_batch(reply, "firstBatch")?;
        Ok(cursor)
    }

    /// Moves to the next document. Returns false if there is none; a tailable cursor may get one
    /// later.
    ///
    /// # Errors
    /// The errors of fetching the next batch; the cursor is closed then.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            self.current = self.left.pop_front();
            if self.current.is_some() {
                return Ok(true);
            }
            if self.id == 0 {
                return Ok(false);
            }
            let tailing = self.await_ms.is_some();
            self.fetch()?;
            if tailing && self.left.is_empty() {
                return Ok(false);
            }
        }
    }

    /// Returns the document to which [`advance`](Cursor::advance) moved.
    ///
    /// # Panics
    /// If `advance` did not return true before.
    pub fn current(&self) -> &RawDocument {
        let place = self.current.clone().expect("advance() answered true");
        RawDocument::from_bytes(&self.reply.as_bytes()[place]).expect("a part of a valid reply")
    }

    /// Returns the document to which [`advance`](Cursor::advance) moved, as `T`.
    ///
    /// # Errors
    /// [`ErrorKind::BsonDeserialization`](crate::error::ErrorKind::BsonDeserialization).
    ///
    /// # Panics
    /// If `advance` did not return true before.
    pub fn deserialize_current(&self) -> Result<T>
    where
        T: DeserializeOwned,
    {
        bson::deserialize_from_slice(self.current().as_bytes()).map_err(Error::deserialization)
    }

    /// Returns the same cursor with documents of another type.
    pub fn with_type<U>(mut self) -> Cursor<U> {
        let id = std::mem::take(&mut self.id);
        Cursor {
            embedded: Arc::clone(&self.embedded),
            session: self.session.take(),
            db: std::mem::take(&mut self.db),
            collection: std::mem::take(&mut self.collection),
            id,
            batch_size: self.batch_size,
            await_ms: self.await_ms,
            reply: std::mem::take(&mut self.reply),
            left: std::mem::take(&mut self.left),
            current: self.current.take(),
            documents: PhantomData,
        }
    }

    /// Returns true if the cursor may have more documents than those that are here.
    pub fn is_exhausted(&self) -> bool {
        self.id == 0 && self.left.is_empty()
    }

    /// Returns true if no documents of the current batch are left.
    pub(crate) fn is_batch_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the reply with the current batch.
    pub(crate) fn reply(&self) -> &RawDocument {
        &self.reply
    }

    fn fetch(&mut self) -> Result<()> {
        let id = std::mem::take(&mut self.id);
        let mut command = Command::new(&self.embedded, &self.db, "getMore", id);
        command.set("collection", self.collection.as_str());
        if let Some(size) = self.batch_size.filter(|size| *size > 0) {
            command.set("batchSize", size);
        }
        if let Some(await_ms) = self.await_ms.filter(|await_ms| *await_ms >= 0) {
            command.set("maxTimeMS", await_ms);
        }
        command.session.clone_from(&self.session);
        let reply = command.run()?;
        self.id = opened(&reply)?.0;
        self.take_batch(reply, "nextBatch")
    }

    fn take_batch(&mut self, reply: RawDocumentBuf, name: &str) -> Result<()> {
        let start = reply.as_bytes().as_ptr() as usize;
        let cursor = needed(reply.get("cursor").ok().flatten(), "cursor")?;
        let batch = needed(cursor.as_document().and_then(|cursor| cursor.array(name)), name)?;
        for document in batch {
            let document = document.map_err(|error| Error::invalid_response(error.to_string()))?;
            let document = needed(document.as_document(), "document in its batch")?;
            let from = document.as_bytes().as_ptr() as usize - start;
            self.left.push_back(from..from + document.as_bytes().len());
        }
        self.reply = reply;
        Ok(())
    }
}

/// Returns the id and the collection of the cursor in a reply.
fn opened(reply: &RawDocument) -> Result<(i64, String)> {
    let cursor = needed(reply.get("cursor").ok().flatten(), "cursor")?;
    let cursor = needed(cursor.as_document(), "cursor")?;
    let id = needed(cursor.integer("id"), "cursor.id")?;
    let ns = cursor.text("ns");
    let collection = ns.split_once('.').map_or("", |(_, collection)| collection);
    Ok((id, collection.to_owned()))
}

impl<T: DeserializeOwned> Iterator for Cursor<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.advance() {
            Ok(true) => Some(self.deserialize_current()),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        if self.id == 0 {
            return;
        }
        let kill = doc! {
            "killCursors": self.collection.as_str(), "cursors": [self.id], "$db": self.db.as_str(),
        };
        // A client that was shut down has no open cursors.
        if let Ok(kill) = kill.to_vec() {
            let _ = self.embedded.call(&kill, None).and_then(checked);
        }
    }
}

impl<T> std::fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("id", &self.id).finish_non_exhaustive()
    }
}
