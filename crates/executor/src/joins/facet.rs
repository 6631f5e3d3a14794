//! `$facet`: reads its input once and runs each branch over it. If the first stage of a branch keeps less
//! than all documents, it takes them while they are read. For the other branches the documents are kept, in
//! memory or on disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use quire_collections::{Helpers, RecordId, SpillReader, SpillWriter};
use quire_document::{ArrayBuf, Doc, DocBuf, DocWriter};
use quire_error::{Error, Result};
use quire_mql::stage::Facet;
use quire_planner::explain::NodeStats;
use quire_planner::{Inner, Node};

use crate::build::{build_above, build_over, head_of};
use crate::chunks::Chunks;
use crate::env::{Env, Run, Scope};
use crate::holding::{Holding, refused, reserve_built};
use crate::joins::facet_heads::{Collected, Head};
use crate::joins::rows::{ELEMENT_BYTES, drain};
use crate::operators::chain::StepCounts;
use crate::operators::{BoxedOperator, Filling, Operator};
use crate::params::STAGE_BYTES_MAX;
use crate::row::{Extra, Row};
use crate::taking::{Documents, Given, Scratch, Taken, Taker};
use crate::views::OpenViews;

/// Rows asked for at a time.
const ROWS_MAX: usize = 1024;

/// The operator of `$facet`.
pub(crate) struct FacetOp {
    input: BoxedOperator,
    /// True if the input's rows own their bytes.
    owned_rows: bool,
    stage: Arc<Facet>,
    branches: Arc<[Node]>,
    heads: Heads,
    branch_stats: Vec<NodeStats>,
    stats: NodeStats,
}

/// The heads of the branches.
pub(crate) struct Heads {
    /// `None` for a branch that needs the documents themselves.
    heads: Vec<Option<Head>>,
}

/// The input of the branches.
struct Input {
    /// The documents, for branches that need them.
    shared: Shared,
    /// What the heads of the others have taken.
    collected: Vec<Mutex<Option<(Head, Collected)>>>,
    /// The number of documents.
    count: u64,
}

/// The input of the branches.
#[derive(Clone)]
enum Shared {
    /// The rows, and their share of the server's memory.
    Memory(Arc<(Vec<Row>, Holding)>),
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
    /// The memory of `documents`.
    _holding: Holding,
    stats: NodeStats,
}

impl Heads {
    pub fn of(branches: &[Node]) -> Result<Self> {
        Ok(Heads { heads: branches.iter().map(head_of).collect::<Result<_>>()? })
    }

    /// True if a branch needs the documents themselves.
    pub fn keep_rows(&self) -> bool {
        self.heads.iter().any(Option::is_none)
    }
}

impl Taker for Heads {
    fn take(&self, docs: &Documents<'_>, scratch: &mut Scratch, scope: Scope<'_>) -> Option<Taken> {
        let mut each = Vec::with_capacity(self.heads.len() + 1);
        for head in self.heads.iter().flatten() {
            each.push(head.take(docs, scratch, scope)?);
        }
        if self.keep_rows() {
            let chunks = &mut scratch.chunks;
            let copy = |(at, doc): (usize, &Doc<'_>)| {
                Row::of_document((docs.record)(at), chunks.copy(doc.as_bytes()))
            };
            let rows = docs.docs.iter().enumerate().map(copy).collect();
            each.push(Taken::Rows(rows, StepCounts::default()));
        }
        Some(Taken::Each(each, docs.docs.len() as u64))
    }
}

impl FacetOp {
    pub fn new(
        input: BoxedOperator,
        owned_rows: bool,
        stage: &Arc<Facet>,
        (branches, heads): (&Arc<[Node]>, Heads),
    ) -> Self {
        FacetOp {
            input,
            owned_rows,
            stage: Arc::clone(stage),
            branches: Arc::clone(branches),
            heads,
            branch_stats: Vec::new(),
            stats: NodeStats::default(),
        }
    }

    /// Reads the whole input.
    fn collect(&mut self, run: &mut Run<'_>) -> Result<Input> {
        let scope = run.scope();
        let heads = &self.heads;
        let mut intake = FacetIntake {
            heads,
            collected: heads.heads.iter().flatten().map(|head| head.begin(scope.env)).collect(),
            kept: heads.keep_rows().then(KeptRows::default),
            owned_rows: self.owned_rows,
            count: 0,
        };
        let (input, mut rows) = (&mut self.input, Vec::new());
        run.for_all(|run| {
            loop {
                input.feed(run, heads, &mut |given| intake.take(given, scope))?;
                let more = input.next(run, ROWS_MAX, &mut rows)?;
                intake.take_rows(std::mem::take(&mut rows), scope)?;
                if !more {
                    return Ok::<(), Error>(());
                }
            }
        })?;
        let FacetIntake { collected, kept, count, .. } = intake;
        let mut kept = kept.unwrap_or_default();
        let shared = kept.end()?;
        self.stats.spills = kept.spills;
        let mut collected = collected.into_iter();
        let heads = std::mem::take(&mut self.heads.heads).into_iter();
        let with_collected =
            |head: Option<Head>| Mutex::new(head.and_then(|head| Some((head, collected.next()?))));
        Ok(Input { shared, collected: heads.map(with_collected).collect(), count })
    }
}

/// Takes the documents of the input.
struct FacetIntake<'h> {
    heads: &'h Heads,
    /// What the heads have taken, one for each.
    collected: Vec<Collected>,
    /// The documents themselves, if a branch needs them.
    kept: Option<KeptRows>,
    owned_rows: bool,
    count: u64,
}

impl FacetIntake<'_> {
    fn take(&mut self, given: Given, scope: Scope<'_>) -> Result<()> {
        let each = match given {
            Given::Rows(rows) => return self.take_rows(rows, scope),
            Given::Taken(Taken::Each(each, count)) => {
                self.count += count;
                each
            }
            Given::Taken(_) => return Err(Taken::mistaken("$facet")),
        };
        let mut each = each.into_iter();
        let heads = self.heads.heads.iter().flatten();
        for ((head, collected), taken) in heads.zip(&mut self.collected).zip(each.by_ref()) {
            collected.take(head, taken, scope);
        }
        match (&mut self.kept, each.next()) {
            (Some(kept), Some(Taken::Rows(rows, _))) => {
                rows.into_iter().try_for_each(|row| kept.push(row, scope.env))
            }
            _ => Ok(()),
        }
    }

    fn take_rows(&mut self, mut rows: Vec<Row>, scope: Scope<'_>) -> Result<()> {
        self.count += rows.len() as u64;
        rows.iter_mut().try_for_each(Row::know_doc)?;
        for (head, collected) in self.heads.heads.iter().flatten().zip(&mut self.collected) {
            collected.take_rows(head, &mut rows, scope);
        }
        let Some(kept) = &mut self.kept else { return Ok(()) };
        for mut row in rows {
            if !self.owned_rows {
                row.detach_into(&mut kept.chunks);
            }
            kept.push(row, scope.env)?;
        }
        Ok(())
    }
}

/// Documents that are kept for branches, in memory or beyond that on disk.
#[derive(Default)]
struct KeptRows {
    rows: Vec<Row>,
    chunks: Chunks,
    bytes: usize,
    holding: Holding,
    writer: Option<SpillWriter>,
    spills: u64,
}

impl KeptRows {
    fn push(&mut self, row: Row, env: &Env) -> Result<()> {
        self.bytes += row.size();
        self.rows.push(row);
        let fits = self.bytes <= env.params.stage_bytes_max;
        if fits && self.holding.cover_or_spill(self.bytes)? {
            return Ok(());
        }
        if fits && !env.may_spill {
            return Err(refused());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(spill_file(env)?),
        };
        self.spills += 1;
        self.rows.drain(..).try_for_each(|row| write_row(writer, &row))?;
        self.bytes = 0;
        self.holding.cover(0)
    }

    fn end(&mut self) -> Result<Shared> {
        let rows = std::mem::take(&mut self.rows);
        let Some(mut writer) = self.writer.take() else {
            let holding = std::mem::take(&mut self.holding);
            return Ok(Shared::Memory(Arc::new((rows, holding))));
        };
        rows.iter().try_for_each(|row| write_row(&mut writer, row))?;
        Ok(Shared::Disk(Arc::new(Mutex::new(writer.into_reader()?))))
    }
}

/// Runs the branches: several at a time if each works on many rows and reads nothing else. Returns their
/// results in order, up to the first error.
fn run_all(branches: &[Node], input: &Input, run: &mut Run<'_>) -> Result<Vec<Found>> {
    let params = &run.env.params;
    let in_memory = matches!(input.shared, Shared::Memory(_));
    let long = in_memory && input.count >= params.long_scan_docs;
    let most = params.threads_max.min(branches.len());
    let helpers = match long && !branches.iter().any(reads_more) {
        true => Helpers::acquire(most.saturating_sub(1)),
        false => Helpers::acquire(0),
    };
    let mut left = STAGE_BYTES_MAX;
    if helpers.count() == 0 {
        let one_by_one = branches.iter().enumerate().map(|(at, node)| {
            let found = run_branch((at, node), input, run, left)?;
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
            let found = scope
                .env
                .interruptible(|| run_branch((at, node), input, &mut run, STAGE_BYTES_MAX));
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
fn run_branch(
    (at, node): (usize, &Node),
    input: &Input,
    run: &mut Run<'_>,
    bytes_max: usize,
) -> Result<Found> {
    let collected = input.collected.get(at).and_then(|collected| collected.lock().take());
    let mut operator = match collected {
        Some(head) => {
            let leaf = NodeStats { returned: input.count, is_eof: true, ..NodeStats::default() };
            build_above(node, head, leaf, run.env)?
        }
        None => {
            if let Shared::Disk(reader) = &input.shared {
                reader.lock().restart()?;
            }
            let shared = input.shared.clone();
            build_over(node, Box::new(Leaf { shared, next: 0, stats: NodeStats::default() }))?
        }
    };
    let (mut found, mut bytes, mut holding) = (Vec::new(), 0, Holding::default());
    drain(&mut operator, run, &mut |row| {
        // Many small documents take more memory than their bytes.
        bytes += row.size();
        if bytes > bytes_max {
            return Err(too_large());
        }
        holding.cover(bytes)?;
        found.push(row);
        Ok(true)
    })?;
    // The rows and a copy of them.
    holding.cover(bytes.saturating_mul(2))?;
    let documents = ArrayBuf::build_sized(bytes + found.len() * ELEMENT_BYTES, |writer| {
        found.iter().for_each(|row| {
            writer.push(row.doc());
        });
    });
    drop(found);
    holding.cover(documents.as_bytes().len())?;
    Ok(Found { documents, bytes, _holding: holding, stats: operator.stats() })
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

fn spill_file(env: &Env) -> Result<SpillWriter> {
    match env.spill_directory() {
        Some(directory) => SpillWriter::create(directory),
        None => Err(too_large()),
    }
}

impl Operator for FacetOp {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.stats.is_eof || max == 0 {
            return Ok(!self.stats.is_eof);
        }
        let input = self.collect(run)?;
        let all = run_all(&self.branches, &input, run)?;
        drop(input);
        let bytes = all.iter().map(|found| found.documents.as_bytes().len()).sum();
        reserve_built(bytes)?;
        let names: usize = self.stage.branches.iter().map(|(name, _)| name.len() + 2).sum();
        let mut doc = Vec::with_capacity(bytes + names + 5);
        let mut writer = DocWriter::new(&mut doc);
        for ((name, _), found) in self.stage.branches.iter().zip(all) {
            writer.append(name, &found.documents);
            self.branch_stats.push(found.stats);
        }
        writer.finish();
        out.push(Row::made(DocBuf::from_valid_bytes(doc)));
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
                let rest = rows.0.get(self.next..).unwrap_or_default();
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
