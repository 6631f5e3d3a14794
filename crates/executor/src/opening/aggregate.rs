//! Opening an `aggregate`.

use std::sync::Arc;

use bytes::Bytes;
use quire_collections::RecordId;
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_mql::stage::{Modified, Stage, parse_stage};
use quire_planner::explain::NodeStats;
use quire_planner::{AggregateRequest, Node, PipelineParts, Plan, plan_find, split_pipeline};

use crate::env::{Env, Run};
use crate::execution::Execution;
use crate::grouping::group::{GroupOp, Source};
use crate::opening::build::{Needs, build_with_sort_keys, compile};
use crate::opening::find::find_collection;
use crate::opening::statistics::ViewStatistics;
use crate::operators::chain::Chain;
use crate::operators::metadata::Wanted;
use crate::operators::projection;
use crate::operators::sample::Sample;
use crate::operators::simple::{Limit, Skip};
use crate::operators::sort::Sort;
use crate::operators::{BoxedOperator, Operator};
use crate::params::ExecParams;
use crate::row::Row;
use crate::scans::collection_scan::CollectionScan;
use crate::views::Views;

/// Plans a pipeline over a collection and makes it ready to run.
///
/// # Errors
/// What `mql` says about the stages and variables; what the planner says about the hint.
pub fn open_aggregate(
    request: &AggregateRequest,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    let prepared = Prepared::new(request, views, params)?;
    prepared.open(views)
}

/// Runs a pipeline over documents that were made elsewhere (`$currentOp`, `$indexStats`, ...).
///
/// # Errors
/// What `mql` says about the stages and variables.
pub fn open_pipeline_over(
    documents: Vec<DocBuf>,
    request: &AggregateRequest,
    params: ExecParams,
) -> Result<Execution> {
    let disk = request.allow_disk_use.unwrap_or(params.disk_by_default);
    let env = Env::new(params, request.let_vars.as_doc(), disk)?;
    let stages = parse_stages(request, &env)?;
    let source: BoxedOperator = Box::new(Documents { rows: documents.into_iter() });
    let root = build_stages(Source::Rows(source), Chain::default(), stages, false);
    Ok(Execution::new(env, root, None, None))
}

/// A pipeline that was planned.
pub(crate) struct Prepared {
    pub env: Env,
    pub parts: PipelineParts,
    pub plan: Plan,
    pub collection: Option<Arc<quire_catalog::Collection>>,
}

impl Prepared {
    pub fn new(request: &AggregateRequest, views: &dyn Views, params: ExecParams) -> Result<Self> {
        let disk = request.allow_disk_use.unwrap_or(params.disk_by_default);
        let mut env = Env::new(params, request.let_vars.as_doc(), disk)?;
        let stages = parse_stages(request, &env)?;
        let parts = split_pipeline(request, stages, &env.parse)?;
        env.filter = parts.find.filter.clone();
        env.sort = parts.find.sort.clone();
        env.project_stage = parts.project_stage;
        let filter = Filter::parse(parts.find.filter.as_doc(), &env.parse)?;
        let collection = find_collection(&request.namespace, views)?;
        let mut plan = {
            let stats = ViewStatistics::new(views.view(), collection.as_deref());
            plan_find(&parts.find, Some(&filter), collection.as_deref(), &stats)?
        };
        let shaping = ["$group", "$replaceRoot", "$project"];
        plan.stages = parts.rest.iter().map(Stage::name).filter(|n| shaping.contains(n)).collect();
        Ok(Prepared { env, parts, plan, collection })
    }

    /// Ready to run.
    pub fn open(self, _: &dyn Views) -> Result<Execution> {
        let Prepared { env, parts, plan, collection } = self;
        let rest = parts.rest;
        let hinted = parts.projection_is_hint;
        let copies = copies(&rest);
        let root = if (hinted && !copies) || parts.counts_only {
            lean(plan.root.clone(), parts.counts_only)
        } else {
            plan.root.clone()
        };
        let keys = !parts.counts_only && !root.gives_documents();
        let mut chain = Chain::default();
        let source = match scan_of(&root, hinted) {
            Some(scan) if !wanted_first(&rest).any => {
                if matches!(root, Node::Projection { .. }) {
                    chain.keep(projection::compile(parts.find.projection.as_doc(), &env)?);
                }
                Source::Scan(Box::new(scan))
            }
            _ => Source::Rows(build_source(&root, &env, keys, &rest)?),
        };
        let root = build_stages(source, chain, rest, false);
        let mut execution = Execution::new(env, root, collection, Some(Arc::new(plan)));
        execution.of_pipeline = true;
        Ok(execution)
    }
}

/// The stages of a plan below those of a pipeline.
pub(crate) fn build_source(
    root: &Node,
    env: &Env,
    keys: bool,
    rest: &[Stage],
) -> Result<BoxedOperator> {
    let wanted = wanted_first(rest);
    let needs = Needs { keys: keys || wanted.index_key, sort_keys: wanted.sort_key };
    build_with_sort_keys(root, env, needs)
}

/// Without a projection that only says what is read, and without fetching documents of which
/// nothing is read.
fn lean(node: Node, counts_only: bool) -> Node {
    match node {
        Node::Projection { input, .. } => lean(*input, counts_only),
        Node::Fetch { filter: None, input } if counts_only => *input,
        Node::Subplan { input } => lean(*input, counts_only),
        Node::Limit { count, input } => {
            Node::Limit { count, input: Box::new(lean(*input, counts_only)) }
        }
        Node::Skip { count, input } => {
            Node::Skip { count, input: Box::new(lean(*input, counts_only)) }
        }
        Node::Sort { pattern, limit, simple, input } => {
            Node::Sort { pattern, limit, simple, input: Box::new(lean(*input, false)) }
        }
        other => other,
    }
}

/// Whether a stage before the first `$group` writes a document's fields anew. Then it pays to keep
/// only those that are read.
fn copies(stages: &[Stage]) -> bool {
    let mut copied = stages.iter().take_while(|stage| !matches!(stage, Stage::Group(_)));
    copied.any(|stage| match stage {
        Stage::Unwind(_) => true,
        Stage::Transform(transform) => matches!(transform.modified(), Modified::Paths(_)),
        _ => false,
    })
}

/// The scan, if a plan does nothing else.
fn scan_of(root: &Node, projection_is_hint: bool) -> Option<CollectionScan> {
    match root {
        Node::CollScan { filter, backward } => {
            Some(CollectionScan::new(*backward, compile(filter.as_ref())))
        }
        Node::Projection { input, .. } if projection_is_hint => scan_of(input, false),
        _ => None,
    }
}

/// What stages want of the rows that the first of them is given.
fn wanted_first(stages: &[Stage]) -> Wanted {
    Wanted::from_each(stages).first().copied().unwrap_or_default()
}

fn parse_stages(request: &AggregateRequest, env: &Env) -> Result<Vec<Stage>> {
    let mut stages = Vec::with_capacity(request.pipeline.len());
    for stage in &request.pipeline {
        stages.extend(parse_stage(stage.as_doc().into(), &env.parse)?);
    }
    Ok(stages)
}

/// Puts stages above a source and a chain that its rows go through first.
///
/// `separate`: each stage by itself, so that each has its own statistics.
pub(crate) fn build_stages(
    source: Source,
    chain: Chain,
    stages: Vec<Stage>,
    separate: bool,
) -> BoxedOperator {
    let (mut source, mut chain) = (source, chain);
    let mut wanted = Wanted::from_each(&stages).into_iter();
    let mut stages = stages.into_iter();
    while let Some(stage) = stages.next() {
        chain.reads_metadata |= wanted.next().unwrap_or_default().any;
        let Some(stage) = chain.push(stage) else {
            if separate {
                source = Source::Rows(source.through(std::mem::take(&mut chain)));
            }
            continue;
        };
        let waiting = std::mem::take(&mut chain);
        let stats = NodeStats::default();
        source = Source::Rows(match stage {
            Stage::Group(group) => Box::new(GroupOp::new(source, waiting, group)),
            Stage::Limit(left) => Box::new(Limit { input: source.through(waiting), left, stats }),
            Stage::Skip(left) => Box::new(Skip { input: source.through(waiting), left, stats }),
            Stage::Sample(size) => Box::new(Sample::new(source.through(waiting), size)),
            Stage::Sort(pattern) => {
                let limit = sort_limit(stages.as_slice());
                let keep = wanted.as_slice().first().is_some_and(|later| later.sort_key);
                Box::new(Sort::new(source.through(waiting), pattern, limit, keep))
            }
            Stage::Match(_) | Stage::Transform(_) | Stage::Unwind(_) | Stage::Redact(_) => {
                source.through(waiting)
            }
        });
    }
    source.through(chain)
}

/// How many rows of a sort are wanted, by the stages that follow it; 0 for all.
pub(crate) fn sort_limit(following: &[Stage]) -> u64 {
    match following {
        [Stage::Limit(limit), ..] => *limit,
        [Stage::Skip(skip), Stage::Limit(limit), ..] => limit.saturating_add(*skip),
        _ => 0,
    }
}

/// Documents from memory.
struct Documents {
    rows: std::vec::IntoIter<DocBuf>,
}

impl Operator for Documents {
    fn next(&mut self, _: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        for doc in self.rows.by_ref().take(max) {
            out.push(Row::of_document(RecordId(0), Bytes::from(doc.into_bytes())));
        }
        Ok(self.rows.len() > 0)
    }

    fn stats(&self) -> NodeStats {
        NodeStats::default()
    }
}
