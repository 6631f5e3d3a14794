//! `start_session`.

use crate::error::{Error, Result};
use crate::{Client, ClientSession};
use bson::Timestamp;

impl Client {
    /// Begins a session; see [`ClientSession`].
    pub fn start_session(&self) -> StartSession {
        let client = self.clone();
        StartSession { client, causal: None, snapshot: false, snapshot_time: None }
    }
}

/// Begins a session; see [`Client::start_session`].
#[must_use = "an action does nothing before `run`"]
pub struct StartSession {
    client: Client,
    causal: Option<bool>,
    snapshot: bool,
    snapshot_time: Option<Timestamp>,
}

impl StartSession {
    /// Sets whether a read must see the session's earlier operations. In process it always does.
    pub fn causal_consistency(mut self, value: bool) -> Self {
        self.causal = Some(value);
        self
    }

    /// Sets whether all reads of the session are at one time, that of the first read.
    pub fn snapshot(mut self, value: bool) -> Self {
        self.snapshot = value;
        self
    }

    /// Sets the time of all reads: a recent one from a reply.
    pub fn snapshot_time(mut self, value: Timestamp) -> Self {
        self.snapshot_time = Some(value);
        self
    }

    /// Begins the session.
    ///
    /// # Errors
    /// Both causal consistency and a snapshot are requested; a time is given without a snapshot.
    pub fn run(self) -> Result<ClientSession> {
        if self.snapshot && self.causal == Some(true) {
            let text = "a session is causally consistent or a snapshot, not both";
            return Err(Error::invalid_argument(text));
        }
        if self.snapshot_time.is_some() && !self.snapshot {
            return Err(Error::invalid_argument("a snapshot time needs a snapshot session"));
        }
        Ok(ClientSession::new(&self.client, self.snapshot, self.snapshot_time))
    }
}
