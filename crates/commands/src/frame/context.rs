//! The state of a running command besides its arguments: server, connection, session, generic
//! fields. More methods stand in the file of their subject: `units.rs` (the units of work through which it reads and writes),
//! `transactions.rs`, `authorize.rs` (what its client may do), `fail_points.rs`, `account.rs`, and outside of
//! this folder `cursor_reply.rs` (replies with a cursor), `run_pipeline.rs` and `writes.rs` (those of writes).

use crate::frame::command::{Command, Kind};
use crate::frame::concern::{Acknowledge, ReadLevel, WriteConcern};
use crate::frame::executions::interrupt_check;
use crate::frame::generic_fields::Generic;
use crate::frame::reply;
use crate::frame::service::{Connection, Outcome, Sequence, Service, Topology};
use crate::frame::tally::Tally;
use quire_catalog::{Namespace, QuerySettings};
use quire_document::{Binary, Doc, Timestamp, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::context::{InterruptCheck, ParseContext, Shared};
use quire_session::{NeededRight, Session, TransactionTurn};
use quire_storage::{ClusterTime, CommitOptions, Interrupt};
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

/// The state of a running command besides its arguments.
pub struct Context<'c> {
    /// The state that all commands of the server share.
    pub service: &'c Arc<Service>,
    /// The connection of the client.
    pub connection: &'c mut Connection,
    /// The command's row.
    pub command: &'static Command,
    /// The name as the client spelt it.
    pub spelling: &'c str,
    /// The database of `$db`.
    pub db: &'c str,
    /// The command document.
    pub body: Doc<'c>,
    /// The document sequences of the message.
    pub sequences: &'c [Sequence<'c>],
    /// Ends the operation early.
    pub interrupt: Arc<Interrupt>,
    /// The fields that every command takes.
    pub generic: Generic<'c>,
    /// The session that the command uses.
    pub session: Option<Arc<Session>>,
    /// True after the command has begun to write: its reply then reports its write concern, also if
    /// it fails.
    pub writing: Cell<bool>,
    /// The command's turn in its session's transaction, from the moment that it needs it.
    pub(crate) transaction: RefCell<Option<TransactionTurn>>,
    /// The rights that the command needed, if it runs in a transaction with access control.
    pub(crate) rights: RefCell<Vec<NeededRight>>,
    /// True if a statement of the command failed, which aborts its transaction.
    pub statement_failed: Cell<bool>,
    /// True if the command's writes were not on disk when its `wtimeout` ended.
    pub timed_out: Cell<bool>,
    /// The time of the last commit of the command itself.
    pub committed: Cell<Option<ClusterTime>>,
    /// The result of [`Context::interrupt_check`].
    pub(crate) check: OnceCell<Arc<dyn InterruptCheck>>,
    /// The result of [`Context::clock`].
    pub(crate) clock: OnceCell<(i64, Option<Timestamp>)>,
    /// True if the reply's `ok` is an int32, as in mongod if an aggregate replies for the command.
    pub integer_ok: Cell<bool>,
    /// The operation's number.
    pub operation_id: i64,
    /// True if the client accepts several replies.
    pub exhaust_allowed: bool,
    /// What the listener does after the reply.
    pub outcome: Outcome,
    /// True if an injected fault closes the connection after the command.
    pub write_hangs_up: Cell<bool>,
    /// The query settings of the request that the command plans.
    pub query_settings: Option<Arc<QuerySettings>>,
    /// What the operation examined and changed.
    pub tally: Tally,
}

impl Context<'_> {
    /// Returns the write concern of this command: its own, completed by the default, or the
    /// default.
    pub fn write_concern(&self) -> WriteConcern {
        let default =
            || self.service.concern_defaults.write().unwrap_or_else(WriteConcern::majority);
        match &self.generic.write_concern {
            Some(own) if own.w.is_some() => own.clone(),
            Some(own) => WriteConcern { w: default().w, ..own.clone() },
            None => default(),
        }
    }

    /// Returns true if the client asked for no acknowledgement: `w: 0`, and not `j: true`.
    pub fn is_unacknowledged(&self) -> bool {
        let concern = self.generic.write_concern.as_ref();
        concern.is_some_and(|concern| {
            concern.w == Some(Acknowledge::Members(0)) && concern.j != Some(true) && !concern.fsync
        })
    }

    /// Returns the error of a write concern that one member cannot satisfy, for a command that has
    /// begun to write.
    pub(crate) fn unsatisfied(&self) -> Option<Error> {
        if !self.writing.get() {
            return None;
        }
        let provenance = match &self.generic.write_concern {
            Some(_) => "clientSupplied",
            None => "customDefault",
        };
        let concern = self.write_concern();
        let timed_out = || self.timed_out.get().then(|| concern.timed_out(provenance));
        concern.unsatisfied(provenance).or_else(timed_out)
    }

    /// Returns the level at which this command reads.
    pub fn read_level(&self) -> ReadLevel {
        let own = self.generic.read_concern.level;
        own.or_else(|| self.service.concern_defaults.read()).unwrap_or_default()
    }

    /// Waits until everything that was read is on disk, if the read concern asks for that.
    pub fn await_durable_reads(&self, level: ReadLevel) -> Result<()> {
        match level.is_durable() {
            true => self
                .service
                .engine
                .barrier(self.service.engine.version())
                .map_err(reply::from_storage),
            false => Ok(()),
        }
    }

    /// Fails on a standalone.
    pub fn check_member(&self) -> Result<()> {
        match self.service.options.topology {
            Topology::Standalone => {
                let text = format!("'{}' is not supported on standalone nodes.", self.command.name);
                Err(Error::location(51300, text))
            }
            Topology::ReplicaSet(_) => Ok(()),
        }
    }

    /// Returns the options of this command's commits: how durable they must be before the reply.
    pub fn commit_options(&self) -> CommitOptions {
        self.writing.set(true);
        let durability = self.write_concern().durability();
        let interrupt = Some(Arc::clone(&self.interrupt));
        CommitOptions { durability, interrupt, ..CommitOptions::default() }
    }

    /// Returns the namespace that the command's first field names.
    pub fn target(&self, body: Doc<'_>) -> Result<Namespace> {
        match body.first().map(|first| first.value()) {
            Some(Value::String(collection)) => Namespace::new(self.db, collection),
            // A name is what privileges are granted on, so that no UUID is resolved.
            Some(Value::Binary(Binary { subtype: 4, bytes }))
                if self.command.kind == Kind::Read =>
            {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let text = format!("Unable to resolve {}:{digits}", self.db);
                Err(Error::new(ErrorCode::NamespaceNotFound, text))
            }
            other => {
                let found = other.map_or("missing", |value| value.type_name());
                let text = format!("collection name has invalid type {found}");
                Err(Error::new(ErrorCode::InvalidNamespace, text))
            }
        }
    }

    /// Returns `$$NOW` in milliseconds and `$$CLUSTER_TIME` (`None` on a standalone). The clock is
    /// read once for the whole command.
    pub fn clock(&self) -> (i64, Option<Timestamp>) {
        *self.clock.get_or_init(|| self.service.read_clock())
    }

    /// Returns the context for parsing a part of the command that is not planned.
    pub fn parse_context(&self) -> ParseContext {
        let mut context = ParseContext::default();
        context.interrupt = Some(self.interrupt_check());
        context
    }

    /// Returns the operation's interrupt in the form that expressions check.
    pub fn interrupt_check(&self) -> Arc<dyn InterruptCheck> {
        Arc::clone(self.check.get_or_init(|| interrupt_check(&self.interrupt)))
    }

    /// Returns what the evaluation of the command's expressions shares: clock, interrupts,
    /// randomness.
    pub fn shared(&self) -> Shared {
        let (now, cluster_time) = self.clock();
        let mut shared = Shared::new(now).with_interrupt(self.interrupt_check());
        shared.cluster_time = cluster_time;
        shared.with_random(quire_storage::rng::word)
    }

    /// Fails if the operation was killed, timed out, or its client is gone.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.check().map_err(reply::from_interruption)
    }

    /// Returns the documents of an argument that came as a document sequence.
    pub fn sequence(&self, name: &str) -> Option<&[Doc<'_>]> {
        self.sequences.iter().find(|sequence| sequence.name == name).map(|found| &*found.documents)
    }
}
