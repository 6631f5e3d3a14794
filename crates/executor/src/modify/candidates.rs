//! The records that a statement's query finds, by its plan. Hints only: whoever writes looks
//! again.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_collections::{RecordId, View};
use quire_error::Result;
use quire_planner::{FindQuery, Plan, plan_find};

use crate::UnitOfWork;
use crate::env::{Env, Run, Scope};
use crate::examined::{Counters, Examined};
use crate::modify::statement::Statement;
use crate::opening::build::build;
use crate::opening::statistics::ViewStatistics;
use crate::operators::BoxedOperator;
use crate::row::Row;
use crate::views::Views;

/// A running plan.
pub(crate) struct Candidates {
    collection: Arc<Collection>,
    operator: BoxedOperator,
    generation: u64,
    done: bool,
    /// The plan walks an index that the update may change, so it may meet a record again.
    meets_again: bool,
    plan: Arc<Plan>,
    rows: Vec<Row>,
    found: Vec<RecordId>,
}

/// Bytes of documents that a batch of candidates may have passed through memory.
const BATCH_BYTES: usize = 4 << 20;
/// Rows that are pulled at once: few first, for they may be large.
const STEP_FIRST: usize = 16;
const STEP_MAX: usize = 256;

impl Candidates {
    /// Plans the statement's query; `None` if the collection does not exist.
    pub fn open(unit: &dyn UnitOfWork, statement: &Statement) -> Result<Option<Self>> {
        Self::on(&unit.views()?.view(), statement)
    }

    fn on(view: &View<'_>, statement: &Statement) -> Result<Option<Self>> {
        let request = &statement.query.request;
        let namespace = Namespace::parse(&request.namespace)?;
        let Some(collection) = view.catalog().lookup(&namespace).cloned() else { return Ok(None) };
        let mut query = FindQuery::of_filter(request, Some(&statement.filter));
        query.compile_sort(&statement.env.parse)?;
        let plan = plan_find(&query, &ViewStatistics::new(*view))?;
        plan.root.for_each_scan(&mut |scan| scan.index.note_use());
        let meets_again = may_meet_again(&plan, statement);
        let operator = build(&plan.root, None)?;
        Ok(Some(Candidates {
            collection,
            operator,
            generation: 0,
            done: false,
            meets_again,
            plan: Arc::new(plan),
            rows: Vec::new(),
            found: Vec::new(),
        }))
    }

    /// The collection that is read.
    pub fn collection_id(&self) -> quire_catalog::CollectionId {
        self.collection.id
    }

    /// Whether a record that was written may come again.
    pub fn meets_again(&self) -> bool {
        self.meets_again
    }

    /// Adds what it has looked at to what its statement has.
    pub fn note_examined(&self, examined: &mut Examined) {
        examined.counters.add(&Counters::of(&self.operator.stats()));
        examined.plan = Some(Arc::clone(&self.plan));
    }

    /// True once there are no more.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The next records, at most `max`, on a fresh view (a transaction's own if there is one).
    /// Empty only at the end.
    pub fn next(&mut self, unit: &dyn UnitOfWork, env: &Env, max: usize) -> Result<&[RecordId]> {
        self.pull(&mut unit.views()?, env, max)?;
        Ok(&self.found)
    }

    fn pull(&mut self, views: &mut dyn Views, env: &Env, max: usize) -> Result<()> {
        self.found.clear();
        if self.done {
            return Ok(());
        }
        let variables = env.variable_values();
        // Every pull reads on another view, so leaves reposition.
        let scope = Scope { env, variables: &variables };
        let mut run = Run::new(scope, views, self.generation + 1);
        let (mut step, mut bytes) = (STEP_FIRST.min(max), 0);
        while !self.done && self.found.len() < max && bytes < BATCH_BYTES {
            self.rows.clear();
            let wanted = step.min(max - self.found.len());
            self.done = !self.operator.next(&mut run, wanted, &mut self.rows)?;
            let pulled: usize = self.rows.iter().map(Row::size).sum();
            bytes += pulled;
            self.found.extend(self.rows.drain(..).map(|row| row.record));
            if pulled < BATCH_BYTES / 16 {
                step = (step * 4).min(STEP_MAX);
            }
        }
        self.generation = run.generation;
        Ok(())
    }
}

/// A scan in record order never comes back to a record; one of an index does if the update
/// moves the record's keys.
fn may_meet_again(plan: &Plan, statement: &Statement) -> bool {
    let Some(update) = &statement.update else { return false };
    let mut again = false;
    plan.root.for_each_scan(&mut |scan| {
        again |= scan.keys.fields().iter().any(|field| update.may_change(&field.path));
    });
    again
}
