//! The unit of work of a reading command, and the parameters of its execution.

use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use quire_error::Result;
use quire_executor::{ExecParams, ServerRows};
use quire_session::{Autocommit, Unit};
use quire_storage::ClusterTime;
use std::sync::{Arc, Weak};

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

    /// Returns the external parameters of an execution for this command.
    pub fn exec_params(&self) -> ExecParams {
        let service = self.service;
        let (now_ms, cluster_time) = self.clock();
        let mut params = ExecParams::new(Arc::clone(&self.interrupt), now_ms);
        params.cluster_time = cluster_time;
        let parameters = &service.parameters.cached;
        params.disk_by_default = parameters.disk_by_default();
        params.no_table_scan = parameters.no_table_scan();
        params.api_strict = self.generic.api.strict == Some(true);
        params.server_rows = Some(Arc::downgrade(service) as Weak<dyn ServerRows>);
        params.as_written = self.keeps_pipelines();
        params.stage_bytes_max = parameters.stage_bytes_max();
        params.group_bytes_max = parameters.group_bytes_max();
        if let Some(directory) = &service.spill_directory {
            params.spill_directory = Some(Arc::clone(directory));
        }
        params
    }
}
