//! `$group`: documents go to a table of groups by batches; beyond memory, saved states in runs on
//! disk that are merged by key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bumpalo::Bump;
use quire_document::{Collator, Doc, DocBuf, DocWriter, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::State;
use quire_mql::stage::Group;
use quire_planner::explain::NodeStats;

use crate::chain::{Chain, Sent};
use crate::env::{Env, Run};
use crate::filtering::reset;
use crate::group_table::GroupTable;
use crate::operator::{BoxedOperator, Operator, over};
use crate::row::Row;
use crate::spill::{SpillReader, SpillWriter};

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;

/// A group from runs on disk: its key as it first came, and what its accumulators hold.
struct Entry {
    key: ValueBuf,
    states: Vec<Box<dyn State>>,
}

/// The stage.
pub(crate) struct GroupOp {
    input: BoxedOperator,
    /// What happens to documents before they are grouped.
    chain: Chain,
    group: Group,
    table: Option<GroupTable>,
    runs: Runs,
    output: Output,
    arena: Bump,
    stats: NodeStats,
}

enum Output {
    NotYet,
    /// From the table: the number of the next group.
    Memory(usize),
    Runs(Merge),
}

/// Runs on disk, merged by key.
struct Merge {
    runs: Vec<SpillReader>,
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    values: Vec<Option<(ValueBuf, Vec<ValueBuf>)>>,
}

impl GroupOp {
    pub fn new(input: BoxedOperator, chain: Chain, group: Group) -> Self {
        GroupOp {
            input,
            chain,
            group,
            table: None,
            runs: Runs::default(),
            output: Output::NotYet,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let env = run.env;
        let variables = env.variable_values();
        let mut rows: Vec<Row> = Vec::new();
        let mut table = GroupTable::new(&self.group, env.shared.collator.as_ref());
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            rows.iter_mut().try_for_each(Row::know_doc)?;
            if self.chain.is_empty() && !self.chain.reads_metadata {
                let docs: Vec<Doc<'_>> = rows.iter().map(Row::doc).collect();
                self.take(&mut table, &docs, env, &variables)?;
            } else {
                self.take_one_by_one(&mut table, &rows, env, &variables)?;
            }
            rows.clear();
            if !more {
                self.table = Some(table);
                return Ok(());
            }
        }
    }

    /// Groups documents at once; one by one where one of them fails, so that those before it
    /// count and the first error is the one that is answered.
    fn take(
        &mut self,
        table: &mut GroupTable,
        docs: &[Doc<'_>],
        env: &Env,
        variables: &[Option<Value<'_>>],
    ) -> Result<()> {
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), &env.shared);
        if table.add_batch(&self.group, docs, &context.with_variables(variables))? {
            return self.runs.limit(table, env);
        }
        for doc in docs {
            reset(&mut self.arena);
            let context = EvalContext::new(&self.arena, *doc, &env.shared);
            table.add(&self.group, &context.with_variables(variables))?;
            self.runs.limit(table, env)?;
        }
        Ok(())
    }

    /// Groups what the chain makes of each row.
    fn take_one_by_one(
        &mut self,
        table: &mut GroupTable,
        rows: &[Row],
        env: &Env,
        variables: &[Option<Value<'_>>],
    ) -> Result<()> {
        let (group, runs) = (&self.group, &mut self.runs);
        // One document may become very many.
        let mut take = |context: &EvalContext<'_>| {
            table.add(group, context)?;
            runs.limit(table, env)
        };
        rows.iter().try_for_each(|row| self.chain.run(Sent { row, env, variables }, &mut take))
    }

    fn finish(&mut self, env: &Env) -> Result<()> {
        if self.runs.0.is_empty() {
            self.output = Output::Memory(0);
            return Ok(());
        }
        if let Some(mut table) = self.table.take()
            && table.len() > 0
        {
            self.runs.spill(&mut table, env)?;
        }
        self.stats.spills = self.runs.0.len() as u64;
        let mut merge = Merge {
            values: (0..self.runs.0.len()).map(|_| None).collect(),
            runs: std::mem::take(&mut self.runs.0),
            heads: BinaryHeap::new(),
        };
        for at in 0..merge.runs.len() {
            merge.advance(at)?;
        }
        self.output = Output::Runs(merge);
        Ok(())
    }

    /// The document of the next group.
    fn next_doc(&mut self, env: &Env) -> Result<Option<DocBuf>> {
        reset(&mut self.arena);
        let context = EvalContext::new(&self.arena, Doc::empty(), &env.shared);
        match &mut self.output {
            Output::NotYet => Ok(None),
            Output::Memory(next) => {
                let Some(table) = &self.table else { return Ok(None) };
                let at = std::mem::replace(next, *next + 1);
                let Some(key) = table.key(at) else { return Ok(None) };
                output(&self.group, key, table.states(at), &context).map(Some)
            }
            Output::Runs(merge) => {
                let variables = env.variable_values();
                let entry = merge.next(&self.group, &context.with_variables(&variables))?;
                let Some(Entry { key, states }) = entry else { return Ok(None) };
                let states = states.iter().map(|state| &**state);
                output(&self.group, &key, states, &context).map(Some)
            }
        }
    }
}

/// Groups that did not fit into memory, each file in the order of the keys.
#[derive(Default)]
struct Runs(Vec<SpillReader>);

impl Runs {
    /// Goes on on disk where memory ends.
    fn limit(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
        if table.bytes() > env.params.group_bytes_max { self.spill(table, env) } else { Ok(()) }
    }

    fn spill(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
        let directory = match &env.params.spill_directory {
            Some(directory) if env.may_spill => directory,
            _ => {
                return Err(Error::new(
                    ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                    "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
                ));
            }
        };
        let mut writer = SpillWriter::create(directory)?;
        let collator = env.shared.collator.as_deref().map(|collator| collator as &dyn Collator);
        for (encoded, at) in table.sorted(collator) {
            let Some(key) = table.key(at) else { continue };
            let saved = DocBuf::build(|writer| {
                writer.append("k", key);
                let mut states = writer.array("s");
                for state in table.states(at) {
                    states.push(&state.save());
                }
            });
            writer.write(&[&encoded, saved.as_bytes()])?;
        }
        table.clear();
        self.0.push(writer.into_reader()?);
        Ok(())
    }
}

/// What a group comes out as.
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

impl Merge {
    fn advance(&mut self, at: usize) -> Result<()> {
        let Some(run) = self.runs.get_mut(at) else { return Ok(()) };
        let Some(encoded) = run.read()? else { return Ok(()) };
        let ended = || Error::internal("a spilled run ended early");
        let saved = DocBuf::from_valid_bytes(run.read()?.ok_or_else(ended)?);
        let key = ValueBuf::new(saved.get("k").unwrap_or(Value::Null));
        let states = saved.get("s").and_then(|states| states.as_array());
        let states = states.map_or(Vec::new(), |states| states.iter().map(ValueBuf::new).collect());
        if let Some(slot) = self.values.get_mut(at) {
            *slot = Some((key, states));
        }
        self.heads.push(Reverse((encoded, at)));
        Ok(())
    }

    /// The next group, joined from all runs that know its key.
    fn next(&mut self, group: &Group, context: &EvalContext<'_>) -> Result<Option<Entry>> {
        let Some(Reverse((encoded, at))) = self.heads.pop() else { return Ok(None) };
        let mut members = vec![at];
        while let Some(Reverse((next, at))) = self.heads.peek() {
            if *next != encoded {
                break;
            }
            members.push(*at);
            self.heads.pop();
        }
        let mut entry: Option<Entry> = None;
        for at in members {
            let taken = self.values.get_mut(at).and_then(Option::take);
            let Some((key, saved)) = taken else { continue };
            let entry = match &mut entry {
                Some(entry) => entry,
                None => {
                    let states = group.new_states(key.as_value(), context)?;
                    entry.insert(Entry { key, states })
                }
            };
            for (state, saved) in entry.states.iter_mut().zip(&saved) {
                state.merge(saved.as_value())?;
            }
            self.advance(at)?;
        }
        Ok(entry)
    }
}

impl Operator for GroupOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if matches!(self.output, Output::NotYet) {
            run.for_all(|run| self.collect(run))?;
            self.finish(run.env)?;
        }
        for _ in 0..max {
            let Some(doc) = self.next_doc(run.env)? else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            self.stats.returned += 1;
            out.push(Row::made(doc));
        }
        Ok(true)
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
