//! A running plan as the source of a cursor's batches.

use crate::frame::concern::ReadLevel;
use crate::frame::context::Context;
use quire_collections::Store;
use quire_document::ArrayWriter;
use quire_error::Result;
use quire_executor::{BatchEnd, BatchLimits, Examined, ExecParams, Execution, FreshViews};
use quire_session::Source;
use quire_storage::{ClusterTime, Interrupt};
use std::sync::Arc;

/// A plan that runs. Its view lives from one command's begin to its end; where the time of the
/// reads is fixed, the next command opens one of the same time.
pub struct Running {
    execution: Execution,
    store: Arc<Store>,
    view: Option<FreshViews>,
    time: Option<ClusterTime>,
}

impl Running {
    /// The execution with the view that it was planned on, for its first batch.
    pub fn new(execution: Execution, store: &Arc<Store>, view: FreshViews) -> Self {
        let store = Arc::clone(store);
        Running { execution, store, time: view.time(), view: Some(view) }
    }
}

impl Source for Running {
    fn next_batch(
        &mut self,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        let mut view = match (self.view.take(), self.time) {
            (Some(view), _) => view,
            (None, Some(time)) => FreshViews::at(&self.store, time)?,
            (None, None) => FreshViews::new(&self.store)?,
        };
        self.execution.next_batch(&mut view, interrupt, limits, out)
    }

    fn examined(&self) -> Option<Examined> {
        Some(self.execution.examined())
    }

    fn read_time(&self) -> Option<ClusterTime> {
        self.time
    }
}

impl Context<'_> {
    /// A view of everything committed so far; at level snapshot the state at one time, the one
    /// asked for or the latest.
    ///
    /// # Errors
    /// 239 SnapshotTooOld for a time that lies before the history.
    pub fn views(&self) -> Result<FreshViews> {
        let store = &self.service.store;
        if self.read_level() != ReadLevel::Snapshot {
            return FreshViews::new(store);
        }
        let asked = self.generic.read_concern.at_cluster_time;
        let time = asked.unwrap_or_else(|| self.service.cluster_time());
        FreshViews::at(store, ClusterTime(time.to_u64()))
    }

    /// What an execution of this command is given from outside.
    pub fn exec_params(&self) -> ExecParams {
        let service = self.service;
        let (now_ms, cluster_time) = self.clock();
        let mut params = ExecParams::new(Arc::clone(&self.interrupt), now_ms);
        params.cluster_time = cluster_time;
        params.disk_by_default = service.parameters.flag("allowDiskUseByDefault");
        params.api_strict = self.generic.api.strict == Some(true);
        let limit = |name| usize::try_from(service.parameters.number(name)).unwrap_or(usize::MAX);
        params.stage_bytes_max = limit("internalQueryMaxBlockingSortMemoryUsageBytes");
        params.group_bytes_max = limit("internalDocumentSourceGroupMaxMemoryBytes");
        if let Some(directory) = &service.spill_directory {
            params.spill_directory = Some(Arc::clone(directory));
        }
        params
    }
}
