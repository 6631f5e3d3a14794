//! `$group`: batches of documents are added to a table of groups. If the memory is not enough, the
//! states of groups are saved in runs on disk, which are merged by key.

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, DocWriter, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::accumulator::State;
use quire_mql::stage::Group;
use quire_planner::explain::NodeStats;

use crate::columns::{Columns, Grouping};
use crate::env::{Env, Run, Scope};
use crate::grouping::runs::{MergedGroup, MergedGroups, SpilledGroups};
use crate::grouping::table::GroupTable;
use crate::holding::{Holding, reserve_built};
use crate::operators::chain::{Sent, StepCounts};
use crate::operators::filtering::{renew, reset};
use crate::operators::{BoxedOperator, Filling, Operator, Passed, at_most};
use crate::row::Row;
use crate::taking::{Given, Taken};

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;
/// The rows counted at a time.
const ROWS_COUNTED_MAX: u64 = 4096;
/// The rows grouped at a time.
const BATCH_ROWS: usize = 256;

/// The operator of `$group`: reads all rows, then returns the groups.
pub(crate) struct GroupOp {
    input: BoxedOperator,
    grouping: Grouping,
    /// How many documents each step of the chain has let through.
    passed: StepCounts,
    output: Output,
    /// The memory of the groups in `output`.
    holding: Holding,
    arena: Bump,
    stats: NodeStats,
}

enum Output {
    NotYet,
    /// Groups in memory, and the number of the next one.
    Memory(GroupTable, usize),
    Runs(MergedGroups),
}

impl GroupOp {
    pub fn new(input: BoxedOperator, grouping: Grouping) -> Self {
        GroupOp {
            passed: grouping.chain.none_passed(),
            input,
            grouping,
            output: Output::NotYet,
            holding: Holding::default(),
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// A `$group` that has taken all of its input, of which `input` knows no more than the counters.
    pub fn of_all(
        input: BoxedOperator,
        grouping: Grouping,
        all: Intake,
        env: &Env,
    ) -> Result<Self> {
        let mut group = GroupOp::new(input, grouping);
        group.take_all(all, env)?;
        Ok(group)
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let scope = run.scope();
        let mut intake = Intake::new(&self.grouping, scope.env);
        let mut rows: Vec<Row> = Vec::new();
        while self.grouping.only_counts && self.input.counts() {
            let Passed { rows, more } = self.input.pass(run, ROWS_COUNTED_MAX)?;
            intake.take_counted(&self.grouping, rows, scope)?;
            if !more {
                return self.take_all(intake, scope.env);
            }
        }
        loop {
            if !self.grouping.chain.reads_metadata {
                let give = &mut |given| intake.take(&self.grouping, given, scope);
                self.input.feed(run, &self.grouping, give)?;
            }
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            intake.take_rows(&self.grouping, &mut rows, scope)?;
            rows.clear();
            if !more {
                return self.take_all(intake, scope.env);
            }
        }
    }

    fn take_all(&mut self, all: Intake, env: &Env) -> Result<()> {
        let Intake { passed, mut table, mut runs, .. } = all;
        self.passed.add(&passed);
        self.output = if runs.is_empty() {
            self.holding = runs.holding;
            Output::Memory(table, 0)
        } else {
            if table.len() > 0 {
                runs.spill(&mut table, env)?;
            }
            self.stats.spills += runs.spills;
            Output::Runs(runs.merge(env)?)
        };
        Ok(())
    }

    /// Returns the document of the next group.
    fn next_doc(&mut self, scope: Scope<'_>) -> Result<Option<DocBuf>> {
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), &scope.env.shared);
        let group = &self.grouping.group;
        match &mut self.output {
            Output::NotYet => Ok(None),
            Output::Memory(table, next) => {
                let at = std::mem::replace(next, *next + 1);
                let Some(key) = table.key(at) else { return Ok(None) };
                output(group, key, table.states(at), &context).map(Some)
            }
            Output::Runs(merge) => {
                let entry = merge.next(group, &context.with_variables(scope.variables))?;
                let Some(MergedGroup { key, states }) = entry else { return Ok(None) };
                let states = states.iter().map(|state| &**state);
                output(group, &key, states, &context).map(Some)
            }
        }
    }
}

/// Adds documents to the groups.
pub(crate) struct Intake {
    passed: StepCounts,
    table: GroupTable,
    runs: SpilledGroups,
    arena: Bump,
}

impl Intake {
    pub fn new(grouping: &Grouping, env: &Env) -> Self {
        Intake {
            passed: grouping.chain.none_passed(),
            table: GroupTable::new(&grouping.group, env.shared.collator.as_ref()),
            runs: SpilledGroups::default(),
            arena: Bump::new(),
        }
    }

    /// Takes what was read for the `$group`.
    pub fn take(&mut self, grouping: &Grouping, given: Given, scope: Scope<'_>) -> Result<()> {
        match given {
            Given::Rows(mut rows) => self.take_rows(grouping, &mut rows, scope),
            Given::Taken(Taken::Columns(columns)) => self.take_columns(grouping, &columns, scope),
            Given::Taken(_) => Err(Taken::mistaken("$group")),
        }
    }

    /// Takes rows, whose documents need not be known.
    pub fn take_rows(
        &mut self,
        grouping: &Grouping,
        rows: &mut [Row],
        scope: Scope<'_>,
    ) -> Result<()> {
        rows.chunks_mut(BATCH_ROWS).try_for_each(|rows| {
            scope.env.check_interrupt()?;
            rows.iter_mut().try_for_each(Row::know_doc)?;
            if grouping.chain.is_empty() && !grouping.chain.reads_metadata {
                let docs: Vec<Doc<'_>> = rows.iter().map(Row::doc).collect();
                self.take_batch(grouping, &docs, scope)
            } else {
                self.take_one_by_one(grouping, rows, scope)
            }
        })
    }

    /// Takes documents of which the `$group` reads nothing.
    fn take_counted(&mut self, grouping: &Grouping, rows: u64, scope: Scope<'_>) -> Result<()> {
        let docs = [Doc::empty(); BATCH_ROWS];
        let mut left = rows;
        while left > 0 {
            let count = at_most(left, BATCH_ROWS);
            scope.env.check_interrupt()?;
            self.take_batch(grouping, docs.get(..count).unwrap_or_default(), scope)?;
            left -= count as u64;
        }
        Ok(())
    }

    /// Groups documents in one batch. If one of them fails, groups them one by one, so that the
    /// documents before it count and the first error is returned.
    fn take_batch(
        &mut self,
        grouping: &Grouping,
        docs: &[Doc<'_>],
        scope: Scope<'_>,
    ) -> Result<()> {
        let Scope { env, variables } = scope;
        let shared = &env.shared;
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), shared);
        if self.table.add_batch(grouping, docs, &context.with_variables(variables))? {
            return self.runs.limit(&mut self.table, env);
        }
        for doc in docs {
            renew(&mut self.arena, env)?;
            let context = EvalContext::new(&self.arena, *doc, shared);
            self.table.add(grouping, &context.with_variables(variables))?;
            self.runs.limit(&mut self.table, env)?;
        }
        Ok(())
    }

    /// Groups documents by the columns that a thread computed.
    fn take_columns(
        &mut self,
        grouping: &Grouping,
        columns: &Columns,
        scope: Scope<'_>,
    ) -> Result<()> {
        reset(&mut self.arena);
        self.passed.add(&columns.passed);
        let Scope { env, variables } = scope;
        let context = EvalContext::new(&self.arena, Doc::empty(), &env.shared);
        let context = context.with_variables(variables);
        self.table.add_columns(grouping, columns, &context)?;
        self.runs.limit(&mut self.table, env)
    }

    /// Groups the documents that the chain returns for each row.
    fn take_one_by_one(
        &mut self,
        grouping: &Grouping,
        rows: &[Row],
        scope: Scope<'_>,
    ) -> Result<()> {
        let Intake { passed, table, runs, arena } = self;
        // One document can become very many.
        let mut take = |context: &EvalContext<'_>| {
            table.add(grouping, context)?;
            runs.limit(table, scope.env)
        };
        let sent = |row| Sent { row, scope };
        rows.iter().try_for_each(|row| grouping.chain.run(sent(row), arena, passed, &mut take))
    }
}

/// Returns the output document of a group.
fn output<'s>(
    group: &Group,
    key: &ValueBuf,
    states: impl Iterator<Item = &'s dyn State>,
    context: &EvalContext<'_>,
) -> Result<DocBuf> {
    let mut bytes = Vec::with_capacity(64);
    let mut writer = DocWriter::new(&mut bytes);
    writer.append("_id", key);
    for ((name, _), state) in group.fields().iter().zip(states) {
        writer.append(name, state.result(context)?);
    }
    writer.finish();
    reserve_built(bytes.len())?;
    let doc = DocBuf::from_valid_bytes(bytes);
    context.check_depth(doc.as_doc().into())?;
    Ok(doc)
}

impl Operator for GroupOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if matches!(self.output, Output::NotYet) {
            run.for_all(|run| self.collect(run))?;
        }
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            let Some(doc) = self.next_doc(run.scope())? else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            self.stats.returned += 1;
            filling.push(Row::made(doc));
        }
        Ok(true)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        (self.output, self.holding) = (Output::NotYet, Holding::default());
        self.input.restart(rows)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        let below = self.grouping.chain.stats(&self.passed, self.input.stats());
        NodeStats { inputs: vec![below], ..self.stats.clone() }
    }
}
