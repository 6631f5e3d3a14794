//! Groups that exceed the memory of a `$group`: states saved on disk, merged by key.

use quire_collections::{MergedRuns, RunWriter, SortedRuns, Workspace};
use quire_document::{Collator, Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::accumulator::{State, check_states};
use quire_mql::stage::Group;

use crate::env::Env;
use crate::grouping::table::GroupTable;
use crate::holding::{Holding, refused, reserve_built};

/// Groups written to disk between two checks of the interrupt.
const INTERRUPT_GROUPS: usize = 1024;

/// The groups on disk.
#[derive(Default)]
pub(crate) struct SpilledGroups {
    runs: SortedRuns,
    /// How many times groups were written to disk.
    pub spills: u64,
    /// The memory of the groups that are not on disk.
    pub holding: Holding,
}

impl SpilledGroups {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Spills the table if it exceeds the memory limit, or if the server has no memory left.
    pub fn limit(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
        let bytes = table.bytes();
        let fits = bytes <= env.params.group_bytes_max;
        if fits && self.holding.cover_or_spill(bytes)? {
            return Ok(());
        }
        if fits && !env.may_spill {
            return Err(refused());
        }
        self.spill(table, env)
    }

    /// Writes the groups of a table to disk and empties the table.
    pub fn spill(&mut self, table: &mut GroupTable, env: &Env) -> Result<()> {
        let workspace = workspace(env)?;
        let mut run = RunWriter::create(workspace)?;
        let collator = env.shared.collator.as_deref().map(|collator| collator as &dyn Collator);
        for (written, (encoded, at)) in table.sorted(collator, env)?.enumerate() {
            if written.is_multiple_of(INTERRUPT_GROUPS) {
                env.check_interrupt()?;
            }
            let Some(key) = table.key(at) else { continue };
            reserve_built(key.size() + table.states(at).map(|state| state.size()).sum::<usize>())?;
            let saved = DocBuf::build(|writer| {
                writer.append("k", key);
                let mut states = writer.array("s");
                for state in table.states(at) {
                    states.push(&state.save());
                }
            });
            run.write(&encoded, saved.as_bytes())?;
        }
        table.clear();
        self.spills += 1;
        self.runs.add(run, workspace)?;
        self.holding.cover(table.bytes())
    }

    /// Returns all groups, merged.
    pub fn merge(self, env: &Env) -> Result<MergedGroups> {
        Ok(MergedGroups(self.runs.merge(workspace(env)?)?, Holding::default()))
    }
}

/// Groups from disk, in the order of their keys, and the memory of the one that is merged.
pub(crate) struct MergedGroups(MergedRuns, Holding);

/// A group from disk: its first key, and the states of its accumulators.
pub(crate) struct MergedGroup {
    pub key: ValueBuf,
    pub states: Vec<Box<dyn State>>,
}

impl MergedGroups {
    /// Returns the next group, merged from all records with its key.
    pub fn next(
        &mut self,
        group: &Group,
        context: &EvalContext<'_>,
    ) -> Result<Option<MergedGroup>> {
        let Some(first) = self.0.next_record()? else { return Ok(None) };
        let saved = Doc::from_valid_bytes(&first.payload);
        let key = ValueBuf::new(saved.get("k").unwrap_or(Value::Null));
        let mut states = group.new_states(key.as_value(), context)?;
        merge_states(&mut states, saved)?;
        while self.0.next_key().is_some_and(|next| *next == first.key)
            && let Some(record) = self.0.next_record()?
        {
            merge_states(&mut states, Doc::from_valid_bytes(&record.payload))?;
            check_states("$group", &states)?;
            self.1.cover(states.iter().map(|state| state.size()).sum())?;
        }
        Ok(Some(MergedGroup { key, states }))
    }
}

fn workspace(env: &Env) -> Result<Workspace<'_>> {
    env.workspace().ok_or_else(|| {
        Error::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
        )
    })
}

fn merge_states(states: &mut [Box<dyn State>], saved: Doc<'_>) -> Result<()> {
    let Some(saved) = saved.get("s").and_then(|saved| saved.as_array()) else { return Ok(()) };
    states.iter_mut().zip(saved.iter()).try_for_each(|(state, saved)| state.merge(saved))
}
