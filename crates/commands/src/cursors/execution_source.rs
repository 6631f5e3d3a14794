//! What a command's reads are given: the unit of work, and the parameters of an execution.

use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use quire_error::Result;
use quire_executor::{ExecParams, ServerRows};
use quire_session::{Autocommit, Unit};
use quire_storage::ClusterTime;
use std::sync::{Arc, Weak};

impl Context<'_> {
    /// The unit of work of a command that reads: its transaction; else everything committed so far;
    /// at level snapshot the state at one time, the one asked for or the latest.
    ///
    /// # Errors
    /// What the state of the transaction refuses.
    pub fn unit(&self) -> Result<Unit> {
        if self.in_transaction() {
            return self.transaction_unit().map(Unit::Transaction);
        }
        let time = (self.read_level() == ReadLevel::Snapshot).then(|| {
            let asked = self.generic.read_concern.at_cluster_time;
            ClusterTime(asked.unwrap_or_else(|| self.service.cluster_time()).to_u64())
        });
        Ok(self.unit_at(time))
    }

    /// The unit of work of a command that goes on reading at a time, or at what is committed.
    pub fn unit_at(&self, time: Option<ClusterTime>) -> Unit {
        Unit::Autocommit(Autocommit::reading(&self.service.store, time))
    }

    /// What an execution of this command is given from outside.
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
