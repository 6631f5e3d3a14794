//! Explaining a request: its plans, and what happened when the chosen one ran.

use std::sync::Arc;
use std::time::Instant;

use quire_document::{ArrayWriter, DocBuf, DocWriter, Value};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_mql::stage::Stage;
use quire_planner::explain::{NodeStats, execution_stats, query_planner};
use quire_planner::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Node, Plan, Verbosity, WriteKind,
    plan_count, plan_distinct, plan_find,
};
use quire_storage::Interrupt;

use crate::aggregate::{Prepared, build_stages};
use crate::build::{Needs, build};
use crate::env::Env;
use crate::execution::Execution;
use crate::find::find_collection;
use crate::params::ExecParams;
use crate::statistics::ViewStatistics;
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
            let plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_find(request, collection, stats)
            })?;
            explain_plan(Job { plan, env, filter, max: usize::MAX }, verbosity, views)
        }
        Explained::Count(request) => {
            let (env, filter) = prepare(
                &FindRequest { filter: request.filter.clone(), ..FindRequest::default() },
                params,
            )?;
            let plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_count(request, collection, stats)
            })?;
            explain_plan(Job { plan, env, filter, max: usize::MAX }, verbosity, views)
        }
        Explained::Distinct(request) => {
            let (env, filter) = prepare(
                &FindRequest { filter: request.filter.clone(), ..FindRequest::default() },
                params,
            )?;
            let plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_distinct(request, collection, stats)
            })?;
            explain_plan(Job { plan, env, filter, max: usize::MAX }, verbosity, views)
        }
        Explained::Write(request, kind) => {
            let (env, filter) = prepare(request, params)?;
            let mut plan = with_stats(views, &request.namespace, |collection, stats| {
                plan_find(request, collection, stats)
            })?;
            let (multi, wrap): (bool, fn(Box<Node>) -> Node) = match kind {
                WriteKind::Update { multi, .. } => (multi, |input| Node::Update { input }),
                WriteKind::Delete { multi } => (multi, |input| Node::Delete { input }),
            };
            plan.root = wrap(Box::new(plan.root));
            plan.rejected = plan.rejected.into_iter().map(|node| wrap(Box::new(node))).collect();
            let max = if multi { usize::MAX } else { 1 };
            explain_plan(Job { plan, env, filter, max }, verbosity, views)
        }
    }
}

/// A plan to be explained.
struct Job {
    plan: Plan,
    env: Env,
    filter: Filter,
    /// Rows after which a write would stop.
    max: usize,
}

fn prepare(request: &FindRequest, params: ExecParams) -> Result<(Env, Filter)> {
    let disk = request.allow_disk_use.unwrap_or(true);
    let mut env = Env::new(params, request.let_vars.as_doc(), disk)?;
    env.filter = request.filter.clone();
    let filter = Filter::parse(request.filter.as_doc(), &env.parse)?;
    let sort = request.sort.as_doc();
    if !sort.is_empty() && !sort.contains("$natural") {
        quire_mql::sort::SortPattern::parse(sort, &env.parse)?;
    }
    if !request.projection.as_doc().is_empty() {
        crate::projection::compile(request.projection.as_doc(), &env)?;
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
    let Job { plan, env, filter, max } = job;
    let stats = match verbosity {
        Verbosity::QueryPlanner => None,
        _ => Some(run_plan(&plan, env, &filter, max, views)?),
    };
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
    filter: &Filter,
    max: usize,
    views: &mut dyn Views,
) -> Result<NodeStats> {
    let begun = Instant::now();
    let interrupt: Arc<Interrupt> = Arc::clone(&env.params.interrupt);
    let collection = find_collection(&plan.namespace, views)?;
    let (node, wraps) = match &plan.root {
        Node::Update { input } | Node::Delete { input } => (&**input, true),
        other => (other, false),
    };
    if let Node::Count { skip, limit, input } = node
        && matches!(**input, Node::RecordStoreFastCount)
    {
        let all = collection.map_or(0, |found| views.view().store().counts(&found).documents);
        let rest = all.saturating_sub(*skip);
        let counted = if *limit > 0 { rest.min(*limit) } else { rest };
        let below = NodeStats { is_eof: true, ..NodeStats::default() };
        return Ok(NodeStats {
            counted,
            skipped: all.min(*skip),
            is_eof: true,
            inputs: vec![below],
            ..NodeStats::default()
        });
    }
    let sort_keys = crate::find::wants_sort_key(plan.projection.as_doc());
    let root = build(node, &env, filter, Needs { keys: false, sort_keys })?;
    let mut execution = Execution::new(env, root, collection, None);
    let mut found = 0;
    execution.rows(views, &interrupt, max, |_| {
        found += 1;
        true
    })?;
    let mut stats = execution.root.stats();
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
    let Prepared { env, parts, plan, filter, collection } = Prepared::new(request, views, params)?;
    let printed: Vec<DocBuf> = parts.rest.iter().map(print_stage).collect();
    let depth = parts.rest.len();
    let stats = match verbosity {
        Verbosity::QueryPlanner => None,
        _ => {
            let source = build(&plan.root, &env, &filter, Needs { keys: true, sort_keys: false })?;
            let root = build_stages(source, parts.rest, true);
            let mut execution = Execution::new(env, root, collection, None);
            execution.rows(views, &interrupt, usize::MAX, |_| true)?;
            let mut stats = execution.root.stats();
            stats.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            Some(stats)
        }
    };
    let all = verbosity == Verbosity::AllPlansExecution;
    Ok(DocBuf::build(|writer| {
        writer.append("explainVersion", "1");
        if depth == 0 {
            whole_pipeline(&plan, stats.as_ref(), all, writer);
        } else {
            write_stages(&plan, &printed, stats.as_ref(), all, &mut writer.array("stages"));
        }
    }))
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
    printed: &[DocBuf],
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

/// A stage as explain shows it; filters in their normalised form.
fn print_stage(stage: &Stage) -> DocBuf {
    DocBuf::build(|writer| match stage {
        Stage::Match(stage) => {
            let parsed = quire_planner::parse_filter(stage.source());
            let printed =
                quire_planner::print_filter(&parsed.root, quire_planner::Style::Explain);
            writer.append("$match", Value::from(&printed));
        }
        other => other.serialize(writer),
    })
}
