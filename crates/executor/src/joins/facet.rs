//! `$facet`: reads its input once, in memory or beyond that on disk, and runs each branch over it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quire_collections::RecordId;
use quire_document::{ArrayBuf, DocBuf};
use quire_error::{Error, Result};
use quire_mql::stage::Facet;
use quire_planner::Node;
use quire_planner::explain::NodeStats;

use crate::env::{Env, Run};
use crate::joins::rows::drain;
use crate::opening::build::build_over;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::{Extra, Row};
use crate::spill::{SpillReader, SpillWriter};

/// The operator of `$facet`.
pub(crate) struct FacetOp {
    input: BoxedOperator,
    stage: Arc<Facet>,
    branches: Arc<[Node]>,
    branch_stats: Vec<NodeStats>,
    stats: NodeStats,
}

/// What the branches read.
#[derive(Clone)]
enum Shared {
    Memory(Arc<Vec<Row>>),
    /// Documents in a file, which one branch reads after the other.
    Disk(Arc<Mutex<SpillReader>>),
}

/// The leaf of a branch.
struct Leaf {
    shared: Shared,
    next: usize,
    stats: NodeStats,
}

impl FacetOp {
    pub fn new(input: BoxedOperator, stage: &Arc<Facet>, branches: &Arc<[Node]>) -> Self {
        FacetOp {
            input,
            stage: Arc::clone(stage),
            branches: Arc::clone(branches),
            branch_stats: Vec::new(),
            stats: NodeStats::default(),
        }
    }

    /// Runs a branch; `left` is what the result may still hold.
    fn branch(
        &mut self,
        node: &Node,
        shared: &Shared,
        run: &mut Run<'_>,
        left: &mut usize,
    ) -> Result<ArrayBuf> {
        if let Shared::Disk(reader) = shared {
            reader.lock().restart()?;
        }
        let leaf = Leaf { shared: shared.clone(), next: 0, stats: NodeStats::default() };
        let mut operator = build_over(node, Box::new(leaf))?;
        let mut found = Vec::new();
        drain(&mut operator, run, &mut |row| {
            // Many small documents take more memory than their bytes.
            let bytes = row.size();
            if bytes > *left {
                let text = format!(
                    "document constructed by $facet exceeds the limit of {STAGE_BYTES_MAX} bytes"
                );
                return Err(Error::location(4031700, text));
            }
            *left -= bytes;
            found.push(row);
            Ok(true)
        })?;
        self.branch_stats.push(operator.stats());
        Ok(ArrayBuf::build(|writer| {
            found.iter().for_each(|row| {
                writer.push(row.doc());
            });
        }))
    }
}

/// Reads all rows of the input.
fn collect(input: &mut BoxedOperator, run: &mut Run<'_>, spills: &mut u64) -> Result<Shared> {
    let (env, mut rows, mut bytes) = (run.env, Vec::new(), 0);
    let mut writer: Option<SpillWriter> = None;
    drain(input, run, &mut |mut row: Row| {
        row.detach();
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
        let shared = collect(&mut self.input, run, &mut self.stats.spills)?;
        let mut doc = DocBuf::new();
        let mut left = STAGE_BYTES_MAX;
        let (stage, branches) = (Arc::clone(&self.stage), Arc::clone(&self.branches));
        for ((name, _), node) in stage.branches.iter().zip(branches.iter()) {
            let found = self.branch(node, &shared, run, &mut left)?;
            doc.append(name, &found);
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

/// Reads documents from a file; false at its end.
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
