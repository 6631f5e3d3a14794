//! `$graphLookup`: a breadth-first search for each row. Each step looks up all values that the
//! previous step found.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::limits::DEPTH_MAX;
use quire_document::{ArrayBuf, Collator, Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::stage::{GraphLookup, write_at};
use quire_planner::Foreign;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::holding::{Holding, reserve_built};
use crate::joins::foreign::{Asked, ForeignSide, Places, collator_of};
use crate::joins::keyed_rows::KeyedRows;
use crate::joins::keys::{encode_into, for_each_local};
use crate::joins::rows::ELEMENT_BYTES;
use crate::operators::filtering::renew;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::Row;

/// The bytes that a key takes in a set besides its own.
const KEY_BYTES: usize = 64;

/// The operator of `$graphLookup`.
pub(crate) struct GraphLookupOp {
    input: BoxedOperator,
    stage: Arc<GraphLookup>,
    side: ForeignSide,
    waiting: VecDeque<Row>,
    done: bool,
    arena: Bump,
    stats: NodeStats,
}

/// The number of values that are added between two checks of the interrupt.
const VALUES_AT_ONCE: usize = 4096;

/// The state of one search.
#[derive(Default)]
struct Search {
    found: Vec<(Row, u64)>,
    /// The `_id`s of the found documents, as keys. Freeing a million keys one by one would take too
    /// long after a kill.
    ids: KeyedRows,
    /// The values that were looked up.
    asked: KeyedRows,
    /// A buffer for one key.
    key: Vec<u8>,
    /// The values that the next step looks up.
    frontier: Vec<ValueBuf>,
    bytes: usize,
    /// The memory of the search.
    holding: Holding,
}

impl Search {
    /// Adds a value to the next step, unless it was looked up before.
    fn ask(&mut self, value: Value<'_>, collator: Option<&dyn Collator>) -> Result<()> {
        encode_into(Some(value), collator, &mut self.key);
        if !self.asked.add_key(&self.key) {
            return Ok(());
        }
        let value = ValueBuf::new(value);
        // A step drops the values before it, but the last step may hold all of them.
        self.bytes += KEY_BYTES + self.key.len() + value.size();
        self.frontier.push(value);
        self.check()
    }

    fn check(&mut self) -> Result<()> {
        if self.bytes > STAGE_BYTES_MAX {
            return Err(too_large());
        }
        self.holding.cover(self.bytes)
    }
}

fn too_large() -> Error {
    Error::location(40099, "$graphLookup reached maximum memory consumption")
}

impl GraphLookupOp {
    pub fn new(input: BoxedOperator, stage: &Arc<GraphLookup>, foreign: &Arc<Foreign>) -> Self {
        GraphLookupOp {
            input,
            stage: Arc::clone(stage),
            side: ForeignSide::new(foreign),
            waiting: VecDeque::new(),
            done: false,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Returns the row with the documents that the search from it finds.
    fn search(&mut self, mut row: Row, run: &mut Run<'_>) -> Result<Row> {
        row.know_doc()?;
        let env = run.env;
        let collator = collator_of(env);
        let mut search = Search::default();
        renew(&mut self.arena, env)?;
        let context = EvalContext::new(&self.arena, row.doc(), &env.shared);
        match self.stage.start_with.eval(&context.with_variables(run.scope().variables))? {
            Some(Value::Array(values)) => {
                for (at, value) in values.iter().enumerate() {
                    if at % VALUES_AT_ONCE == VALUES_AT_ONCE - 1 {
                        env.check_interrupt()?;
                    }
                    search.ask(value, collator)?;
                }
            }
            Some(value) => search.ask(value, collator)?,
            None => {}
        }
        let mut depth = 0;
        while !search.frontier.is_empty() {
            env.check_interrupt()?;
            let frontier = std::mem::take(&mut search.frontier);
            self.step(&frontier, depth, &mut search, run)?;
            if self.stage.depth_max == Some(depth) {
                break;
            }
            depth += 1;
        }
        reserve_built(search.bytes)?;
        let doc = self.result(&row, &search)?;
        Ok(row.becoming(doc))
    }

    /// Looks up values; splits them in halves if the found documents are too large together.
    fn step(
        &mut self,
        values: &[ValueBuf],
        depth: u64,
        search: &mut Search,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let bytes_max = match values.len() {
            0 | 1 => STAGE_BYTES_MAX,
            _ => run.env.params.stage_bytes_max,
        };
        let asked =
            Asked { keys: values.len(), all: false, bytes_max, keeps_others: values.len() > 1 };
        let keys: Vec<Value<'_>> = values.iter().map(ValueBuf::as_value).collect();
        if !self.side.hold(&keys, asked, run)? {
            if values.len() < 2 {
                return Err(too_large());
            }
            let (left, right) = values.split_at(values.len() / 2);
            self.step(left, depth, search, run)?;
            return self.step(right, depth, search, run);
        }
        let collator = collator_of(run.env);
        let (mut key, mut places) = (Vec::new(), Places::new());
        for (at, value) in values.iter().enumerate() {
            if at % VALUES_AT_ONCE == VALUES_AT_ONCE - 1 {
                run.env.check_interrupt()?;
            }
            encode_into(Some(value.as_value()), collator, &mut key);
            self.side.add_places(&key, &mut places);
        }
        self.side.arrange(&mut places, values.len());
        for place in places {
            let Some(row) = self.side.row(place) else { continue };
            let Some(id) = row.doc().get("_id") else {
                let text = format!(
                    "Documents in the '{}' namespace must contain an _id for de-duplication in $graphLookup",
                    self.side.plan().namespace()
                );
                return Err(Error::location(40271, text));
            };
            encode_into(Some(id), None, &mut key);
            search.bytes += KEY_BYTES + key.len();
            if !search.ids.add_key(&key) {
                continue;
            }
            let mut failed = Ok(());
            for_each_local(&self.stage.connect_from, row.doc(), |value| {
                if let (Some(value), true) = (value, failed.is_ok()) {
                    failed = search.ask(value, collator);
                }
            });
            failed?;
            let mut row = row.clone();
            row.detach();
            search.bytes += row.size();
            search.found.push((row, depth));
            search.check()?;
        }
        Ok(())
    }

    /// Returns the row's document with the found documents.
    fn result(&self, row: &Row, search: &Search) -> Result<DocBuf> {
        let depth_path: Option<Vec<&str>> =
            self.stage.depth_field.as_ref().map(|path| path.components().collect());
        let bytes: usize =
            search.found.iter().map(|(row, _)| row.doc().len() + ELEMENT_BYTES).sum();
        let found = ArrayBuf::build_sized(64 + bytes, |writer| {
            for (row, depth) in &search.found {
                match &depth_path {
                    None => {
                        writer.push(row.doc());
                    }
                    Some(path) => {
                        let depth = Value::Int64(i64::try_from(*depth).unwrap_or(i64::MAX));
                        write_at(row.doc(), path, Some(depth), &mut writer.document());
                    }
                }
            }
        });
        let path: Vec<&str> = self.stage.output.components().collect();
        let found = Value::Array(found.as_array());
        let doc = DocBuf::build(|writer| write_at(row.doc(), &path, Some(found), writer));
        if Doc::nests_within(doc.as_doc(), DEPTH_MAX) {
            return Ok(doc);
        }
        let text = format!("a result exceeds the limit of {DEPTH_MAX} levels of nesting");
        Err(Error::new(ErrorCode::Overflow, text))
    }
}

impl Operator for GraphLookupOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            if let Some(row) = self.waiting.pop_front() {
                let row = self.search(row, run)?;
                self.stats.returned += 1;
                filling.push(row);
            } else if self.done {
                self.stats.is_eof = true;
                return Ok(false);
            } else {
                let mut rows = Vec::new();
                self.done = !self.input.next(run, filling.rows_left(), &mut rows)?;
                self.waiting.extend(rows);
            }
        }
        Ok(true)
    }

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        if !self.input.restart(rows) {
            return false;
        }
        self.waiting.clear();
        self.side.restart();
        self.done = false;
        true
    }

    fn rest(&mut self) {
        self.input.rest();
        self.side.rest();
        self.waiting.iter_mut().for_each(Row::detach);
    }

    fn stats(&self) -> NodeStats {
        let (joined, read) = self.side.stats();
        let inputs = vec![self.input.stats(), read];
        let waiting = self.waiting.iter().map(Row::size).sum::<usize>();
        let held_bytes = waiting as u64;
        NodeStats { inputs, held_bytes, joined: Some(Box::new(joined)), ..self.stats.clone() }
    }
}
