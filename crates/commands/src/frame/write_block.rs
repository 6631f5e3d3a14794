//! The block of users' writes that `setUserWriteBlockMode` sets. It outlives the process.

use crate::frame::command::{Command, Kind};
use crate::frame::context::Context;
use crate::frame::transactions::LOOK;
use crate::frame::write_gate::Writing;
use quire_access::{Action, Target};
use quire_collections::Store;
use quire_document::doc;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// The name of the stored setting.
const SETTING: &str = "userWriteBlock";

/// The reasons that a block can have.
pub const REASONS: [&str; 3] =
    ["Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"];

/// Whether the writes of users are refused, and why.
pub struct WriteBlock {
    is_on: AtomicBool,
    /// Held while the block is changed.
    reason: Mutex<Option<&'static str>>,
}

impl WriteBlock {
    /// Reads the stored block.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let stored = store.setting(SETTING)?;
        let reason = stored.as_ref().and_then(|stored| stored.get("reason")?.as_str());
        let reason = reason.and_then(|name| REASONS.into_iter().find(|known| *known == name));
        Ok(WriteBlock { is_on: AtomicBool::new(reason.is_some()), reason: Mutex::new(reason) })
    }

    /// Returns true if the writes of users are refused.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }
}

impl<'c> Context<'c> {
    /// Sets or ends the block, durably. When it has set the block, no write of a user is under way:
    /// it waits for the running writes, and for the transactions that have written. If the wait ends
    /// with an error, there is no block.
    ///
    /// # Errors
    /// `IllegalOperation` if there is a block for another reason; the error of an interrupted wait;
    /// the errors of the commit.
    pub fn set_write_block(&self, on: bool, reason: &'static str) -> Result<()> {
        let service = self.service;
        let block = &service.write_block;
        // Like a write it waits for `fsyncUnlock`.
        drop(service.write_gate.enter(&self.interrupt)?);
        let mut current = self.lock_interruptibly(&block.reason)?;
        if current.is_some_and(|current| current != reason) {
            let what = if on { "acquire" } else { "release" };
            let text = format!(
                "Cannot {what} user writes critical section with different reason than the already-set reason"
            );
            return Err(Error::new(ErrorCode::IllegalOperation, text));
        }
        let next = on.then_some(reason);
        if *current == next {
            return Ok(());
        }
        // New writes are refused from here on.
        block.is_on.store(true, Ordering::SeqCst);
        let awaited = if on { self.await_writes() } else { Ok(()) };
        let stored = next.map_or_else(|| doc! {}, |reason| doc! { "reason": reason });
        let set = awaited.and_then(|()| {
            let _writing = service.write_gate.enter(&self.interrupt)?;
            service.store.put_setting(SETTING, stored.as_doc(), CommitOptions::synced())
        });
        if set.is_ok() {
            *current = next;
        }
        block.is_on.store(current.is_some(), Ordering::SeqCst);
        // Expiry waits while there is a block.
        service.store.job_bell().ring();
        set
    }

    /// Waits for the lock on the block. Its holder may wait for writes for a long time.
    fn lock_interruptibly<'l, T>(&self, lock: &'l Mutex<T>) -> Result<MutexGuard<'l, T>> {
        loop {
            match lock.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => self.pause(LOOK)?,
            }
        }
    }

    /// Waits for the writes that have passed the check of the block, and for the transactions that
    /// have written. Their commits are not refused.
    fn await_writes(&self) -> Result<()> {
        self.service.write_gate.drain(&self.interrupt)?;
        let _waiting = self.interrupt.wait_for_lock();
        let mut open = self.service.sessions.writing_transactions();
        while !open.is_empty() {
            self.pause(LOOK)?;
            let now = self.service.sessions.writing_transactions();
            open.retain(|transaction| now.contains(transaction));
        }
        Ok(())
    }

    /// Passes the write gate with a write that a block refuses.
    ///
    /// # Errors
    /// 371 UserWritesBlocked; the error of an interrupted wait.
    pub fn enter_unblocked(&self) -> Result<Writing<'c>> {
        self.check_write_block()?;
        let writing = self.service.write_gate.enter(&self.interrupt)?;
        // A block that began since has either counted this write, or is seen here.
        self.check_write_block()?;
        Ok(writing)
    }

    /// Refuses a write of a user while there is a block. The databases of the server itself, and
    /// users with the privilege `bypassWriteBlockingMode`, are not subject to it.
    ///
    /// # Errors
    /// 371 UserWritesBlocked.
    fn check_write_block(&self) -> Result<()> {
        if !self.service.write_block.is_on() {
            return Ok(());
        }
        // These commands can write to another database than the one in which they run.
        let writes_elsewhere = ["aggregate", "applyOps", "bulkWrite", "renameCollection"];
        let is_of_server = matches!(self.db, "admin" | "config" | "local")
            && !writes_elsewhere.contains(&self.command.name);
        let has_accounts = self.service.access.enforced;
        let may_bypass =
            || has_accounts && self.may(Target::Cluster, Action::BypassWriteBlockingMode);
        if is_of_server || may_bypass() {
            return Ok(());
        }
        Err(Error::new(ErrorCode::UserWritesBlocked, "User writes blocked"))
    }
}

/// Returns true if a block applies to the command. Users and roles are data of the server, and the
/// end of a transaction makes only visible what was allowed.
pub fn is_blockable(command: &Command) -> bool {
    command.kind == Kind::Write
        && command.audit.is_none()
        && !matches!(command.name, "commitTransaction" | "abortTransaction")
}
