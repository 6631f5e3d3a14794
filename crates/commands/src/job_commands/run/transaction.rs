//! The transaction of a step: commands of the job, documents of a `$merge`, and the job's new row,
//! which its commit stores with them.

use super::super::definition::Definition;
use super::super::table::is_current;
use super::Run;
use super::owner::Owned;
use crate::frame::operation_session;
use quire_access::Action;
use quire_collections::{Attempt, Job, Writer};
use quire_document::{Binary, DocBuf, Value, doc};
use quire_error::{Error, ErrorCode, Label, Result};
use quire_executor::modify::write_results;
use quire_executor::{FreshViews, OpenViews, UnitOfWork, open_fed};
use quire_planner::AggregateRequest;
use quire_session::{NO_USER, Session, SessionId, Start};
use quire_storage::CommitOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The first bytes of the ids of all sessions of jobs. The others are those of the job's UUID.
const SESSION: &[u8; 8] = b"QuireJob";
/// The transaction numbers of a step. Each attempt has another one, also after a restart.
const NUMBERS: i64 = 1 << 32;
/// The attempts after conflicts with other writers, which count as one attempt of the job.
const CONFLICTS_MAX: u32 = 50;

static ATTEMPT: AtomicI64 = AtomicI64::new(0);

/// Returns the id of the session in which a lane of a job writes. Change events show it.
fn session_of(uuid: &[u8; 16], lane: u32) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(SESSION);
    id[8..].copy_from_slice(&uuid[..8]);
    id[15] ^= lane as u8;
    id
}

/// Returns true if the session with this id is that of a lane of the job.
pub(super) fn is_session_of(id: &[u8], definition: &Definition) -> bool {
    (0..definition.plan.rows()).any(|lane| id == session_of(&definition.uuid, lane))
}

/// Returns true if the session with this id is that of a job.
pub(super) fn is_of_job(id: &[u8]) -> bool {
    id.starts_with(SESSION)
}

/// An open transaction. Dropping it aborts it.
pub(super) struct JobTransaction<'r> {
    run: &'r Run<'r>,
    pub owned: Owned,
    session: Arc<Session>,
    number: i64,
}

impl Run<'_> {
    /// Runs `work` in a transaction and commits it with the row that `work` returns. After a conflict
    /// with another writer both run again. Returns `None` if the job was changed meanwhile: then
    /// nothing was written.
    ///
    /// # Errors
    /// The errors of `work` and of the commit.
    pub fn transact(
        &self,
        job: &Job,
        mut work: impl FnMut(&mut JobTransaction<'_>) -> Result<Job>,
    ) -> Result<Option<Job>> {
        let mut conflicts = 0;
        loop {
            let mut transaction = self.begin(job)?;
            let ended = work(&mut transaction).and_then(|next| {
                let kept = transaction.commit(job, &next)?;
                Ok(kept.then_some(next))
            });
            match ended {
                Err(error) if is_conflict(&error) && conflicts < CONFLICTS_MAX => {
                    conflicts += 1;
                    drop(transaction);
                    let pause = Duration::from_millis(u64::from(conflicts.min(20)));
                    let waited = self.cx.interrupt.wait(Some(pause), || false);
                    waited.map_err(quire_collections::from_interruption)?;
                }
                other => return other,
            }
        }
    }

    fn begin(&self, job: &Job) -> Result<JobTransaction<'_>> {
        let (service, owned) = (self.cx.service, self.connect()?);
        let user = owned.number().unwrap_or(NO_USER);
        let id = SessionId { id: session_of(&self.definition.uuid, self.lane), user };
        let session = operation_session::attach(service, Some(id))?;
        let session = session.ok_or_else(|| Error::internal("a job without a session"))?;
        let attempt = ATTEMPT.fetch_add(1, Ordering::Relaxed) % NUMBERS;
        let number = job.steps.saturating_mul(NUMBERS).saturating_add(attempt);
        let start = Start {
            now_ms: service.wall_ms(),
            at: None,
            api: DocBuf::new(),
            parameters: doc! { "txnNumber": number, "autocommit": false },
            client: doc! { "appName": (format!("job {}", self.definition.key()).as_str()) },
        };
        let store = &service.store;
        session.join_transaction(store, number, Some(start), self.cx.interrupt)?.leave();
        Ok(JobTransaction { run: self, owned, session, number })
    }
}

impl JobTransaction<'_> {
    /// Runs a command in the transaction.
    ///
    /// # Errors
    /// The error of the command, or the first of its statements.
    pub fn call(&mut self, mut command: DocBuf) -> Result<DocBuf> {
        let id = session_of(&self.run.definition.uuid, self.run.lane);
        let id = Value::Binary(Binary { subtype: 4, bytes: &id });
        command.append("lsid", &doc! { "id": id });
        command.append("txnNumber", self.number).append("autocommit", false);
        self.run.call(&mut self.owned, command)
    }

    /// Runs commands in the transaction, in their order.
    ///
    /// # Errors
    /// The error of the first that fails.
    pub fn call_all(&mut self, commands: &[DocBuf]) -> Result<()> {
        commands.iter().try_for_each(|command| self.call(command.clone()).map(drop))
    }

    /// Writes documents by the `$merge` of a stage.
    ///
    /// # Errors
    /// 13 Unauthorized if the owner may not insert into and update the target; those of the stage.
    pub fn merge(&mut self, docs: Vec<DocBuf>, stage: &DocBuf, variables: &DocBuf) -> Result<()> {
        let (service, definition) = (self.run.cx.service, self.run.definition);
        let interrupt = self.run.cx.interrupt;
        let targets = definition.plan.targets(&definition.db)?;
        for (db, collection) in &targets {
            self.owned.require((db, collection), Action::Insert)?;
            self.owned.require((db, collection), Action::Update)?;
        }
        let request = AggregateRequest {
            namespace: format!("{}.$cmd.aggregate", definition.db),
            pipeline: vec![stage.clone()],
            fed_by: Some("a job"),
            let_vars: variables.clone(),
            ..AggregateRequest::default()
        };
        let mut views = OpenViews::Fresh(FreshViews::new(&service.store)?);
        let params = service.exec_params(interrupt, service.read_clock());
        let mut execution = open_fed(&request, Box::new(docs.into_iter()), &views, params)?;
        let store = &service.store;
        let _writing = service.write_gate.enter(interrupt)?;
        if service.write_block.is_on() {
            return Err(Error::new(ErrorCode::UserWritesBlocked, "User writes blocked"));
        }
        let turn = self.session.join_transaction(store, self.number, None, interrupt)?;
        targets.iter().for_each(|(db, name)| turn.note_use(&format!("{db}.{name}")));
        let mut unit = turn.unit()?;
        let commit = CommitOptions::buffered();
        let written = write_results(&mut execution, &mut views, &mut unit, &commit, interrupt);
        drop(unit);
        written?;
        turn.leave();
        Ok(())
    }

    /// Stores the job's next row and commits. Returns false, and writes nothing, if the row or the
    /// definition is not the one that the step began with.
    fn commit(&mut self, job: &Job, next: &Job) -> Result<bool> {
        let (service, interrupt) = (self.run.cx.service, self.run.cx.interrupt);
        let _writing = service.write_gate.enter(interrupt)?;
        let stored = self.run.stored;
        let known = self.write(|writer| {
            let row = writer.job(&job.id)?;
            let known = row.is_some_and(|row| row == *job) && is_current(writer, stored)?;
            if known {
                writer.put_job(next)?;
            }
            Ok(known)
        })?;
        if known {
            let options = CommitOptions::buffered();
            self.session.commit_transaction(&service.store, self.number, options, interrupt)?;
        }
        Ok(known)
    }

    fn write<T>(&mut self, attempt: impl FnMut(&mut Writer) -> Attempt<T>) -> Result<T> {
        let (store, interrupt) = (&self.run.cx.service.store, self.run.cx.interrupt);
        let turn = self.session.join_transaction(store, self.number, None, interrupt)?;
        let mut unit = turn.unit()?;
        let written = (&mut unit as &mut dyn UnitOfWork).write_with(interrupt, attempt);
        drop(unit);
        let (answer, _) = written?;
        turn.leave();
        Ok(answer)
    }
}

impl Drop for JobTransaction<'_> {
    fn drop(&mut self) {
        self.session.abort_open(Some(self.number));
    }
}

/// Returns true for an error after which the transaction can succeed if it runs again.
fn is_conflict(error: &Error) -> bool {
    error.code() == ErrorCode::WriteConflict
        || error.labels().contains(&Label::TransientTransactionError)
}
