//! The units of work through which a command reads and writes, and the parameters of its executions.

use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use quire_collections::{Store, WritePolicy};
use quire_error::Result;
use quire_executor::ExecParams;
use quire_session::{Autocommit, Unit, WriteSettings};
use quire_storage::{ClusterTime, CommitOptions};
use std::sync::Arc;

impl Context<'_> {
    /// Returns the unit of work of a command that reads: its transaction, else the latest committed
    /// state; for read concern `snapshot` the state at the requested time, or at the latest.
    ///
    /// # Errors
    /// The errors of joining the transaction.
    pub fn unit(&self) -> Result<Unit> {
        if self.in_transaction() {
            return self.transaction_unit().map(Unit::Transaction);
        }
        let time = (self.read_level() == ReadLevel::Snapshot).then(|| {
            let asked = self.generic.read_concern.at_cluster_time;
            ClusterTime(asked.unwrap_or_else(|| self.service.clock.now()).to_u64())
        });
        Ok(self.unit_at(time))
    }

    /// Returns the unit of work of a command that continues to read at a time, or the latest
    /// committed state.
    pub fn unit_at(&self, time: Option<ClusterTime>) -> Unit {
        Unit::Autocommit(Autocommit::reading(&self.service.store, time))
    }

    /// Returns the unit of work of a command that changes the catalog or collections of the server
    /// itself, such as users. Inside a transaction it is the transaction.
    ///
    /// # Errors
    /// The errors of joining the transaction.
    pub fn server_unit(&self) -> Result<Unit> {
        if self.in_transaction() {
            return self.transaction_unit().map(Unit::Transaction);
        }
        let CommitOptions { durability, .. } = self.commit_options();
        Ok(Unit::Autocommit(Autocommit::of_server(&self.service.store, durability)))
    }

    /// Returns the unit of work of a command that writes documents in one commit. Inside a
    /// transaction it is the transaction.
    ///
    /// # Errors
    /// The errors of joining the transaction.
    pub fn writing_unit(&self, policy: WritePolicy) -> Result<Unit> {
        if self.in_transaction() {
            return self.transaction_unit().map(Unit::Transaction);
        }
        let CommitOptions { durability, .. } = self.commit_options();
        let settings = WriteSettings { policy, durability, limit: None, commits: 1 };
        Ok(Unit::Autocommit(Autocommit::writing(&self.service.store, settings, None)))
    }

    /// Runs a statement that changes the catalog in the command's unit of work. The statement gets
    /// the store and the commit options.
    ///
    /// # Errors
    /// Those of [`Unit::change_catalog`].
    pub fn change_catalog<T>(
        &self,
        statement: impl FnOnce(&Arc<Store>, &CommitOptions) -> Result<T>,
    ) -> Result<T> {
        self.server_unit()?.change_catalog(&self.interrupt, statement)
    }

    /// Returns the external parameters of an execution for this command.
    pub fn exec_params(&self) -> ExecParams {
        let mut params = self.service.exec_params(&self.interrupt, self.clock());
        params.query_settings = self.query_settings.clone();
        params.api_strict = self.generic.api.strict == Some(true);
        params.as_written = self.keeps_pipelines();
        params
    }
}
