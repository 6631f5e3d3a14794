//! Running operations, which `currentOp` shows and `killOp` stops.

use crate::frame::accounts::Identity;
use crate::frame::command::{Command, InTransaction};
use quire_document::DocBuf;
use quire_session::SessionId;
use quire_storage::{Interrupt, Interruption};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// One running operation.
pub struct Operation {
    /// The number that `killOp` takes.
    pub id: i64,
    /// When it began.
    pub started: Instant,
    /// The command that runs.
    pub command: &'static Command,
    /// `db.collection`, or `db.$cmd`.
    pub namespace: String,
    /// The command document; long values are shortened.
    pub body: DocBuf,
    /// The connection's name and number.
    pub connection: (Arc<str>, u64),
    /// The client's address.
    pub peer: Option<std::net::SocketAddr>,
    /// The client's metadata.
    pub client: Option<Arc<DocBuf>>,
    /// The user who runs it.
    pub user: Option<Arc<Identity>>,
    /// The session it runs in.
    pub session: Option<SessionId>,
    /// Stops the operation early.
    pub interrupt: Arc<Interrupt>,
}

/// All running operations of a server.
#[derive(Default)]
pub struct Operations {
    next: AtomicI64,
    running: Mutex<BTreeMap<i64, Arc<Operation>>>,
}

/// Removes the operation from the list when it is dropped.
pub struct Running<'s> {
    operations: &'s Operations,
    /// The operation in the list.
    pub operation: Arc<Operation>,
}

impl Operations {
    /// Returns the number of the next operation.
    pub fn next_id(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds an operation to the list.
    pub fn begin(&self, operation: Operation) -> Running<'_> {
        let operation = Arc::new(operation);
        self.lock().insert(operation.id, Arc::clone(&operation));
        Running { operations: self, operation }
    }

    /// Returns the running operations, oldest first.
    pub fn list(&self) -> Vec<Arc<Operation>> {
        self.lock().values().cloned().collect()
    }

    /// Returns the running operation of this number.
    pub fn find(&self, id: i64) -> Option<Arc<Operation>> {
        self.lock().get(&id).cloned()
    }

    /// Stops one operation. Returns false if there is none with this number.
    pub fn kill(&self, id: i64) -> bool {
        match self.lock().get(&id) {
            Some(operation) => {
                operation.interrupt.kill(Interruption::Killed);
                true
            }
            None => false,
        }
    }

    /// Stops the operations of the sessions for which `which` returns true, except the operation
    /// `asking`.
    pub fn kill_sessions(&self, which: &dyn Fn(&SessionId) -> bool, asking: i64) {
        let running = self.lock();
        let chosen = running.values().filter(|operation| {
            operation.id != asking && operation.session.as_ref().is_some_and(which)
        });
        chosen.for_each(|operation| operation.interrupt.kill(Interruption::Killed));
    }

    /// Stops the statements of the sessions for which `which` returns true, because their
    /// transactions have expired. A commit that is running already is not stopped.
    pub fn expire_sessions(&self, which: &dyn Fn(&SessionId) -> bool) {
        let running = self.lock();
        let chosen = running.values().filter(|operation| {
            operation.command.in_transaction != InTransaction::Ends
                && operation.session.as_ref().is_some_and(which)
        });
        chosen.for_each(|operation| operation.interrupt.kill(Interruption::TransactionExpired));
    }

    /// Stops every operation.
    pub fn interrupt_all(&self, reason: Interruption) {
        self.lock().values().for_each(|operation| operation.interrupt.kill(reason));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<i64, Arc<Operation>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.operations.lock().remove(&self.operation.id);
    }
}
