//! The client's side of a transaction: the fields of its commands, and the allowed order of calls.
//! The rules and the error texts are those of the drivers' transactions specification.

use crate::error::{Error, Result};
use crate::options::{ReadConcern, WriteConcern, millis};
use bson::Document;
use std::time::Duration;

/// The options of one transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct TransactionOptions {
    pub(crate) read_concern: Option<ReadConcern>,
    pub(crate) write_concern: Option<WriteConcern>,
    pub(crate) max_commit_time: Option<Duration>,
}

/// The transactions of one session.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// The number of the newest one.
    number: i64,
    state: State,
    options: TransactionOptions,
}

/// The state of the newest transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No transaction, or one that was followed by an operation outside.
    #[default]
    None,
    /// Begun, without any operation yet.
    Starting,
    InProgress,
    Committed {
        /// True if the database does not know the transaction.
        is_empty: bool,
    },
    Aborted,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    Abort,
}

impl Transactions {
    /// Begins a transaction; its first operation begins it in the database.
    pub(crate) fn start(&mut self, options: TransactionOptions) -> Result<()> {
        if self.is_open() {
            return Err(Error::invalid_argument("transaction already in progress"));
        }
        self.number += 1;
        self.state = State::Starting;
        self.options = options;
        Ok(())
    }

    /// Returns true if the session's operations belong to a transaction.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Starting | State::InProgress)
    }

    /// Adds the transaction's fields to an operation's command.
    pub(crate) fn prepare(&mut self, body: &mut Document) -> Result<()> {
        match self.state {
            State::None => return Ok(()),
            State::Committed { .. } | State::Aborted => {
                self.state = State::None;
                return Ok(());
            }
            State::Starting | State::InProgress => {}
        }
        if body.contains_key("writeConcern") {
            return Err(Error::invalid_argument(
                "cannot set write concern after starting a transaction",
            ));
        }
        if body.contains_key("readConcern") {
            return Err(Error::invalid_argument(
                "cannot set read concern after starting a transaction",
            ));
        }
        self.add_number(body);
        if self.state == State::Starting {
            body.insert("startTransaction", true);
            if let Some(concern) = self.options.read_concern.clone() {
                body.insert("readConcern", concern);
            }
            self.state = State::InProgress;
        }
        Ok(())
    }

    /// Ends the transaction. Returns true if the database must be informed.
    pub(crate) fn end(&mut self, end: End) -> Result<bool> {
        let refused = |text| Err(Error::invalid_argument(text));
        let (next, tell) = match (self.state, end) {
            (State::None, _) => return refused("no transaction started"),
            (State::Starting, End::Commit) => (State::Committed { is_empty: true }, false),
            (State::Starting, End::Abort) => (State::Aborted, false),
            (State::InProgress, End::Commit) => (State::Committed { is_empty: false }, true),
            (State::InProgress, End::Abort) => (State::Aborted, true),
            (State::Committed { is_empty }, End::Commit) => (self.state, !is_empty),
            (State::Committed { .. }, End::Abort) => {
                return refused("Cannot call abortTransaction after calling commitTransaction");
            }
            (State::Aborted, End::Commit) => {
                return refused("Cannot call commitTransaction after calling abortTransaction");
            }
            (State::Aborted, End::Abort) => return refused("cannot call abortTransaction twice"),
        };
        self.state = next;
        Ok(tell)
    }

    /// Adds the fields of the command that ends the transaction.
    pub(crate) fn prepare_end(&self, end: End, body: &mut Document) {
        self.add_number(body);
        if let Some(concern) = self.options.write_concern.clone() {
            body.insert("writeConcern", concern);
        }
        if let Some(time) = self.options.max_commit_time.filter(|_| end == End::Commit) {
            body.insert("maxTimeMS", millis(time));
        }
    }

    fn add_number(&self, body: &mut Document) {
        body.insert("txnNumber", self.number);
        body.insert("autocommit", false);
    }
}
