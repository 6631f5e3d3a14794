//! `$facet`: reads its input once, into memory or to disk, and runs each branch over it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use quire_collections::{Helpers, RecordId, SpillReader, SpillWriter};
use quire_document::{ArrayBuf, DocBuf};
use quire_error::{Error, Result};
use quire_mql::stage::Facet;
use quire_planner::explain::NodeStats;
use quire_planner::{Inner, Node};

use crate::build::build_over;
use crate::env::{Env, Run};
use crate::joins::rows::drain;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::{Extra, Row};
use crate::views::OpenViews;

/// The operator of `$facet`.
pub(crate) struct FacetOp {
    input: BoxedOperator,
    /// True if the input's rows own their bytes.
    owned_rows: bool,
    stage: Arc<Facet>,
    branches: Arc<[Node]>,
    branch_stats: Vec<NodeStats>,
    stats: NodeStats,
}

/// The input of the branches.
#[derive(Clone)]
enum Shared {
    Memory(Arc<Vec<Row>>),
    /// Documents in a file. The branches read it one after the other.
    Disk(Arc<Mutex<SpillReader>>),
}

/// The leaf of a branch.
struct Leaf {
    shared: Shared,
    next: usize,
    stats: NodeStats,
}

/// The result of a branch.
struct Found {
    documents: ArrayBuf,
    /// The bytes that its rows took in memory.
    bytes: usize,
    stats: NodeStats,
}

impl FacetOp {
    pub fn new(
        input: BoxedOperator,
        owned_rows: bool,
        stage: &Arc<Facet>,
        branches: &Arc<[Node]>,
    ) -> Self {
        FacetOp {
            input,
            owned_rows,
            stage: Arc::clone(stage),
            branches: Arc::clone(branches),
            branch_stats: Vec::new(),
            stats: NodeStats::default(),
        }
    }
}

/// Runs the branches: several at a time if each works on many rows in memory and reads nothing
/// else. Returns their results in order, up to the first error.
fn run_all(branches: &[Node], shared: &Shared, run: &mut Run<'_>) -> Result<Vec<Found>> {
    let params = &run.env.params;
    let long = match shared {
        Shared::Memory(rows) => rows.len() as u64 >= params.long_scan_docs,
        Shared::Disk(_) => false,
    };
    let most = params.threads_max.min(branches.len());
    let helpers = match long && !branches.iter().any(reads_more) {
        true => Helpers::acquire(most.saturating_sub(1)),
        false => Helpers::acquire(0),
    };
    let mut left = STAGE_BYTES_MAX;
    if helpers.count() == 0 {
        let one_by_one = branches.iter().map(|node| {
            let found = run_branch(node, shared, run, left)?;
            left -= found.bytes;
            Ok(found)
        });
        return one_by_one.collect();
    }
    let taken = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let (scope, view) = (run.scope(), run.view());
    let work = || {
        // The branches do not read from it.
        let mut views = OpenViews::Pinned(view);
        let mut run = Run::new(scope, &mut views, 0);
        loop {
            let at = taken.fetch_add(1, Ordering::Relaxed);
            let Some(node) = branches.get(at) else { return };
            let found = run_branch(node, shared, &mut run, STAGE_BYTES_MAX);
            done.lock().insert(at, found);
        }
    };
    helpers.run("facet", work, work);
    let in_order = done.into_inner().into_values().map(|found| {
        let found = found?;
        left = left.checked_sub(found.bytes).ok_or_else(too_large)?;
        Ok(found)
    });
    in_order.collect()
}

/// Runs a branch. Its result may take `bytes_max` bytes.
fn run_branch(node: &Node, shared: &Shared, run: &mut Run<'_>, bytes_max: usize) -> Result<Found> {
    if let Shared::Disk(reader) = shared {
        reader.lock().restart()?;
    }
    let leaf = Leaf { shared: shared.clone(), next: 0, stats: NodeStats::default() };
    let mut operator = build_over(node, Box::new(leaf))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    drain(&mut operator, run, &mut |row| {
        // Many small documents take more memory than their bytes.
        bytes += row.size();
        if bytes > bytes_max {
            return Err(too_large());
        }
        found.push(row);
        Ok(true)
    })?;
    let documents = ArrayBuf::build(|writer| {
        found.iter().for_each(|row| {
            writer.push(row.doc());
        });
    });
    Ok(Found { documents, bytes, stats: operator.stats() })
}

fn too_large() -> Error {
    let text =
        format!("document constructed by $facet exceeds the limit of {STAGE_BYTES_MAX} bytes");
    Error::location(4031700, text)
}

/// Returns true if a stage of a branch reads more than the documents of its input.
fn reads_more(node: &Node) -> bool {
    let reads = matches!(node, Node::Stage { inner, .. } if !matches!(inner, Inner::Nothing));
    reads || node.inputs().iter().any(reads_more)
}

/// Reads all rows of the input.
fn collect(
    input: &mut BoxedOperator,
    owned_rows: bool,
    run: &mut Run<'_>,
    spills: &mut u64,
) -> Result<Shared> {
    let (env, mut rows, mut bytes) = (run.env, Vec::new(), 0);
    let mut writer: Option<SpillWriter> = None;
    drain(input, run, &mut |mut row: Row| {
        if !owned_rows {
            row.detach();
        }
        bytes += row.size();
        rows.push(row);
        if bytes > env.params.stage_bytes_max {
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(spill_file(env)?),
            };
            *spills += 1;
            rows.drain(..).try_for_each(|row| write_row(writer, &row))?;
            bytes = 0;
        }
        Ok(true)
    })?;
    let Some(mut writer) = writer else { return Ok(Shared::Memory(Arc::new(rows))) };
    rows.iter().try_for_each(|row| write_row(&mut writer, row))?;
    Ok(Shared::Disk(Arc::new(Mutex::new(writer.into_reader()?))))
}

fn spill_file(env: &Env) -> Result<SpillWriter> {
    match env.spill_directory() {
        Some(directory) => SpillWriter::create(directory),
        None => Err(env.memory_error("$facet")),
    }
}

impl Operator for FacetOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.stats.is_eof || max == 0 {
            return Ok(!self.stats.is_eof);
        }
        let shared = collect(&mut self.input, self.owned_rows, run, &mut self.stats.spills)?;
        let mut doc = DocBuf::new();
        let all = run_all(&self.branches, &shared, run)?;
        for ((name, _), found) in self.stage.branches.iter().zip(all) {
            doc.append(name, &found.documents);
            self.branch_stats.push(found.stats);
        }
        out.push(Row::made(doc));
        self.stats.returned = 1;
        self.stats.is_eof = true;
        Ok(false)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        let mut inputs = vec![self.input.stats()];
        inputs.extend(self.branch_stats.iter().cloned());
        NodeStats { inputs, ..self.stats.clone() }
    }
}

fn write_row(writer: &mut SpillWriter, row: &Row) -> Result<()> {
    let metadata = row.extra.as_ref().and_then(|extra| extra.to_spill());
    writer.write(&[row.doc().as_bytes(), metadata.as_ref().map_or(&[], DocBuf::as_bytes)])
}

/// Reads documents from a file. Returns false at its end.
fn read_back(reader: &mut SpillReader, mut filling: Filling<'_>) -> Result<bool> {
    while !filling.is_full() {
        let Some(doc) = reader.read()? else { return Ok(false) };
        let metadata =
            reader.read()?.ok_or_else(|| Error::internal("a spilled file ended early"))?;
        let row = Row::of_document(RecordId(0), Bytes::from(doc));
        filling.push(Row { extra: Extra::from_spill(&metadata), ..row });
    }
    Ok(true)
}

impl Operator for Leaf {
    fn next(&mut self, _: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let start = out.len();
        let more = match &self.shared {
            Shared::Memory(rows) => {
                let rest = rows.get(self.next..).unwrap_or_default();
                let taken = max.min(rest.len());
                out.extend(rest.iter().take(taken).cloned());
                self.next += taken;
                taken < rest.len()
            }
            Shared::Disk(reader) => read_back(&mut reader.lock(), Filling::new(out, max))?,
        };
        self.stats.returned += (out.len() - start) as u64;
        self.stats.is_eof = !more;
        Ok(more)
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}
