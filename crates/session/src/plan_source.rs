//! A running plan as the source of a cursor's batches.

use std::sync::Arc;

use quire_document::ArrayWriter;
use quire_error::Result;
use quire_executor::{Awaits, BatchEnd, BatchLimits, Examined, Execution, Views};
use quire_storage::{ClusterTime, Interrupt};

use crate::Source;

/// A running plan. It holds no view between two batches.
pub struct PlanSource {
    execution: Execution,
    time: Option<ClusterTime>,
    awaits: Option<Awaits>,
}

impl PlanSource {
    /// Returns a source over `execution`. `time` is the time of its reads if they all have the same
    /// one.
    pub fn new(execution: Execution, time: Option<ClusterTime>) -> Self {
        PlanSource { execution, time, awaits: None }
    }

    /// If `awaiting` is true and the plan follows commits, the getMores of the cursor wait for
    /// documents.
    #[must_use]
    pub fn awaiting(self, awaiting: bool) -> Self {
        let awaits = self.execution.awaits().filter(|_| awaiting);
        PlanSource { awaits, ..self }
    }
}

impl Source for PlanSource {
    fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        out: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        self.execution.next_batch(views, interrupt, limits, out)
    }

    fn examined(&self) -> Option<Examined> {
        Some(self.execution.examined())
    }

    fn awaits(&self) -> Option<Awaits> {
        self.awaits
    }

    fn read_time(&self) -> Option<ClusterTime> {
        self.time
    }
}
