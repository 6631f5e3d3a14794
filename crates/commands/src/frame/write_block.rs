//! The block of users' writes that `setUserWriteBlockMode` sets. It outlives the process.

use crate::frame::command::{Command, Kind};
use crate::frame::context::Context;
use crate::frame::service::Service;
use quire_access::{Action, Target};
use quire_collections::Store;
use quire_document::doc;
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the stored setting.
const SETTING: &str = "userWriteBlock";

/// The reasons that a block can have.
pub const REASONS: [&str; 3] =
    ["Unspecified", "ClusterToClusterMigrationInProgress", "DiskUseThresholdExceeded"];

/// Whether the writes of users are refused, and why.
pub struct WriteBlock {
    is_on: AtomicBool,
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
        self.is_on.load(Ordering::Relaxed)
    }

    /// Sets or ends the block, durably.
    ///
    /// # Errors
    /// `IllegalOperation` if there is a block for another reason; the errors of the commit.
    pub fn set(&self, service: &Service, on: bool, reason: &'static str) -> Result<()> {
        let mut current = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
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
        let stored = next.map_or_else(|| doc! {}, |reason| doc! { "reason": reason });
        service.store.put_setting(SETTING, stored.as_doc(), CommitOptions::synced())?;
        *current = next;
        self.is_on.store(on, Ordering::Relaxed);
        // Expiry waits while there is a block.
        service.store.job_bell().ring();
        Ok(())
    }
}

impl Context<'_> {
    /// Refuses a write of a user while there is a block. The databases of the server itself, and
    /// users with the privilege `bypassWriteBlockingMode`, are not subject to it.
    ///
    /// # Errors
    /// 371 UserWritesBlocked.
    pub fn check_write_block(&self) -> Result<()> {
        // These commands can write to another database than the one in which they run.
        let writes_elsewhere = ["aggregate", "applyOps", "bulkWrite", "renameCollection"];
        let is_of_server = matches!(self.db, "admin" | "config" | "local")
            && !writes_elsewhere.contains(&self.command.name);
        if !self.service.write_block.is_on() || is_of_server {
            return Ok(());
        }
        let has_accounts = self.service.access.enforced;
        if has_accounts && self.may(Target::Cluster, Action::BypassWriteBlockingMode) {
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
