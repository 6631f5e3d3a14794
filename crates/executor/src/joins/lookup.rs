//! `$lookup`: joins batches of rows with what the foreign side has for their keys.

use std::collections::VecDeque;
use std::sync::Arc;

use bumpalo::Bump;
use quire_document::limits::DEPTH_MAX;
use quire_document::{ArrayBuf, ArrayWriter, Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::stage::{Lookup, Position, write_at};
use quire_planner::explain::NodeStats;
use quire_planner::{Foreign, ForeignKey, Node};

use crate::env::{Env, Run};
use crate::joins::foreign::ForeignSide;
use crate::joins::keys::{Key, encode, for_each_local};
use crate::joins::rows::{Rows, collect};
use crate::opening::build::{build, build_over};
use crate::operators::filtering::renew;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::Row;

/// Rows of the input that are joined at a time, at first and later.
const BATCH_ROWS: (usize, usize) = (16, 1024);

/// A row of the input with what it is joined by.
struct Local {
    row: Row,
    /// The values of the variables of `let`.
    variables: Vec<Option<ValueBuf>>,
    keys: Vec<Option<ValueBuf>>,
}

/// A row that becomes one of the result for each joined document, from the place `next` on.
struct Unwinding {
    row: Row,
    found: Vec<Row>,
    next: usize,
}

/// The operator of `$lookup`.
pub(crate) struct LookupOp {
    input: BoxedOperator,
    stage: Arc<Lookup>,
    side: ForeignSide,
    /// What each document is joined with, where that is always the same, as one array.
    constant: Option<ArrayBuf>,
    batch_rows: usize,
    /// Rows of the input that are not joined yet. Each is joined when it is asked for, because the
    /// results of a batch together can be far larger than its foreign documents.
    waiting: VecDeque<Local>,
    /// The first rows of `waiting` whose foreign documents the side holds.
    held: usize,
    unwinding: Option<Unwinding>,
    done: bool,
    arena: Bump,
    stats: NodeStats,
}

impl LookupOp {
    pub fn new(input: BoxedOperator, stage: &Arc<Lookup>, foreign: &Arc<Foreign>) -> Self {
        LookupOp {
            input,
            stage: Arc::clone(stage),
            side: ForeignSide::new(foreign),
            constant: None,
            batch_rows: BATCH_ROWS.0,
            waiting: VecDeque::new(),
            held: 0,
            unwinding: None,
            done: false,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Pulls the next batch of the input.
    fn read(&mut self, run: &mut Run<'_>, wanted: usize) -> Result<()> {
        let mut rows = Vec::new();
        self.done = !self.input.next(run, wanted.min(self.batch_rows), &mut rows)?;
        self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS.1);
        for row in rows {
            let local = self.local(row, run)?;
            self.waiting.push_back(local);
        }
        Ok(())
    }

    /// Evaluates what a row is joined by.
    fn local(&mut self, mut row: Row, run: &Run<'_>) -> Result<Local> {
        row.know_doc()?;
        renew(&mut self.arena, run.env)?;
        let outer = run.scope().variables;
        let context = EvalContext::new(&self.arena, row.doc(), &run.env.shared);
        let context = context.with_variables(outer);
        let mut variables = Vec::with_capacity(self.stage.variables.len());
        for variable in self.stage.variables.iter() {
            context.pass()?;
            variables.push(variable.eval(&context)?.map(ValueBuf::new));
        }
        let mut keys = Vec::new();
        match (&self.stage.fields, &self.side.plan().key, &self.stage.equality) {
            (Some((local, _)), _, _) => {
                for_each_local(local, row.doc(), |value| keys.push(value.map(ValueBuf::new)));
            }
            (None, Some(ForeignKey::Value(..)), Some(equality)) => {
                let bound = bound(&self.stage, outer, &variables);
                let context = EvalContext::new(&self.arena, Doc::empty(), &run.env.shared);
                let value = equality.value.eval(&context.with_variables(&bound))?;
                keys.push(value.map(ValueBuf::new));
            }
            _ => {}
        }
        Ok(Local { row, variables, keys })
    }

    /// Sees to it that the side holds the foreign documents of the first waiting rows: of all of
    /// them, or of half as many until they fit.
    fn hold(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut rows = self.waiting.len();
        loop {
            let keys = self.waiting.iter().take(rows).flat_map(|local| &local.keys);
            let mut keys = keys.map(|key| key.as_ref().map_or(Value::Null, ValueBuf::as_value));
            let bytes_max = match rows {
                1 => STAGE_BYTES_MAX,
                _ => run.env.params.stage_bytes_max,
            };
            if self.side.hold(&mut keys, bytes_max, run)? {
                self.held = rows;
                return Ok(());
            }
            if rows <= 1 {
                return Err(self.too_large());
            }
            rows /= 2;
            self.batch_rows = rows;
        }
    }

    /// Joins the first waiting row. Returns it, unless it is to be unwound.
    fn join(&mut self, run: &mut Run<'_>) -> Result<Option<Row>> {
        run.env.check_interrupt()?;
        let foreign = Arc::clone(self.side.plan());
        if foreign.key.is_some() && self.held == 0 {
            self.hold(run)?;
        }
        let Some(local) = self.waiting.pop_front() else { return Ok(None) };
        let found = if foreign.key.is_some() {
            self.held -= 1;
            let found = self.matching(&local, run.env);
            self.through_tail(found, &local, run)?
        } else if !self.side.hold_everything(run)? {
            self.stream(&foreign, &local, run)?
        } else if foreign.tail.is_some() || self.stage.unwind.is_some() {
            self.through_tail(self.side.everything().to_vec(), &local, run)?
        } else {
            let everything = self.side.everything();
            let constant = self.constant.get_or_insert_with(|| array_of(everything));
            return joined_row(&self.stage, &local.row, constant).map(Some);
        };
        self.emit(local.row, found)
    }

    /// Returns the held documents that have a key of the row.
    fn matching(&self, local: &Local, env: &Env) -> Vec<Row> {
        let collator = env.shared.collator.as_deref();
        let encoded = local.keys.iter().map(|key| {
            let value = key.as_ref().map(ValueBuf::as_value);
            encode(value, collator.map(|collator| collator as _))
        });
        let encoded: Vec<Key> = encoded.collect();
        let places = self.side.places(&encoded);
        places.iter().filter_map(|place| self.side.row(*place).cloned()).collect()
    }

    /// Sends the foreign documents of a row through what varies from row to row.
    fn through_tail(
        &mut self,
        found: Vec<Row>,
        local: &Local,
        run: &mut Run<'_>,
    ) -> Result<Vec<Row>> {
        let foreign = Arc::clone(self.side.plan());
        let Some(tail) = &foreign.tail else { return Ok(found) };
        if found.is_empty() && only_streams(tail) {
            return Ok(found);
        }
        let variables = bound(&self.stage, run.scope().variables, &local.variables);
        let mut operator = build_over(tail, Box::new(Rows::new(found)))?;
        let found = run.bound(&variables, |run| collect(&mut operator, run, |_| ()))?;
        self.side.note(None, &operator.stats());
        found.ok_or_else(|| self.too_large())
    }

    /// Runs the whole foreign pipeline for one row, because it does not fit in memory.
    fn stream(&mut self, foreign: &Foreign, local: &Local, run: &mut Run<'_>) -> Result<Vec<Row>> {
        let source = build(&foreign.whole.root, None)?;
        let mut operator = match &foreign.tail {
            Some(tail) => build_over(tail, source)?,
            None => source,
        };
        let variables = bound(&self.stage, run.scope().variables, &local.variables);
        let found = run.bound(&variables, |run| collect(&mut operator, run, Row::detach))?;
        self.side.note(Some(&foreign.whole), &operator.stats());
        found.ok_or_else(|| self.too_large())
    }

    /// Returns a row with what it was joined with; `None` if it is to be unwound, a row for each of
    /// them.
    fn emit(&mut self, row: Row, found: Vec<Row>) -> Result<Option<Row>> {
        let bytes: usize = found.iter().map(|row| row.doc().len()).sum();
        if bytes > STAGE_BYTES_MAX {
            return Err(self.too_large());
        }
        if self.stage.unwind.is_some() {
            self.unwinding = Some(Unwinding { row, found, next: 0 });
            return Ok(None);
        }
        joined_row(&self.stage, &row, &array_of(&found)).map(Some)
    }

    /// Returns the next row that is known without the input.
    fn pop(&mut self, env: &Env) -> Result<Option<Row>> {
        let Some(Unwinding { row, found, next }) = self.unwinding.take() else { return Ok(None) };
        let made = self.unwound(&row, &found, next, env)?;
        if next + 1 < found.len() {
            self.unwinding = Some(Unwinding { row, found, next: next + 1 });
        }
        Ok(made)
    }

    /// Returns the row with the joined document number `at` in place of all; without any, what the
    /// `$unwind` leaves of it.
    fn unwound(&mut self, row: &Row, found: &[Row], at: usize, env: &Env) -> Result<Option<Row>> {
        let Some(unwind) = &self.stage.unwind else { return Ok(None) };
        let made = |doc: DocBuf| Ok(row.becoming(checked(doc)?));
        if let Some(joined) = found.get(at) {
            let doc = joined_doc(&self.stage, row, Value::Document(joined.doc()));
            return made(unwind.indexed_doc(doc, Some(at as i64))).map(Some);
        }
        if !unwind.preserves() {
            return Ok(None);
        }
        renew(&mut self.arena, env)?;
        let with = joined_doc(&self.stage, row, Value::Array(quire_document::Array::empty()));
        let context = EvalContext::new(&self.arena, with.as_doc(), &env.shared);
        let mut left = None;
        unwind.for_each(&context, Position::default(), 1, &mut |inner| {
            left = Some(inner.root.to_owned());
            Ok(())
        })?;
        left.map(made).transpose()
    }

    fn too_large(&self) -> Error {
        let text = format!(
            "Total size of documents in {} matching pipeline's $lookup stage exceeds {STAGE_BYTES_MAX} bytes",
            self.side.plan().namespace()
        );
        Error::location(4568, text)
    }
}

/// Fails with 15 Overflow for a document that nests too deeply.
fn checked(doc: DocBuf) -> Result<DocBuf> {
    if doc.as_doc().nests_within(DEPTH_MAX) {
        return Ok(doc);
    }
    let text = format!("a result exceeds the limit of {DEPTH_MAX} levels of nesting");
    Err(Error::new(ErrorCode::Overflow, text))
}

/// The variables around a stage and those that it adds. A stage of a view knows none of the
/// variables around the view.
fn bound<'v>(
    stage: &Lookup,
    outer: &'v [Option<Value<'v>>],
    own: &'v [Option<ValueBuf>],
) -> Vec<Option<Value<'v>>> {
    let mut all: Vec<Option<Value<'v>>> = outer.to_vec();
    all.resize(stage.outer_variables, None);
    all.extend(own.iter().map(|value| value.as_ref().map(ValueBuf::as_value)));
    all
}

/// True if the stages give nothing for no documents.
fn only_streams(node: &Node) -> bool {
    use quire_mql::stage::StageBody;
    match node {
        Node::Stage { stage, input, .. } => stage.streams() && only_streams(input),
        _ => true,
    }
}

fn array_of(rows: &[Row]) -> ArrayBuf {
    let fill = |writer: &mut ArrayWriter<'_>| {
        rows.iter().for_each(|row| {
            writer.push(row.doc());
        });
    };
    ArrayBuf::build(fill)
}

/// The row with an array at the path of the result.
fn joined_row(stage: &Lookup, row: &Row, joined: &ArrayBuf) -> Result<Row> {
    let doc = checked(joined_doc(stage, row, Value::Array(joined.as_array())))?;
    Ok(row.becoming(doc))
}

/// The row's document with a value at the path of the result.
fn joined_doc(stage: &Lookup, row: &Row, joined: Value<'_>) -> DocBuf {
    let path: Vec<&str> = stage.output.components().collect();
    DocBuf::build(|writer| write_at(row.doc(), &path, Some(joined), writer))
}

impl Operator for LookupOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let mut filling = Filling::new(out, max);
        while !filling.is_full() {
            let made = match &self.unwinding {
                Some(_) => self.pop(run.env)?,
                None if !self.waiting.is_empty() => self.join(run)?,
                None if self.done => {
                    self.stats.is_eof = true;
                    return Ok(false);
                }
                None => {
                    self.read(run, filling.rows_left())?;
                    None
                }
            };
            if let Some(row) = made {
                self.stats.returned += 1;
                filling.push(row);
            }
        }
        Ok(true)
    }

    fn rest(&mut self) {
        self.input.rest();
        self.side.rest();
        self.held = 0;
        self.waiting.iter_mut().for_each(|local| local.row.detach());
        if let Some(Unwinding { row, found, .. }) = &mut self.unwinding {
            row.detach();
            found.iter_mut().for_each(Row::detach);
        }
    }

    fn stats(&self) -> NodeStats {
        let (joined, read) = self.side.stats();
        let inputs = vec![self.input.stats(), read];
        NodeStats { inputs, joined: Some(Box::new(joined)), ..self.stats.clone() }
    }
}
