//! Runs a pipeline: adds documents of the server as its source, and returns a cursor or writes the
//! results to a collection.

use crate::cursors::cursor_reply::{Opening, Rows};
use crate::frame::context::Context;
use crate::frame::reply::of_aggregate;
use crate::frame::service::Service;
use crate::read::{oplog, pipeline_sources, series_buckets};
use crate::write::statement_ids::StatementIds;
use quire_collections::WritePolicy;
use quire_document::{ArrayWriter, DocWriter};
use quire_error::Result;
use quire_executor::modify::write_results;
use quire_executor::{
    BatchEnd, BatchLimits, Examined, Execution, OpenViews, Views, open, open_fed,
};
use quire_mql::stage::find_stage;
use quire_planner::AggregateRequest;
use quire_session::{Autocommit, PlanSource, Source, WriteSettings};
use quire_storage::{CommitOptions, Durability, Interrupt};
use std::collections::VecDeque;
use std::sync::Arc;

/// Returns true if the last stage of a pipeline writes.
pub fn writes(request: &AggregateRequest) -> bool {
    let last = request.pipeline.last().and_then(|stage| stage.as_doc().first());
    last.and_then(|last| find_stage(last.key())).is_some_and(|row| row.facts.writes)
}

impl Context<'_> {
    /// Runs a pipeline and replies with its cursor. `policy` is that of a pipeline that writes.
    pub fn open_pipeline(
        &mut self,
        reply: &mut DocWriter<'_>,
        mut request: AggregateRequest,
        (opening, policy): (Opening<'_>, WritePolicy),
        views: &mut OpenViews<'_>,
    ) -> Result<()> {
        let rows = pipeline_sources::take(self, &mut request)?;
        let execution = match rows {
            Some(rows) => {
                open_fed(&request, Box::new(rows.into_iter()), views, self.exec_params())?
            }
            None if oplog::is_read(&request.namespace, views) => {
                oplog::open(self, &request, false, views)?
            }
            None => match series_buckets::series_of(&request.namespace, views) {
                Some(series) => series_buckets::open(self, &request, &series, views)?,
                None => open(&request, views, self.exec_params())?,
            },
        };
        if execution.writes() {
            return self
                .write_pipeline(reply, execution, (opening, policy), views)
                .map_err(|error| of_aggregate(&request.namespace, error));
        }
        self.tally.failed_early = false;
        let source = PlanSource::new(execution, views.time());
        self.open_cursor(reply, opening, Box::new(source), views)
            .map_err(|error| of_aggregate(&request.namespace, error))
    }

    /// Runs a pipeline that ends with `$out` or `$merge`, and replies with an empty cursor. With a
    /// batch size of 0 the cursor's first getMore runs it.
    fn write_pipeline(
        &mut self,
        reply: &mut DocWriter<'_>,
        mut execution: Execution,
        (opening, policy): (Opening<'_>, WritePolicy),
        views: &mut OpenViews<'_>,
    ) -> Result<()> {
        let commit = self.commit_options();
        if opening.batch_size == Some(0) {
            let service = Arc::clone(self.service);
            let later =
                Box::new(Later { execution, service, durability: commit.durability, policy });
            return self.open_cursor(reply, opening, later, views);
        }
        let mut unit = self.write_unit(COMMITS, &StatementIds::default(), 1, policy)?;
        unit.begin(0..1);
        match write_results(&mut execution, views, &mut unit, &commit, &self.interrupt) {
            Ok(committed) => unit.note_some(committed.as_ref()),
            Err(error) => return Err(self.failed_write(&unit, error)),
        }
        self.finish_writes(unit)?;
        let examined = execution.examined();
        let nothing = Box::new(Rows(VecDeque::new()));
        self.open_cursor(reply, Opening { batch_size: None, ..opening }, nothing, views)?;
        self.tally.examined = Some(examined);
        Ok(())
    }
}

/// The minimum number of commits of a pipeline that writes: documents, and putting them in place.
const COMMITS: usize = 2;

/// A pipeline that writes when its first batch is requested, and returns no documents.
struct Later {
    execution: Execution,
    service: Arc<Service>,
    durability: Durability,
    policy: WritePolicy,
}

impl Source for Later {
    fn next_batch(
        &mut self,
        views: &mut dyn Views,
        interrupt: &Arc<Interrupt>,
        limits: BatchLimits,
        _: &mut ArrayWriter<'_>,
    ) -> Result<BatchEnd> {
        if limits.docs_max == 0 {
            return Ok(BatchEnd::of_rows(0, true));
        }
        let _writing = self.service.write_gate.enter(interrupt)?;
        views.renew()?;
        let (durability, policy) = (self.durability, self.policy);
        let settings = WriteSettings { policy, durability, limit: None, commits: COMMITS };
        let mut unit = Autocommit::writing(&self.service.store, settings, None);
        unit.begin(0..1);
        let commit = CommitOptions { durability, ..CommitOptions::default() }.ended_by(interrupt);
        let written = write_results(&mut self.execution, views, &mut unit, &commit, interrupt);
        unit.note_some(written?.as_ref());
        unit.finish()?;
        Ok(BatchEnd::of_rows(0, false))
    }

    fn examined(&self) -> Option<Examined> {
        Some(self.execution.examined())
    }
}
