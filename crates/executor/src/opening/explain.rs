//! Explaining a request: its plans, and what happened when the chosen one ran.

use std::sync::Arc;
use std::time::Instant;

use quire_document::{ArrayWriter, DocBuf, DocWriter, doc};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_mql::stage::{Stage, Transform};
use quire_planner::explain::{NodeStats, after_running, execution_stats, query_planner};
use quire_planner::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Node, Plan, Verbosity, WriteKind,
    add_intersection, aggregate_shape, find_shape, plan_count, plan_distinct, plan_find,
};
use quire_storage::Interrupt;

use crate::env::Env;
use crate::execution::Execution;
use crate::grouping::group::Source;
use crate::opening::aggregate::{Prepared, build_source, build_stages, sort_limit};
use crate::opening::build::{Needs, build};
use crate::opening::find::find_collection;
use crate::opening::statistics::ViewStatistics;
use crate::operators::chain::Chain;
use crate::params::ExecParams;
use crate::views::Views;

/// What is to be explained.
#[derive(Debug, Clone, Copy)]
pub enum Explained<'r> {
    /// A `find`.
    Find(&'r FindRequest),
    /// An `aggregate`.
    Aggregate(&'r AggregateRequest),
    /// A `count`.
    Count(&'r CountRequest),
    /// A `distinct`.
    Distinct(&'r DistinctRequest),
    /// The query of an update, a delete or a findAndModify, and what it would do.
    Write(&'r FindRequest, WriteKind),
}

/// The explanation: `explainVersion`, `queryPlanner` and `executionStats`, or `stages`. Nothing
/// is written.
///
/// # Errors
/// What opening the request answers, and running it where `verbosity` asks for that.
pub fn explain(
    what: Explained<'_>,
    verbosity: Verbosity,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<DocBuf> {
    match what {
        Explained::Aggregate(request) => explain_aggregate(request, verbosity, views, params),
        Explained::Find(request) => {
            let (env, filter) = prepare(request, params)?;
            let mut plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_find(request, Some(&filter), collection, stats)
            })?;
            add_intersection(&mut plan);
            let shape = find_shape(request, &env.parse);
            explain_plan(Job { plan, env, max: usize::MAX, counts: (0, 0) }, verbosity, views)
                .map(|explained| with_shape(explained, &shape))
        }
        Explained::Count(request) => {
            let (env, filter) = prepare(
                &FindRequest { filter: request.filter.clone(), ..FindRequest::default() },
                params,
            )?;
            let plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_count(request, &filter, collection, stats)
            })?;
            explain_plan(
                Job { plan, env, max: usize::MAX, counts: (request.skip, request.limit) },
                verbosity,
                views,
            )
        }
        Explained::Distinct(request) => {
            let (env, filter) = prepare(
                &FindRequest { filter: request.filter.clone(), ..FindRequest::default() },
                params,
            )?;
            let plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_distinct(request, &filter, collection, stats)
            })?;
            explain_plan(Job { plan, env, max: usize::MAX, counts: (0, 0) }, verbosity, views)
        }
        Explained::Write(request, kind) => {
            let (env, filter) = prepare(request, params)?;
            let mut plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_find(request, Some(&filter), collection, stats)
            })?;
            add_intersection(&mut plan);
            let (multi, wrap): (bool, fn(Box<Node>) -> Node) = match kind {
                WriteKind::Update { multi, .. } => (multi, |input| Node::Update { input }),
                WriteKind::Delete { multi } => (multi, |input| Node::Delete { input }),
            };
            plan.root = wrap(Box::new(plan.root));
            plan.rejected = plan.rejected.into_iter().map(|node| wrap(Box::new(node))).collect();
            let max = if multi { usize::MAX } else { 1 };
            explain_plan(Job { plan, env, max, counts: (0, 0) }, verbosity, views)
        }
    }
}

fn with_shape(mut explained: DocBuf, shape: &str) -> DocBuf {
    explained.append("queryShapeHash", shape);
    explained
}

/// A plan to be explained.
struct Job {
    plan: Plan,
    env: Env,
    /// Rows after which a write would stop.
    max: usize,
    /// Skip and limit of a count.
    counts: (u64, u64),
}

fn prepare(request: &FindRequest, params: ExecParams) -> Result<(Env, Filter)> {
    let disk = request.allow_disk_use.unwrap_or(params.disk_by_default);
    let mut env = Env::new(params, request.let_vars.as_doc(), disk)?;
    env.filter = request.filter.clone();
    env.sort = request.sort.clone();
    let filter = Filter::parse(request.filter.as_doc(), &env.parse)?;
    let sort = request.sort.as_doc();
    if !sort.is_empty() && !sort.contains("$natural") {
        quire_mql::sort::SortPattern::parse(sort, &env.parse)?;
    }
    if !request.projection.as_doc().is_empty() {
        crate::operators::projection::compile(request.projection.as_doc(), &env)?;
    }
    Ok((env, filter))
}

fn with_stats(
    views: &dyn Views,
    namespace: &str,
    plan: impl FnOnce(Option<&quire_catalog::Collection>, &ViewStatistics<'_>) -> Result<Plan>,
) -> Result<Plan> {
    let collection = find_collection(namespace, views)?;
    let stats = ViewStatistics::new(views.view(), collection.as_deref());
    plan(collection.as_deref(), &stats)
}

fn explain_plan(job: Job, verbosity: Verbosity, views: &mut dyn Views) -> Result<DocBuf> {
    let Job { plan, env, max, counts } = job;
    let stats = match verbosity {
        Verbosity::QueryPlanner => None,
        _ => Some(run_plan(&plan, env, max, counts, views)?),
    };
    let mut plan = plan;
    if let Some(stats) = &stats {
        plan.root = after_running(&plan.root, stats);
    }
    Ok(DocBuf::build(|writer| {
        writer.append("explainVersion", "1");
        query_planner(&plan, &mut writer.document("queryPlanner"));
        if let Some(stats) = stats {
            let all = verbosity == Verbosity::AllPlansExecution;
            execution_stats(&plan, &stats, all, &mut writer.document("executionStats"));
        }
    }))
}

/// Runs a plan and tells what its stages did.
fn run_plan(
    plan: &Plan,
    env: Env,
    max: usize,
    counts: (u64, u64),
    views: &mut dyn Views,
) -> Result<NodeStats> {
    let begun = Instant::now();
    let interrupt: Arc<Interrupt> = Arc::clone(&env.params.interrupt);
    let collection = find_collection(&plan.namespace, views)?;
    let (node, wraps) = match &plan.root {
        Node::Update { input } | Node::Delete { input } => (&**input, true),
        other => (other, false),
    };
    if matches!(node, Node::RecordStoreFastCount) {
        let all = collection.map_or(0, |found| views.view().counts(&found).documents);
        let rest = all.saturating_sub(counts.0);
        let counted = if counts.1 > 0 { rest.min(counts.1) } else { rest };
        let skipped = all.min(counts.0);
        return Ok(NodeStats { counted, skipped, is_eof: true, ..NodeStats::default() });
    }
    let root = build(node, &env, Needs::default())?;
    let mut execution = Execution::new(env, root, collection, None);
    let mut found = 0;
    let ended = execution.rows(views, &interrupt, max, |_| {
        found += 1;
        true
    });
    let mut stats = execution.root.stats();
    if let Err(error) = ended {
        execution.env.check_interrupt()?;
        stats.failure = Some((error.code().number(), error.message().to_owned()));
    }
    if wraps {
        let upsert = 0;
        stats = NodeStats {
            counted: found,
            skipped: upsert,
            is_eof: true,
            inputs: vec![stats],
            ..NodeStats::default()
        };
    }
    stats.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(stats)
}

fn explain_aggregate(
    request: &AggregateRequest,
    verbosity: Verbosity,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<DocBuf> {
    let begun = Instant::now();
    let interrupt: Arc<Interrupt> = Arc::clone(&params.interrupt);
    let Prepared { env, parts, plan, collection } = Prepared::new(request, views, params)?;
    let mut printed: Vec<Option<DocBuf>> =
        (0..parts.rest.len()).map(|at| print_stage(&parts.rest, at)).collect();
    if let (Node::RandomPicks { size, .. }, Some(first)) = (&plan.root, printed.first_mut()) {
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        *first = Some(doc! { "$sampleFromRandomCursor": { "size": size } });
    }
    let shape = aggregate_shape(request, &env.parse);
    let depth = parts.rest.len();
    let stats = match verbosity {
        Verbosity::QueryPlanner => None,
        _ => {
            let keys = !plan.root.gives_documents();
            let source = build_source(&plan.root, &env, keys, &parts.rest)?;
            let root = build_stages(Source::Rows(source), Chain::default(), parts.rest, true);
            let mut execution = Execution::new(env, root, collection, None);
            execution.rows(views, &interrupt, usize::MAX, |_| true)?;
            let mut stats = execution.root.stats();
            stats.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            Some(stats)
        }
    };
    let all = verbosity == Verbosity::AllPlansExecution;
    let explained = DocBuf::build(|writer| {
        writer.append("explainVersion", "1");
        if depth == 0 {
            whole_pipeline(&plan, stats.as_ref(), all, writer);
        } else {
            write_stages(&plan, &printed, stats.as_ref(), all, &mut writer.array("stages"));
        }
    });
    Ok(with_shape(explained, &shape))
}

/// A pipeline that is nothing but a find.
fn whole_pipeline(plan: &Plan, stats: Option<&NodeStats>, all: bool, writer: &mut DocWriter<'_>) {
    {
        let mut planner = writer.document("queryPlanner");
        query_planner(plan, &mut planner);
        planner.append("optimizedPipeline", true);
    }
    if let Some(stats) = stats {
        execution_stats(plan, stats, all, &mut writer.document("executionStats"));
    }
}

fn write_stages(
    plan: &Plan,
    printed: &[Option<DocBuf>],
    stats: Option<&NodeStats>,
    all: bool,
    out: &mut ArrayWriter<'_>,
) {
    // The outermost stage's statistics come first; each has the one before it as its input.
    let mut levels: Vec<&NodeStats> = Vec::new();
    let mut next = stats;
    while let Some(level) = next {
        levels.push(level);
        next = if levels.len() <= printed.len() { level.inputs.first() } else { None };
    }
    levels.reverse();
    {
        let mut first = out.document();
        {
            let mut cursor = first.document("$cursor");
            query_planner(plan, &mut cursor.document("queryPlanner"));
            if let Some(stats) = levels.first() {
                execution_stats(plan, stats, all, &mut cursor.document("executionStats"));
            }
        }
        stage_counters(levels.first().copied(), &mut first);
    }
    for (at, stage) in printed.iter().enumerate() {
        let Some(stage) = stage else { continue };
        let mut one = out.document();
        one.append_all(stage.as_doc());
        stage_counters(levels.get(at + 1).copied(), &mut one);
    }
}

fn stage_counters(stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    if let Some(stats) = stats {
        out.append("nReturned", i64::try_from(stats.returned).unwrap_or(i64::MAX));
        out.append("executionTimeMillisEstimate", i64::try_from(stats.millis).unwrap_or(i64::MAX));
    }
}

/// A stage as explain shows it: filters in their normalised form, a limit as part of the sort
/// before it (`None` in its own place).
fn print_stage(stages: &[Stage], at: usize) -> Option<DocBuf> {
    let after_sort = |back: usize| {
        at.checked_sub(back)
            .and_then(|place| stages.get(place))
            .is_some_and(|stage| matches!(stage, Stage::Sort(_)))
    };
    let skipped = at > 0 && matches!(stages.get(at - 1), Some(Stage::Skip(_)));
    let stage = stages.get(at)?;
    if matches!(stage, Stage::Limit(_)) && (after_sort(1) || (skipped && after_sort(2))) {
        return None;
    }
    Some(DocBuf::build(|writer| match stage {
        Stage::Match(stage) => {
            let condition = stage.filter().root().clone().with_implied();
            writer.append("$match", &condition.to_bson());
        }
        Stage::Transform(Transform::Projection(_, projection)) => {
            writer.append(stage.name(), &quire_planner::print_projection(projection));
        }
        Stage::Sort(pattern) => {
            let limit = sort_limit(stages.get(at + 1..).unwrap_or(&[]));
            let mut sort = writer.document("$sort");
            sort.append("sortKey", pattern.to_bson());
            if limit > 0 {
                sort.append("limit", i64::try_from(limit).unwrap_or(i64::MAX));
            }
        }
        other => other.serialize(writer),
    }))
}
