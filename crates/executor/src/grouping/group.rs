//! `$group`: batches of documents are added to a table of groups. If the memory is not enough, the
//! states of groups are saved in runs on disk, which are merged by key.

use std::sync::Arc;

use bumpalo::Bump;
use quire_document::{Doc, DocBuf, DocWriter, ValueBuf};
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::accumulator::State;
use quire_mql::stage::Group;
use quire_planner::explain::NodeStats;

use crate::columns::{Columns, Grouping};
use crate::env::{Run, Scope};
use crate::grouping::runs::{MergedGroup, MergedGroups, SpilledGroups};
use crate::grouping::table::GroupTable;
use crate::operators::chain::{Chain, ChainOp, Sent, StepCounts};
use crate::operators::filtering::{renew, reset};
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::row::Row;
use crate::scans::collection_scan::{CollectionScan, Given};

/// The rows pulled at a time.
const ROWS_MAX: usize = 1024;
/// The rows grouped at a time.
const BATCH_ROWS: usize = 256;

/// The operator of `$group`: reads all rows, then returns the groups.
pub(crate) struct GroupOp {
    source: Source,
    grouping: Grouping,
    /// How many documents each step of the chain has let through.
    passed: StepCounts,
    output: Output,
    arena: Bump,
    stats: NodeStats,
}

/// The input of the `$group`.
pub(crate) enum Source {
    Rows(BoxedOperator),
    /// A scan whose documents are only grouped: its threads compute the columns.
    Scan(Box<CollectionScan>),
}

enum Output {
    NotYet,
    /// Groups in memory, and the number of the next one.
    Memory(GroupTable, usize),
    Runs(MergedGroups),
}

impl GroupOp {
    pub fn new(source: Source, chain: Chain, group: Arc<Group>) -> Self {
        GroupOp {
            passed: chain.none_passed(),
            source,
            grouping: Grouping::new(chain, group),
            output: Output::NotYet,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let scope = run.scope();
        let env = scope.env;
        let mut intake = Intake {
            grouping: &self.grouping,
            passed: &mut self.passed,
            scope,
            table: GroupTable::new(&self.grouping.group, env.shared.collator.as_ref()),
            runs: SpilledGroups::default(),
            arena: Bump::new(),
        };
        let mut rows: Vec<Row> = Vec::new();
        while self.source.operator_mut().next(run, ROWS_MAX, &mut rows)? {
            intake.take(&mut rows)?;
            rows.clear();
            if let Source::Scan(scan) = &mut self.source {
                scan.feed(run, &self.grouping, &mut |given| match given {
                    Given::Rows(mut rows) => intake.take(&mut rows),
                    Given::Columns(columns) => intake.take_columns(&columns),
                })?;
            }
        }
        intake.take(&mut rows)?;
        let Intake { mut table, mut runs, .. } = intake;
        self.output = if runs.is_empty() {
            Output::Memory(table, 0)
        } else {
            if table.len() > 0 {
                runs.spill(&mut table, env)?;
            }
            self.stats.spills = runs.spills;
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

impl Source {
    /// Returns the operator of the chain above this source.
    pub fn through(self, chain: Chain) -> BoxedOperator {
        let input = match self {
            Source::Rows(input) => input,
            Source::Scan(scan) => scan,
        };
        if chain.is_empty() { input } else { ChainOp::over(input, chain) }
    }

    fn operator(&self) -> &dyn Operator {
        match self {
            Source::Rows(input) => &**input,
            Source::Scan(scan) => &**scan,
        }
    }

    fn operator_mut(&mut self) -> &mut dyn Operator {
        match self {
            Source::Rows(input) => &mut **input,
            Source::Scan(scan) => &mut **scan,
        }
    }
}

/// Adds documents to the groups.
struct Intake<'i> {
    grouping: &'i Grouping,
    passed: &'i mut StepCounts,
    scope: Scope<'i>,
    table: GroupTable,
    runs: SpilledGroups,
    arena: Bump,
}

impl Intake<'_> {
    fn take(&mut self, rows: &mut [Row]) -> Result<()> {
        let Grouping { chain, .. } = self.grouping;
        rows.chunks_mut(BATCH_ROWS).try_for_each(|rows| {
            self.scope.env.check_interrupt()?;
            rows.iter_mut().try_for_each(Row::know_doc)?;
            if chain.is_empty() && !chain.reads_metadata {
                let docs: Vec<Doc<'_>> = rows.iter().map(Row::doc).collect();
                self.take_batch(&docs)
            } else {
                self.take_one_by_one(rows)
            }
        })
    }

    /// Groups documents in one batch. If one of them fails, groups them one by one, so that the
    /// documents before it count and the first error is returned.
    fn take_batch(&mut self, docs: &[Doc<'_>]) -> Result<()> {
        let Scope { env, variables } = self.scope;
        let shared = &env.shared;
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), shared);
        if self.table.add_batch(self.grouping, docs, &context.with_variables(variables))? {
            return self.runs.limit(&mut self.table, env);
        }
        for doc in docs {
            renew(&mut self.arena, env)?;
            let context = EvalContext::new(&self.arena, *doc, shared);
            self.table.add(self.grouping, &context.with_variables(variables))?;
            self.runs.limit(&mut self.table, env)?;
        }
        Ok(())
    }

    /// Groups documents by the columns that a thread computed.
    fn take_columns(&mut self, columns: &Columns) -> Result<()> {
        reset(&mut self.arena);
        self.passed.add(&columns.passed);
        let Scope { env, variables } = self.scope;
        let context = EvalContext::new(&self.arena, Doc::empty(), &env.shared);
        let context = context.with_variables(variables);
        self.table.add_columns(self.grouping, columns, &context)?;
        self.runs.limit(&mut self.table, env)
    }

    /// Groups the documents that the chain returns for each row.
    fn take_one_by_one(&mut self, rows: &[Row]) -> Result<()> {
        let Intake { grouping, passed, scope, table, runs, arena } = self;
        // One document can become very many.
        let mut take = |context: &EvalContext<'_>| {
            table.add(grouping, context)?;
            runs.limit(table, scope.env)
        };
        let sent = |row| Sent { row, scope: *scope };
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

    fn stats(&self) -> NodeStats {
        let below = self.grouping.chain.stats(&self.passed, self.source.operator().stats());
        let held_bytes = match &self.output {
            Output::Memory(table, next) if *next < table.len() => table.bytes() as u64,
            _ => 0,
        };
        NodeStats { inputs: vec![below], held_bytes, ..self.stats.clone() }
    }
}
