//! A running plan as the source of a cursor's batches.

use crate::context::Context;
use quire_collections::Store;
use quire_document::ArrayWriter;
use quire_error::Result;
use quire_executor::{BatchEnd, BatchLimits, Examined, ExecParams, Execution, FreshViews};
use quire_session::Source;
use quire_storage::Interrupt;
use std::sync::Arc;

/// A plan that runs. Its view lives from one command's begin to its end.
pub struct Running {
    execution: Execution,
    store: Arc<Store>,
    view: Option<FreshViews>,
}

impl Running {
    /// The execution with the view that it was planned on, for its first batch.
    pub fn new(execution: Execution, store: &Arc<Store>, view: FreshViews) -> Self {
        let store = Arc::clone(store);
        Running { execution, store, view: Some(view) }
    }
}

impl Source for Running {
    fn next_batch(
        &mut self,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        let mut view = match self.view.take() {
            Some(view) => view,
            None => FreshViews::new(&self.store)?,
        };
        self.execution.next_batch(&mut view, interrupt, limits, out)
    }

    fn examined(&self) -> Option<Examined> {
        Some(self.execution.examined())
    }
}

impl Context<'_> {
    /// A view of everything committed so far.
    pub fn views(&self) -> Result<FreshViews> {
        FreshViews::new(&self.service.store)
    }

    /// What an execution of this command is given from outside.
    pub fn exec_params(&self) -> ExecParams {
        let service = self.service;
        let (now_ms, cluster_time) = self.clock();
        let mut params = ExecParams::new(Arc::clone(&self.interrupt), now_ms);
        params.cluster_time = cluster_time;
        params.api_strict = self.generic.api.strict == Some(true);
        let limit = service.parameters.number("internalQueryMaxBlockingSortMemoryUsageBytes");
        params.stage_bytes_max = usize::try_from(limit).unwrap_or(params.stage_bytes_max);
        if let Some(directory) = &service.spill_directory {
            params.spill_directory = Some(Arc::clone(directory));
        }
        params
    }
}
