//! `$lookup`: joins batches of rows with the documents of the foreign side.

use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use bumpalo::Bump;
use foldhash::fast::RandomState;
use quire_document::limits::DEPTH_MAX;
use quire_document::{ArrayBuf, ArrayWriter, Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::EvalContext;
use quire_mql::stage::{Lookup, Position, write_at};
use quire_planner::explain::NodeStats;
use quire_planner::{Foreign, ForeignKey, Node};

use crate::build::{build, build_over};
use crate::chunks::Chunks;
use crate::env::{Env, Run};
use crate::holding::{Holding, reserve_built};
use crate::joins::foreign::{Asked, ForeignSide, Places, collator_of};
use crate::joins::keys::{encode_into, for_each_local};
use crate::joins::rows::{ELEMENT_BYTES, Rows, collect};
use crate::operators::filtering::renew;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::Row;

/// The number of input rows that are joined at a time: of the first batch and of later ones.
const BATCH_ROWS: (usize, usize) = (16, 1024);

/// A row of the input with its join values.
struct Local {
    row: Row,
    /// The values of the variables of `let`.
    variables: Vec<Option<ValueBuf>>,
    /// The value that the foreign field must have, if it is not a field of the row.
    value: Option<Option<ValueBuf>>,
}

/// The documents that a row is joined with.
enum Found {
    /// Documents of the foreign side, by their positions there.
    Held(Places),
    Rows(Vec<Row>),
}

/// A row that becomes one result row for each joined document, from number `next` on.
struct Unwinding {
    row: Row,
    found: Found,
    next: usize,
}

impl Unwinding {
    /// Returns the bytes that it holds, without the documents that the foreign side holds.
    fn size(&self) -> usize {
        self.row.size()
            + match &self.found {
                Found::Held(places) => size_of_val(places.as_slice()),
                Found::Rows(rows) => rows.iter().map(Row::size).sum(),
            }
    }
}

/// The operator of `$lookup`.
pub(crate) struct LookupOp {
    input: BoxedOperator,
    /// True if the input's rows own their bytes.
    owned_rows: bool,
    stage: Arc<Lookup>,
    side: ForeignSide,
    /// The operators of the stages that depend on the row, between two rows, if they can start again.
    tail: Option<BoxedOperator>,
    /// The joined documents as one array, if they are the same for every row.
    constant: Option<ArrayBuf>,
    batch_rows: usize,
    /// Input rows that are not joined yet. Each is joined when it is requested, because the results
    /// of a batch can be far larger than its foreign documents.
    waiting: VecDeque<Local>,
    waiting_bytes: usize,
    /// The memory of the waiting rows.
    holding: Holding,
    /// The hashes of the keys of the waiting rows, if the number of keys decides the strategy.
    keys: HashSet<u64, RandomState>,
    /// A buffer for the key that is looked up.
    key: Vec<u8>,
    /// The number of rows at the front of `waiting` whose foreign documents are in memory.
    held: usize,
    unwinding: Option<Unwinding>,
    done: bool,
    arena: Bump,
    stats: NodeStats,
}

impl Local {
    /// Returns the bytes that it holds in memory.
    fn size(&self) -> usize {
        let variables = self.variables.iter().flatten().chain(self.value.iter().flatten());
        std::mem::size_of::<Local>()
            + self.row.size()
            + variables.map(ValueBuf::size).sum::<usize>()
    }
}

impl Found {
    fn len(&self) -> usize {
        match self {
            Found::Held(places) => places.len(),
            Found::Rows(rows) => rows.len(),
        }
    }
}

/// Calls `see` with each value by which a row is joined.
fn for_each_key<'l>(stage: &Lookup, local: &'l Local, mut see: impl FnMut(Option<Value<'l>>)) {
    match (&stage.fields, &local.value) {
        (Some((path, _)), _) => for_each_local(path, local.row.doc(), see),
        (None, Some(value)) => see(value.as_ref().map(ValueBuf::as_value)),
        (None, None) => {}
    }
}

impl LookupOp {
    pub fn new(
        input: BoxedOperator,
        owned_rows: bool,
        stage: &Arc<Lookup>,
        foreign: &Arc<Foreign>,
    ) -> Self {
        LookupOp {
            input,
            owned_rows,
            stage: Arc::clone(stage),
            side: ForeignSide::new(foreign),
            tail: None,
            constant: None,
            batch_rows: BATCH_ROWS.0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            holding: Holding::default(),
            keys: HashSet::default(),
            key: Vec::new(),
            held: 0,
            unwinding: None,
            done: false,
            arena: Bump::new(),
            stats: NodeStats::default(),
        }
    }

    /// Pulls the next rows of the input: a batch; or, if all of it will be joined and the number of
    /// keys decides the strategy, as many rows as fit into half of the memory.
    fn read(&mut self, run: &mut Run<'_>, wanted: usize) -> Result<()> {
        let is_known = self.side.plan().keyed_scan().is_none() || self.batch_rows == BATCH_ROWS.1;
        let ahead = run.wanted == usize::MAX && is_known && self.side.plan().key.is_some();
        let (mut rows, mut chunks) = (Vec::new(), Chunks::default());
        self.keys.clear();
        let mut key = Vec::new();
        loop {
            let reads_ahead = ahead && self.side.gains_from_keys(self.keys.len(), run);
            let rows_max = if reads_ahead { BATCH_ROWS.1 } else { wanted.min(self.batch_rows) };
            self.done = !self.input.next(run, rows_max, &mut rows)?;
            for row in rows.drain(..) {
                let mut local = self.local(row, run)?;
                if reads_ahead {
                    let (keys, collator) = (&mut self.keys, collator_of(run.env));
                    for_each_key(&self.stage, &local, |value| {
                        encode_into(value, collator, &mut key);
                        keys.insert(keys.hasher().hash_one(key.as_slice()));
                    });
                    if !self.owned_rows {
                        local.row.detach_into(&mut chunks);
                    }
                }
                self.waiting_bytes += local.size();
                self.waiting.push_back(local);
            }
            self.holding.cover(self.waiting_bytes)?;
            let is_full = self.waiting_bytes > run.env.params.stage_bytes_max / 2;
            if !reads_ahead || self.done || is_full {
                break;
            }
        }
        self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS.1);
        Ok(())
    }

    /// Evaluates the join values of a row.
    fn local(&mut self, mut row: Row, run: &Run<'_>) -> Result<Local> {
        row.know_doc()?;
        let plain = self.stage.variables.is_empty() && self.stage.equality.is_none();
        if plain {
            return Ok(Local { row, variables: Vec::new(), value: None });
        }
        renew(&mut self.arena, run.env)?;
        let outer = run.scope().variables;
        let context = EvalContext::new(&self.arena, row.doc(), &run.env.shared);
        let context = context.with_variables(outer);
        let mut variables = Vec::with_capacity(self.stage.variables.len());
        for variable in self.stage.variables.iter() {
            context.pass()?;
            variables.push(variable.eval(&context)?.map(ValueBuf::new));
        }
        let value = match (&self.side.plan().key, &self.stage.equality) {
            (Some(ForeignKey::Value(..)), Some(equality)) => {
                let bound = bound(&self.stage, outer, &variables);
                let context = EvalContext::new(&self.arena, Doc::empty(), &run.env.shared);
                let value = equality.value.eval(&context.with_variables(&bound))?;
                Some(value.map(ValueBuf::new))
            }
            _ => None,
        };
        Ok(Local { row, variables, value })
    }

    /// Makes sure that the foreign documents of the first waiting rows are in memory: of all of
    /// them, or of half as many until they fit.
    fn hold(&mut self, run: &mut Run<'_>) -> Result<()> {
        let mut rows = self.waiting.len();
        loop {
            let stage = &self.stage;
            let mut keys: Vec<Value<'_>> = Vec::with_capacity(rows);
            for local in self.waiting.iter().take(rows) {
                for_each_key(stage, local, |key| keys.push(key.unwrap_or(Value::Null)));
            }
            let asked = Asked {
                keys: if self.keys.is_empty() { keys.len() } else { self.keys.len() },
                all: self.done && rows == self.waiting.len() && !self.keys.is_empty(),
                bytes_max: match rows {
                    1 => STAGE_BYTES_MAX,
                    _ => run.env.params.stage_bytes_max,
                },
                keeps_others: rows > 1 && self.side.plan().keyed_scan().is_some(),
            };
            if self.side.hold(&keys, asked, run)? {
                self.held = rows;
                return Ok(());
            }
            if rows <= 1 {
                return Err(self.too_large());
            }
            rows /= 2;
            self.batch_rows = rows.min(self.batch_rows);
        }
    }

    /// Joins the first waiting row. Returns it, unless it must be unwound.
    fn join(&mut self, run: &mut Run<'_>) -> Result<Option<Row>> {
        run.env.check_interrupt()?;
        let foreign = Arc::clone(self.side.plan());
        if foreign.key.is_some() && self.held == 0 {
            self.hold(run)?;
        }
        let Some(local) = self.waiting.pop_front() else { return Ok(None) };
        self.waiting_bytes = self.waiting_bytes.saturating_sub(local.size());
        let found = if foreign.key.is_some() {
            self.held -= 1;
            let places = self.matching(&local, run.env);
            match foreign.tail {
                None => Found::Held(places),
                Some(_) => {
                    let found = self.rows_at(&places);
                    Found::Rows(self.through_tail(found, &local, run)?)
                }
            }
        } else if !self.side.hold_everything(run)? {
            Found::Rows(self.stream(&foreign, &local, run)?)
        } else if foreign.tail.is_some() || self.stage.unwind.is_some() {
            let everything = self.side.everything().to_vec();
            Found::Rows(self.through_tail(everything, &local, run)?)
        } else {
            let everything = self.side.everything();
            let constant = match &self.constant {
                Some(constant) => constant,
                None => {
                    let bytes = everything.iter().map(Row::size).sum();
                    reserve_built(bytes)?;
                    self.constant.insert(array_of(everything.iter(), bytes))
                }
            };
            reserve_built(constant.as_bytes().len())?;
            return joined_row(&self.stage, &local.row, constant).map(Some);
        };
        self.emit(local.row, found)
    }

    /// Returns the positions of the documents in memory that have a key of the row.
    fn matching(&mut self, local: &Local, env: &Env) -> Places {
        let (mut places, mut keys, collator) = (Places::new(), 0, collator_of(env));
        let (side, key) = (&self.side, &mut self.key);
        for_each_key(&self.stage, local, |value| {
            encode_into(value, collator, key);
            side.add_places(key, &mut places);
            keys += 1;
        });
        side.arrange(&mut places, keys);
        places
    }

    fn rows_at(&self, places: &Places) -> Vec<Row> {
        places.iter().filter_map(|place| self.side.row(*place).cloned()).collect()
    }

    /// Runs the stages that depend on the row over its foreign documents.
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
        let mut found = found;
        let again = self.tail.take().and_then(|mut built| {
            let restarts = built.restart(&mut found);
            restarts.then_some(built)
        });
        let mut operator = match again {
            Some(operator) => operator,
            None => build_over(tail, Box::new(Rows::new(found)))?,
        };
        let found = run.bound(&variables, |run| collect(&mut operator, run, |_| ()))?;
        if operator.restart(&mut Vec::new()) {
            self.tail = Some(operator);
        } else {
            self.side.note(None, &operator.stats());
        }
        found.ok_or_else(|| self.too_large())
    }

    /// Runs the whole foreign pipeline for one row, because its documents do not fit in memory.
    fn stream(&mut self, foreign: &Foreign, local: &Local, run: &mut Run<'_>) -> Result<Vec<Row>> {
        let source = build(&foreign.whole.root, None)?;
        let mut operator = match &foreign.tail {
            Some(tail) => build_over(tail, source)?,
            None => source,
        };
        let variables = bound(&self.stage, run.scope().variables, &local.variables);
        let found = run.bound(&variables, |run| collect(&mut operator, run, Row::detach))?;
        self.side.note(Some(&foreign.whole.root), &operator.stats());
        found.ok_or_else(|| self.too_large())
    }

    /// Returns a row with its joined documents; `None` if it must be unwound into one row for each
    /// of them.
    fn emit(&mut self, row: Row, found: Found) -> Result<Option<Row>> {
        let bytes: usize = self.documents(&found).map(|row| row.doc().len()).sum();
        if bytes > STAGE_BYTES_MAX {
            return Err(self.too_large());
        }
        if self.stage.unwind.is_some() {
            self.unwinding = Some(Unwinding { row, found, next: 0 });
            return Ok(None);
        }
        reserve_built(bytes + row.size())?;
        let array = array_of(self.documents(&found), bytes + found.len() * ELEMENT_BYTES);
        joined_row(&self.stage, &row, &array).map(Some)
    }

    /// Returns the joined documents.
    fn documents<'f>(&'f self, found: &'f Found) -> impl Iterator<Item = &'f Row> {
        let (places, rows) = match found {
            Found::Held(places) => (places.as_slice(), &[][..]),
            Found::Rows(rows) => (&[][..], rows.as_slice()),
        };
        places.iter().filter_map(|place| self.side.row(*place)).chain(rows)
    }

    /// Returns the next row that can be produced without the input.
    fn pop(&mut self, env: &Env) -> Result<Option<Row>> {
        let Some(Unwinding { row, found, next }) = self.unwinding.take() else { return Ok(None) };
        let made = self.unwound(&row, &found, next, env)?;
        if next + 1 < found.len() {
            self.unwinding = Some(Unwinding { row, found, next: next + 1 });
        }
        Ok(made)
    }

    /// Returns the row with only the joined document number `at`; without any joined document, the
    /// row that the `$unwind` keeps.
    fn unwound(&mut self, row: &Row, found: &Found, at: usize, env: &Env) -> Result<Option<Row>> {
        let Some(unwind) = &self.stage.unwind else { return Ok(None) };
        let made = |doc: DocBuf| Ok(row.becoming(checked(doc)?));
        let joined = match found {
            Found::Held(places) => places.get(at).and_then(|place| self.side.row(*place)),
            Found::Rows(rows) => rows.get(at),
        };
        if let Some(joined) = joined {
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

/// Returns the variables around a stage and those that it adds. A stage of a view does not see the
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

/// Returns true if the stages produce nothing from an empty input.
fn only_streams(node: &Node) -> bool {
    use quire_mql::stage::StageBody;
    match node {
        Node::Stage { stage, input, .. } => stage.streams() && only_streams(input),
        _ => true,
    }
}

/// Returns an array of documents, which take about `bytes` bytes with their names.
fn array_of<'r>(rows: impl Iterator<Item = &'r Row>, bytes: usize) -> ArrayBuf {
    let fill = |writer: &mut ArrayWriter<'_>| {
        rows.for_each(|row| {
            writer.push(row.doc());
        });
    };
    ArrayBuf::build_sized(64 + bytes, fill)
}

/// Returns the row with an array at the path of the result.
fn joined_row(stage: &Lookup, row: &Row, joined: &ArrayBuf) -> Result<Row> {
    let doc = checked(joined_doc(stage, row, Value::Array(joined.as_array())))?;
    Ok(row.becoming(doc))
}

/// Returns the row's document with a value at the path of the result.
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

    fn restart(&mut self, rows: &mut Vec<Row>) -> bool {
        if !self.input.restart(rows) {
            return false;
        }
        self.side.restart();
        if self.side.plan().varies {
            self.constant = None;
        }
        self.waiting.clear();
        (self.waiting_bytes, self.held) = (0, 0);
        self.holding = Holding::default();
        self.batch_rows = BATCH_ROWS.0;
        (self.unwinding, self.done) = (None, false);
        true
    }

    fn rest(&mut self) {
        self.input.rest();
        if let Some(tail) = &mut self.tail {
            tail.rest();
        }
        self.waiting.iter_mut().for_each(|local| local.row.detach());
        if let Some(Unwinding { mut row, found, next }) = self.unwinding.take() {
            row.detach();
            let mut rows: Vec<Row> = self.documents(&found).cloned().collect();
            rows.iter_mut().for_each(Row::detach);
            self.unwinding = Some(Unwinding { row, found: Found::Rows(rows), next });
        }
        self.side.rest();
        if self.side.plan().whole.missing {
            self.constant = None;
        }
        self.held = 0;
    }

    fn stats(&self) -> NodeStats {
        let tail = self.tail.as_ref().map(|tail| tail.stats());
        let (joined, read) = self.side.stats_with(tail.as_ref());
        let inputs = vec![self.input.stats(), read];
        let constant = self.constant.as_ref().map_or(0, |array| array.as_bytes().len());
        let unwinding = self.unwinding.as_ref().map_or(0, Unwinding::size);
        let held = self.waiting_bytes.saturating_sub(self.holding.bytes()) + constant + unwinding;
        NodeStats {
            inputs,
            held_bytes: held as u64,
            joined: Some(Box::new(joined)),
            ..self.stats.clone()
        }
    }
}
