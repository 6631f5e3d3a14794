//! A change stream: iterates over the events of a collection, a database or all databases, and goes on
//! after errors at the place that it has reached.

pub mod event;

use crate::command::Command;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use bson::{Bson, Document};
use event::ResumeToken;
use serde::de::DeserializeOwned;

/// The code of a cursor that the database has closed, for example because nothing was read for ten
/// minutes.
const CURSOR_NOT_FOUND: i32 = 43;

/// The events of a collection, a database or a client, in the order of commits; see
/// [`Collection::watch`](crate::Collection::watch).
///
/// As an iterator it waits for the next event: it ends after an event that ends the stream, such as the
/// drop of the collection, and with an error after a shutdown. [`next_if_any`](ChangeStream::next_if_any) returns
/// when there has been no event for a while. Dropping the stream closes it in the database.
pub struct ChangeStream<T> {
    cursor: Cursor<T>,
    opening: Opening,
    /// The place up to which events were returned.
    token: Option<ResumeToken>,
}

/// How a stream is opened, for the first time and again after an error.
#[derive(Clone)]
pub(crate) struct Opening {
    /// The command without the pipeline.
    pub(crate) command: Command,
    /// The options of `$changeStream`.
    pub(crate) stage: Document,
    /// The stages after it.
    pub(crate) pipeline: Vec<Document>,
    pub(crate) batch_size: Option<u32>,
    pub(crate) await_ms: Option<i64>,
}

impl Opening {
    fn open<T>(&self) -> Result<Cursor<T>> {
        let stage = Bson::from(bson::doc! { "$changeStream": self.stage.clone() });
        let stages = self.pipeline.iter().cloned().map(Bson::from);
        let mut command = self.command.clone();
        command.set("pipeline", std::iter::once(stage).chain(stages).collect::<Vec<Bson>>());
        // A negative wait is that of the database.
        Cursor::open(command, self.batch_size, Some(self.await_ms.unwrap_or(-1)))
    }

    /// Makes the stream begin after a place.
    fn move_to(&mut self, token: &ResumeToken) {
        for start in ["resumeAfter", "startAtOperationTime"] {
            self.stage.remove(start);
        }
        // Unlike `resumeAfter` it takes every token.
        self.stage.insert("startAfter", token.0.clone());
    }
}

impl<T> ChangeStream<T> {
    /// Opens the stream.
    ///
    /// # Errors
    /// The errors of the command.
    pub(crate) fn open(opening: Opening) -> Result<ChangeStream<T>> {
        let cursor = opening.open()?;
        let given = ["startAfter", "resumeAfter"].into_iter().find_map(|start| {
            let token = opening.stage.get_document(start).ok()?;
            Some(ResumeToken(token.clone()))
        });
        let token = if cursor.is_batch_empty() { batch_token(&cursor) } else { None };
        Ok(ChangeStream { token: token.or(given), cursor, opening })
    }

    /// Returns the token of the place up to which events were returned: a stream that is opened with it
    /// as `resume_after` goes on with the event behind.
    pub fn resume_token(&self) -> Option<ResumeToken> {
        self.token.clone()
    }

    /// Returns the same stream with events of another type.
    pub fn with_type<D: DeserializeOwned>(self) -> ChangeStream<D> {
        let ChangeStream { cursor, opening, token } = self;
        ChangeStream { cursor: cursor.with_type(), opening, token }
    }

    /// Returns false after the last event of a stream that has ended, or has failed.
    pub fn is_alive(&self) -> bool {
        !self.cursor.is_exhausted()
    }

    /// Returns the next event. If there is none, it waits once: for the time that
    /// [`max_await_time`](crate::action::Watch::max_await_time) sets, or a second; then it returns `None`.
    ///
    /// # Errors
    /// The error of the command, if it cannot be helped by opening the stream again; an event that does
    /// not have the type `T`.
    pub fn next_if_any(&mut self) -> Result<Option<T>>
    where
        T: DeserializeOwned,
    {
        let advanced = match self.cursor.advance() {
            Err(error) if is_resumable(&error) => self.resume()?,
            advanced => advanced?,
        };
        let at_end = self.cursor.is_batch_empty();
        let batch = if at_end { batch_token(&self.cursor) } else { None };
        if !advanced {
            self.token = batch.or_else(|| self.token.take());
            return Ok(None);
        }
        let own = self.cursor.current().get_document("_id").ok();
        let own = own.and_then(|token| Document::try_from(token).ok()).map(ResumeToken);
        self.token = batch.or(own).or_else(|| self.token.take());
        self.cursor.deserialize_current().map(Some)
    }

    /// Opens the stream again behind the last event, and advances.
    fn resume(&mut self) -> Result<bool> {
        if let Some(token) = &self.token {
            self.opening.move_to(token);
        }
        self.cursor = self.opening.open()?;
        self.cursor.advance()
    }
}

/// Returns the token behind the current batch; `None` after the end of the stream.
fn batch_token<T>(cursor: &Cursor<T>) -> Option<ResumeToken> {
    let reply = cursor.reply().get_document("cursor").ok()?;
    let token = reply.get_document("postBatchResumeToken").ok()?;
    Document::try_from(token).ok().map(ResumeToken)
}

fn is_resumable(error: &Error) -> bool {
    error.contains_label("ResumableChangeStreamError") || error.code() == Some(CURSOR_NOT_FOUND)
}

impl<T: DeserializeOwned> Iterator for ChangeStream<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            match self.next_if_any() {
                Ok(None) if self.is_alive() => {}
                next => return next.transpose(),
            }
        }
    }
}

impl<T> std::fmt::Debug for ChangeStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeStream").field("resume_token", &self.token).finish_non_exhaustive()
    }
}
