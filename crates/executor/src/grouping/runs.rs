//! Groups of a `$group` beyond memory: saved states on disk, merged by key.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quire_document::{Collator, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::State;
use quire_mql::stage::Group;

use crate::env::Env;
use crate::grouping::table::GroupTable;
use crate::spill::{SpillReader, SpillWriter};

/// Groups that did not fit into memory, each file in the order of the keys.
#[derive(Default)]
pub(crate) struct Runs(Vec<SpillReader>);

impl Runs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Goes on on disk where memory ends.
    pub fn limit(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
        if table.bytes() > env.params.group_bytes_max { self.spill(table, env) } else { Ok(()) }
    }

    /// Writes the groups of a table, which is empty then.
    pub fn spill(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
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

    /// All of them, merged.
    pub fn merge(self) -> Result<Merge> {
        let mut merge = Merge {
            values: self.0.iter().map(|_| None).collect(),
            runs: self.0,
            heads: BinaryHeap::new(),
        };
        (0..merge.runs.len()).try_for_each(|at| merge.advance(at))?;
        Ok(merge)
    }
}

/// Runs on disk, merged by key.
pub(crate) struct Merge {
    runs: Vec<SpillReader>,
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    values: Vec<Option<(ValueBuf, Vec<ValueBuf>)>>,
}

/// A group from runs on disk: its key as it first came, and what its accumulators hold.
pub(crate) struct Entry {
    pub key: ValueBuf,
    pub states: Vec<Box<dyn State>>,
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
    pub fn next(&mut self, group: &Group, context: &EvalContext<'_>) -> Result<Option<Entry>> {
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
