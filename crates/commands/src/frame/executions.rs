//! What an execution needs of the server: limits, clock, spill directory. A command completes it by
//! what its client asked for; a job runs with it as it is.

use crate::frame::reply;
use crate::frame::service::{Service, Topology, now_ms};
use quire_document::Timestamp;
use quire_executor::{ExecParams, ServerRows};
use quire_mql::context::InterruptCheck;
use quire_storage::Interrupt;
use std::sync::{Arc, Weak};

/// Returns an interrupt in the form that expressions check.
pub fn interrupt_check(interrupt: &Arc<Interrupt>) -> Arc<dyn InterruptCheck> {
    let interrupt = Arc::clone(interrupt);
    Arc::new(move || interrupt.check().map_err(reply::from_interruption))
}

impl Service {
    /// Returns `$$NOW` in milliseconds and `$$CLUSTER_TIME` (`None` on a standalone).
    #[inline]
    pub fn read_clock(&self) -> (i64, Option<Timestamp>) {
        let replicates = self.options.topology != Topology::Standalone;
        (now_ms(), replicates.then(|| self.clock.now()))
    }

    /// Returns the external parameters of an execution that `interrupt` ends. `clock` is what
    /// [`read_clock`](Self::read_clock) has returned for the whole operation.
    #[inline]
    pub fn exec_params(
        self: &Arc<Self>,
        interrupt: &Arc<Interrupt>,
        (now_ms, cluster_time): (i64, Option<Timestamp>),
    ) -> ExecParams {
        let mut params = ExecParams::new(Arc::clone(interrupt), now_ms);
        params.cluster_time = cluster_time;
        let parameters = &self.parameters.cached;
        params.disk_by_default = parameters.disk_by_default();
        params.no_table_scan = parameters.no_table_scan();
        params.server_rows = Some(Arc::downgrade(self) as Weak<dyn ServerRows>);
        params.stage_bytes_max = parameters.stage_bytes_max();
        params.group_bytes_max = parameters.group_bytes_max();
        if let Some(directory) = &self.spill_directory {
            params.spill_directory = Some(Arc::clone(directory));
        }
        params
    }
}
