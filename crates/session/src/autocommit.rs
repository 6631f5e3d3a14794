//! A unit of work outside a transaction: the statements of one command. Each write is its own
//! commit. The command waits once, at its end, until its last commit is as durable as the write
//! concern asks. If the command has a transaction number, each commit also stores the results of
//! its statements in the session's record, and a repeated statement returns the stored result.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use quire_catalog::{Collection, Namespace};
use quire_collections::{Attempt, LineId, Remembered, Store, WritePolicy, Writer, from_storage};
use quire_error::Result;
use quire_executor::{FreshViews, OpenViews, UnitOfWork};
use quire_storage::{ClusterTime, CommitOptions, Committed, Durability, Interrupt, StorageError};

use crate::Turn;

/// The statements of one command outside a transaction.
pub struct Autocommit {
    store: Arc<Store>,
    /// The time of a snapshot read; `None` reads the latest committed state.
    read_time: Option<ClusterTime>,
    policy: WritePolicy,
    /// The durability of each commit.
    each: Durability,
    /// The durability that the command's reply promises.
    wanted: Durability,
    /// The longest time to wait for the disk at the end of the command; `None` waits without a
    /// limit.
    limit: Option<Duration>,
    last: Option<Committed>,
    /// The number of statements that have begun and not reported a commit. They found nothing to do
    /// or failed, so their replies depend on commits of other clients, which can be visible before
    /// they are durable.
    open: usize,
    retryable: Option<Box<Retryable>>,
}

/// How the writes of a command commit.
#[derive(Debug, Clone, Copy)]
pub struct WriteSettings {
    /// The policy that every writer of the unit carries.
    pub policy: WritePolicy,
    /// The durability that the command's reply promises.
    pub durability: Durability,
    /// The longest time to wait for the disk at the end of the command; `None` waits without a
    /// limit.
    pub limit: Option<Duration>,
    /// The number of commits that the command expects.
    pub commits: usize,
}

/// The turn of the session and the statement ids of a command with a transaction number.
struct Retryable {
    turn: Turn,
    /// The ids of the statements that still have to run, in order.
    ids: Vec<i32>,
    /// The positions in `ids` of the statements that run now.
    running: Range<usize>,
    /// The statements that an earlier command had already executed: position in the command, and
    /// id.
    repeated: Vec<(usize, i32)>,
}

/// The outcome of a command's writes.
#[derive(Debug, Default)]
pub struct Finished {
    /// The ids of the statements that an earlier command had already executed.
    pub repeated: Vec<i32>,
    /// True if the time limit ended before the writes were durable.
    pub timed_out: bool,
    /// The time of the command's last commit; `None` if it has committed nothing.
    pub time: Option<ClusterTime>,
}

impl Autocommit {
    /// Returns a unit that only reads: the latest committed state, or the state at `read_time`.
    pub fn reading(store: &Arc<Store>, read_time: Option<ClusterTime>) -> Self {
        Autocommit {
            store: Arc::clone(store),
            read_time,
            policy: WritePolicy::Internal,
            each: Durability::Buffered,
            wanted: Durability::Buffered,
            limit: None,
            last: None,
            open: 0,
            retryable: None,
        }
    }

    /// Returns a unit that writes. If the command has a transaction number, `retry` holds the
    /// session's turn and the ids of all statements of the command.
    pub fn writing(
        store: &Arc<Store>,
        settings: WriteSettings,
        retry: Option<(Turn, Vec<i32>)>,
    ) -> Self {
        let WriteSettings { policy, durability: wanted, limit, commits } = settings;
        let at_once = commits == 1 && limit.is_none();
        let each = if at_once { wanted } else { Durability::Buffered };
        let retryable =
            retry.map(|(turn, ids)| Retryable { turn, ids, running: 0..0, repeated: Vec::new() });
        let retryable = retryable.map(Box::new);
        Autocommit { policy, each, wanted, limit, retryable, ..Autocommit::reading(store, None) }
    }

    /// Returns a unit for writes that the server makes itself: users, roles, the profiler's
    /// entries. Each commit has the given durability.
    pub fn of_server(store: &Arc<Store>, durability: Durability) -> Self {
        let policy = WritePolicy::Internal;
        let settings = WriteSettings { policy, durability, limit: None, commits: 1 };
        Autocommit::writing(store, settings, None)
    }

    /// Returns true if the session stores the results of the statements for a retry.
    pub fn is_retryable(&self) -> bool {
        self.retryable.is_some()
    }

    /// Marks the statements at `places` of the command as the ones that run next.
    pub fn begin(&mut self, places: Range<usize>) {
        self.open += usize::from(!places.is_empty());
        if let Some(retryable) = &mut self.retryable {
            retryable.running = places;
        }
    }

    /// Returns the stored result of the statement at `place` if an earlier command executed it,
    /// else `None`.
    ///
    /// # Errors
    /// The errors of reading the session's records.
    pub fn repeated(&mut self, place: usize) -> Result<Option<Remembered>> {
        let Some(retryable) = self.retryable.as_deref_mut() else { return Ok(None) };
        let Retryable { turn, ids, repeated, .. } = retryable;
        let Some(id) = ids.get(place).copied() else { return Ok(None) };
        if !turn.log().is_executed(id) {
            return Ok(None);
        }
        repeated.push((place, id));
        let snapshot = self.store.engine().snapshot().map_err(from_storage)?;
        turn.log().find(&*snapshot, id)
    }

    /// Removes the statements that were already executed, and repetitions of one id. Returns the
    /// positions of the others, or `None` if nothing was removed.
    pub fn skip_repeated(&mut self) -> Option<Vec<usize>> {
        let Retryable { turn, ids, repeated, .. } = self.retryable.as_deref_mut()?;
        let mut seen = HashSet::with_capacity(ids.len());
        let log = turn.log();
        let left: Vec<usize> = (0..ids.len())
            .filter(|place| {
                let is_new = ids.get(*place).is_some_and(|id| !log.is_executed(*id));
                let first = ids.get(*place).is_some_and(|id| seen.insert(*id));
                is_new && first
            })
            .collect();
        if left.len() == ids.len() {
            return None;
        }
        let mut rest = left.iter().copied().peekable();
        for (place, id) in ids.iter().enumerate() {
            if rest.next_if_eq(&place).is_none() {
                repeated.push((place, *id));
            }
        }
        *ids = left.iter().filter_map(|place| ids.get(*place).copied()).collect();
        Some(left)
    }

    /// Forgets the repeated statements from `place` on: an ordered write ended there.
    pub fn forget_after(&mut self, place: usize) {
        if let Some(retryable) = &mut self.retryable {
            retryable.repeated.retain(|(repeated, _)| *repeated < place);
        }
    }

    /// Notes the last commit of the statements that began last. None of them failed.
    pub fn note(&mut self, committed: Option<&Committed>) {
        self.note_some(committed);
        self.open -= usize::from(committed.is_some()).min(self.open);
    }

    /// Notes the last commit of the statements that began last. Some of them may have failed.
    pub fn note_some(&mut self, committed: Option<&Committed>) {
        self.last = committed.copied().or(self.last);
    }

    /// Waits until everything that the command wrote or read is as durable as it asked.
    ///
    /// # Errors
    /// The errors of the engine's barrier. If the command has committed something, the error says
    /// that the outcome is unknown.
    pub fn finish(self) -> Result<Finished> {
        let (timed_out, time) = (!self.wait()?, self.last.map(|last| last.cluster_time));
        let repeated = match self.retryable {
            None => Vec::new(),
            Some(retryable) => {
                let Retryable { turn, repeated, .. } = *retryable;
                turn.keep();
                repeated.into_iter().map(|(_, id)| id).collect()
            }
        };
        Ok(Finished { repeated, timed_out, time })
    }

    /// Waits like [`finish`](Self::finish), for a command that failed: the session's log is not
    /// kept in memory and is read from the store again. Returns false if the time limit ended
    /// first.
    ///
    /// # Errors
    /// Those of [`finish`](Self::finish).
    pub fn wait(&self) -> Result<bool> {
        let engine = self.store.engine();
        let version = match self.last {
            Some(last) if self.open == 0 => Some(last.version).filter(|_| self.each != self.wanted),
            _ => Some(engine.version()).filter(|_| self.wanted == Durability::Synced),
        };
        let Some(version) = version else { return Ok(true) };
        let waited = match self.limit {
            None => engine.barrier(version).map(|()| true),
            Some(limit) => engine.barrier_within(version, limit),
        };
        let in_doubt = |error: StorageError| match self.last {
            Some(_) => error.after_commit(),
            None => error,
        };
        waited.map_err(|error| from_storage(in_doubt(error)))
    }
}

impl Autocommit {
    /// Runs a statement that changes the catalog. The statement makes its own commits, with the
    /// durability that the command asked for.
    ///
    /// # Errors
    /// The errors of `statement`.
    pub(crate) fn change_catalog<T>(
        &mut self,
        interrupt: &Arc<Interrupt>,
        statement: impl FnOnce(&Arc<Store>, &CommitOptions) -> Result<T>,
    ) -> Result<T> {
        let commit = CommitOptions { durability: self.wanted, ..CommitOptions::default() };
        statement(&self.store, &commit.ended_by(interrupt))
    }

    /// Returns the options of the commit of each statement.
    fn commit_of_each(&self, interrupt: &Arc<Interrupt>) -> CommitOptions {
        CommitOptions { durability: self.each, ..CommitOptions::default() }.ended_by(interrupt)
    }
}

impl UnitOfWork for Autocommit {
    fn store(&self) -> &Arc<Store> {
        &self.store
    }

    fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        self.store().catalog().writable(namespace)
    }

    fn views(&self) -> Result<OpenViews<'_>> {
        let views = match self.read_time {
            None => FreshViews::new(&self.store)?,
            Some(time) => FreshViews::at(&self.store, time)?,
        };
        Ok(OpenViews::Fresh(views))
    }

    fn statements(&self) -> &[i32] {
        let ids = |retryable: &'_ Retryable| retryable.running.clone();
        self.retryable
            .as_ref()
            .and_then(|retryable| retryable.ids.get(ids(retryable)))
            .unwrap_or(&[])
    }

    fn write(
        &mut self,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        let commit = self.commit_of_each(interrupt);
        let log = self.retryable.as_mut().map(|retryable| retryable.turn.log());
        let written = self.store.write_statement((&commit, self.policy), log, interrupt, attempt);
        written.map(|((), committed)| committed)
    }

    fn write_in_line(
        &mut self,
        line: &LineId,
        interrupt: &Arc<Interrupt>,
        attempt: &mut dyn FnMut(&mut Writer) -> Attempt<()>,
    ) -> Result<Option<Committed>> {
        let commit = self.commit_of_each(interrupt);
        let log = self.retryable.as_mut().map(|retryable| retryable.turn.log());
        self.store.write_in_line(line, (&commit, self.policy), log, interrupt, attempt)
    }

    fn admit_inserts(&self, _: &Namespace) -> Result<()> {
        Ok(())
    }

    fn ensure_collection(
        &mut self,
        namespace: &Namespace,
        interrupt: &Arc<Interrupt>,
        wanted: &dyn Fn(&Store) -> bool,
    ) -> Result<()> {
        self.store
            .ensure_collection_for(namespace, Some(interrupt), &|| wanted(&self.store))
            .map(|_| ())
    }
}
