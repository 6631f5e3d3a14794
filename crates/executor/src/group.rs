//! `$group`: a hash table from encoded keys to accumulators; beyond memory, saved states in runs
//! on disk that are merged by key.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use bumpalo::Bump;
use foldhash::fast::RandomState;
use quire_document::{Doc, DocBuf, DocWriter, Value, ValueBuf, key};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::State;
use quire_mql::stage::Group;
use quire_planner::explain::NodeStats;

use crate::chain::Chain;
use crate::env::{Env, Run};
use crate::filtering::reset;
use crate::operator::{BoxedOperator, Operator, over};
use crate::row::Row;
use crate::spill::{SpillReader, SpillWriter};

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;
/// What a group takes besides its key and its states.
const GROUP_BYTES: usize = 128;

/// A group: its key as it first came, and what its accumulators hold.
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
    /// States whose size depends on how much they have taken.
    grows: bool,
    index: HashMap<Box<[u8]>, usize, RandomState>,
    entries: Vec<Entry>,
    bytes: usize,
    runs: Vec<SpillReader>,
    output: Output,
    arena: Bump,
    stats: NodeStats,
}

enum Output {
    NotYet,
    Memory(std::vec::IntoIter<Entry>),
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
        let grows = group.fields().iter().any(|(_, spec)| {
            !matches!(spec.name(), "$sum" | "$avg" | "$count" | "$stdDevPop" | "$stdDevSamp")
        });
        GroupOp {
            input,
            chain,
            group,
            grows,
            index: HashMap::default(),
            entries: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            output: Output::NotYet,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    fn collect(&mut self, run: &mut Run<'_>) -> Result<()> {
        let env = run.env;
        let variables = env.variable_values();
        let mut rows = Vec::new();
        let mut scratch = Vec::with_capacity(64);
        loop {
            let more = self.input.next(run, ROWS_MAX, &mut rows)?;
            for row in rows.drain(..) {
                let source = row.doc_or_key()?;
                let doc = Doc::from_valid_bytes(&source);
                let (group, index, entries) = (&self.group, &mut self.index, &mut self.entries);
                let (bytes, grows) = (&mut self.bytes, self.grows);
                let mut take = |context: &EvalContext<'_>| {
                    add(group, index, entries, &mut scratch, bytes, grows, context)
                };
                if self.chain.is_empty() {
                    reset(&mut self.arena);
                    let context =
                        EvalContext::new(&self.arena, doc, &env.shared).with_variables(&variables);
                    take(&context)?;
                } else {
                    self.chain.run(doc, env, &variables, &mut take)?;
                }
                if self.bytes > env.params.stage_bytes_max {
                    self.spill(env)?;
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn spill(&mut self, env: &Env) -> Result<()> {
        let directory = match &env.params.spill_directory {
            Some(directory) if env.may_spill => directory,
            _ => {
                return Err(Error::new(
                    ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
                    "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
                ));
            }
        };
        let mut keys: Vec<(Box<[u8]>, usize)> = self.index.drain().collect();
        keys.sort_unstable();
        let mut writer = SpillWriter::create(directory)?;
        for (encoded, at) in keys {
            let Some(entry) = self.entries.get(at) else { continue };
            let saved = DocBuf::build(|writer| {
                writer.append("k", &entry.key);
                let mut states = writer.array("s");
                for state in &entry.states {
                    states.push(&state.save());
                }
            });
            writer.write(&[&encoded, saved.as_bytes()])?;
        }
        self.entries.clear();
        self.bytes = 0;
        self.runs.push(writer.into_reader()?);
        self.stats.spills += 1;
        Ok(())
    }

    fn finish(&mut self, env: &Env) -> Result<()> {
        if self.runs.is_empty() {
            self.index = HashMap::default();
            self.output = Output::Memory(std::mem::take(&mut self.entries).into_iter());
            return Ok(());
        }
        if !self.entries.is_empty() {
            self.spill(env)?;
        }
        let mut merge = Merge {
            values: (0..self.runs.len()).map(|_| None).collect(),
            runs: std::mem::take(&mut self.runs),
            heads: BinaryHeap::new(),
        };
        for at in 0..merge.runs.len() {
            merge.advance(at)?;
        }
        self.output = Output::Runs(merge);
        Ok(())
    }

    fn next_entry(&mut self, env: &Env) -> Result<Option<Entry>> {
        match &mut self.output {
            Output::NotYet => Ok(None),
            Output::Memory(entries) => Ok(entries.next()),
            Output::Runs(merge) => {
                reset(&mut self.arena);
                let variables = env.variable_values();
                let context = EvalContext::new(&self.arena, Doc::empty(), &env.shared)
                    .with_variables(&variables);
                merge.next(&self.group, &context)
            }
        }
    }
}

/// Gives the document `context.root` to its group.
fn add(
    group: &Group,
    index: &mut HashMap<Box<[u8]>, usize, RandomState>,
    entries: &mut Vec<Entry>,
    encoded: &mut Vec<u8>,
    bytes: &mut usize,
    grows: bool,
    context: &EvalContext<'_>,
) -> Result<()> {
    let context = &group.extract(context)?;
    let value = group_key(group, context)?;
    encoded.clear();
    key::append(value, false, encoded);
    let at = match index.get(encoded.as_slice()) {
        Some(at) => *at,
        None => {
            let states = group.new_states(value, context)?;
            let size: usize = states.iter().map(|state| state.size()).sum();
            let key = ValueBuf::new(value);
            *bytes += GROUP_BYTES + 2 * encoded.len() + key.size() + size;
            entries.push(Entry { key, states });
            index.insert(encoded.as_slice().into(), entries.len() - 1);
            entries.len() - 1
        }
    };
    let Some(entry) = entries.get_mut(at) else { return Ok(()) };
    if !grows {
        return group.add(&mut entry.states, context);
    }
    let before: usize = entry.states.iter().map(|state| state.size()).sum();
    group.add(&mut entry.states, context)?;
    let after: usize = entry.states.iter().map(|state| state.size()).sum();
    *bytes = (*bytes + after).saturating_sub(before);
    Ok(())
}

/// The key of a document, in a context that may live shorter than the group.
fn group_key<'a>(group: &'a Group, context: &EvalContext<'a>) -> Result<Value<'a>> {
    group.key().eval(context)
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
            self.collect(run)?;
            self.finish(run.env)?;
        }
        for _ in 0..max {
            let Some(entry) = self.next_entry(run.env)? else {
                self.stats.is_eof = true;
                return Ok(false);
            };
            reset(&mut self.arena);
            let context = EvalContext::new(&self.arena, Doc::empty(), &run.env.shared);
            let mut bytes = Vec::with_capacity(64);
            let mut writer = DocWriter::new(&mut bytes);
            writer.append("_id", &entry.key);
            for ((name, _), state) in self.group.fields().iter().zip(&entry.states) {
                writer.append(name, state.result(&context)?);
            }
            writer.finish();
            self.stats.returned += 1;
            out.push(Row::made(DocBuf::from_valid_bytes(bytes)));
        }
        Ok(true)
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
