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
    /// Returns true if a read must see the session's earlier operations. In process it always does.
    pub fn causal_consistency(mut self, value: bool) -> Self {
        self.causal = Some(value);
        self
    }

    /// Returns true if everything is read at one time: that of the first read.
    pub fn snapshot(mut self, value: bool) -> Self {
        self.snapshot = value;
        self
    }

    /// The time at which everything is read: one of the last seconds that a reply has told.
    pub fn snapshot_time(mut self, value: Timestamp) -> Self {
        self.snapshot_time = Some(value);
        self
    }

    /// Begins it.
    ///
    /// # Errors
    /// It is to be causally consistent and a snapshot; a time is given and it is no snapshot.
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
