//! Explains a request: its plans, and the statistics of the chosen one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quire_document::limits::MESSAGE_BYTES_MAX;
use quire_document::memory::{self, Refused};
use quire_document::{ArrayWriter, DocBuf, DocWriter, Element, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::Filter;
use quire_mql::stage::{Facet, Stage, StageBody, UnionWith};
use quire_planner::explain::{
    JoinStrategy, MemoryUse, NodeStats, Trial, after_running, execution_stats, foreign_plan,
    query_planner,
};
use quire_planner::{
    Foreign, Inner, Node, Plan, ReadRequest, Verbosity, add_intersection, planned,
};
use quire_storage::Interrupt;

use crate::build::build;
use crate::execution::Execution;
use crate::opening::open::start;
use crate::operators::feed::Feed;
use crate::params::ExecParams;
use crate::views::Views;

/// The largest number of rows of a trial.
const TRIAL_ROWS: usize = 101;
/// The shortest time limit of a trial.
const TRIAL_TIME_MIN: Duration = Duration::from_millis(100);

/// The first stage of a pipeline whose documents come from the server.
pub struct ServerStage {
    /// The stage as it was written. It is no longer in the pipeline.
    pub stage: DocBuf,
    /// The documents of the stage.
    pub documents: Box<dyn Feed>,
}

/// Explains a request: `explainVersion`, `queryPlanner` and `executionStats`, or `stages`. It runs
/// the operators of the request itself, but writes nothing. `first` is the stage that provides the
/// documents of a leaf without a collection.
///
/// # Errors
/// The errors of opening the request, and of running it if `verbosity` asks for that.
pub fn explain(
    request: ReadRequest<'_>,
    first: Option<ServerStage>,
    verbosity: Verbosity,
    views: &mut dyn Views,
    mut params: ExecParams,
) -> Result<DocBuf> {
    params.plan_cache = false;
    let interrupt = Arc::clone(&params.interrupt);
    let begun = Instant::now();
    let (first, feed) = first.map(|first| (first.stage, first.documents)).unzip();
    let mut execution = start(&request, feed, views, params)?;
    let stats = match verbosity {
        Verbosity::QueryPlanner => None,
        _ => Some(run(&mut execution, begun, views, (&interrupt, first.as_ref()))?),
    };
    let mut plan = Plan::clone(&execution.plan);
    let written = match request {
        ReadRequest::Find(find) | ReadRequest::Write(find, _) => Some(&find.filter),
        ReadRequest::Count(count) => Some(&count.filter),
        ReadRequest::Aggregate(_) | ReadRequest::Distinct(_) => None,
    };
    if let (None, Some(written)) = (&plan.filter, written) {
        // A lookup by `_id` was planned without its filter.
        let filter = Filter::parse(written.as_doc(), &execution.env.parse)?;
        plan.filter = Some(planned(filter.into_node()));
    }
    if matches!(request, ReadRequest::Find(_) | ReadRequest::Write(..)) {
        add_intersection(&mut plan);
    }
    if let Some(stats) = &stats {
        plan.root = after_running(&plan.root, stats);
    }
    let trials = match (&stats, verbosity) {
        (Some(stats), Verbosity::AllPlansExecution) => {
            Some(try_all(&execution, &plan, stats.millis, views, &interrupt)?)
        }
        _ => None,
    };
    let trials = trials.as_deref();
    let print = |writer: &mut DocWriter<'_>| {
        let groups = plan.groups();
        writer.append("explainVersion", if groups > 0 { "2" } else { "1" });
        if has_stages(&plan, first.as_ref()) {
            let mut stages = writer.array("stages");
            write_stages(&plan, stats.as_ref(), (trials, first.as_ref()), &mut stages);
        } else {
            whole_plan(&plan, stats.as_ref(), trials, writer);
        }
    };
    // Each plan repeats the filter and its bounds.
    let explained = memory::limited(MESSAGE_BYTES_MAX, || DocBuf::build(print));
    let explained = explained.map_err(|refused| match refused {
        Refused::Server => Error::new(ErrorCode::ExceededMemoryLimit, memory::exhausted()),
        Refused::Evaluation => {
            let text = format!("the plans take more than {MESSAGE_BYTES_MAX} bytes");
            Error::new(ErrorCode::BSONObjectTooLarge, text)
        }
    })?;
    Ok(explained)
}

/// Returns true if explain shows a plan as the stages of a pipeline.
fn has_stages(plan: &Plan, first: Option<&DocBuf>) -> bool {
    plan.stages().len() > plan.groups() || first.is_some()
}

/// Runs an execution to its end and returns its statistics. An error of a plan that is shown as stages
/// is returned; an error of another plan is in its statistics.
fn run(
    execution: &mut Execution,
    begun: Instant,
    views: &mut dyn Views,
    (interrupt, first): (&Arc<Interrupt>, Option<&DocBuf>),
) -> Result<NodeStats> {
    let ended = execution.drain(views, interrupt);
    let mut stats = execution.root.stats();
    if let Err(error) = ended {
        if has_stages(&execution.plan, first) {
            return Err(error);
        }
        execution.env.check_interrupt()?;
        stats.failure = Some((error.code().number(), error.message().to_owned()));
    }
    stats.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(stats)
}

/// Runs every candidate for a while, the chosen one first: until it has returned [`TRIAL_ROWS`]
/// rows or has taken much longer than the request itself. `None` if there was only one candidate.
fn try_all(
    execution: &Execution,
    considered: &Plan,
    millis: u64,
    views: &mut dyn Views,
    interrupt: &Arc<Interrupt>,
) -> Result<Vec<Trial>> {
    let longest = TRIAL_TIME_MIN.max(Duration::from_millis(millis.saturating_mul(2)));
    let mut trials = Vec::new();
    if considered.rejected.is_empty() {
        return Ok(trials);
    }
    let chosen = &execution.plan;
    for node in std::iter::once(chosen.cursor()).chain(&considered.rejected) {
        let (begun, limited) = (Instant::now(), Interrupt::with_deadline(longest));
        let root = build(node, None)?;
        let mut trial = Execution::new(Arc::clone(&execution.env), root, Arc::clone(chosen));
        let ended = trial.rows(views, &limited, TRIAL_ROWS, |_| true);
        let mut stats = trial.root.stats();
        execution.env.set_interrupt(interrupt);
        execution.env.check_interrupt()?;
        if let Err(error) = ended
            && limited.check().is_ok()
        {
            stats.failure = Some((error.code().number(), error.message().to_owned()));
        }
        stats.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        trials.push(Trial { node: node.clone(), stats });
    }
    Ok(trials)
}

/// Prints a plan without pipeline stages.
fn whole_plan(
    plan: &Plan,
    stats: Option<&NodeStats>,
    trials: Option<&[Trial]>,
    writer: &mut DocWriter<'_>,
) {
    {
        let mut planner = writer.document("queryPlanner");
        query_planner(plan, &mut planner);
        if plan.of_pipeline {
            planner.append("optimizedPipeline", true);
        }
    }
    if let Some(stats) = stats {
        execution_stats(plan, stats, trials, &mut writer.document("executionStats"));
    }
}

fn write_stages(
    plan: &Plan,
    stats: Option<&NodeStats>,
    (trials, source): (Option<&[Trial]>, Option<&DocBuf>),
    out: &mut ArrayWriter<'_>,
) {
    let stages = plan.root.stages();
    let groups = plan.groups();
    let levels = levels(&stages, stats);
    {
        let mut first = out.document();
        if let Some(stage) = source {
            first.append_all(stage.as_doc());
        } else if let Node::Served(stage) = plan.cursor() {
            stage.print(&mut first);
        } else {
            let mut cursor = first.document("$cursor");
            query_planner(plan, &mut cursor.document("queryPlanner"));
            if let Some(stats) = levels.get(groups) {
                execution_stats(plan, stats, trials, &mut cursor.document("executionStats"));
            }
        }
        stage_counters(levels.get(groups).copied(), &mut first);
    }
    for (at, (stage, inner)) in stages.into_iter().enumerate().skip(groups) {
        let mut one = out.document();
        let idle = NodeStats::default();
        let idle = stats.filter(|_| stage.writes()).map(|_| &idle);
        let level = idle.or(levels.get(at + 1).copied());
        match (plan.cursor(), stage) {
            (Node::RandomPicks { size, .. }, _) if at == 0 => {
                let size = i64::try_from(*size).unwrap_or(i64::MAX);
                one.document("$sampleFromRandomCursor").append("size", size);
                stage_counters(level, &mut one);
            }
            (cursor, Stage::Group(_)) if at == 0 && cursor.reads_distinct_keys() => {
                write_distinct_group(stage, &mut one);
                stage_counters(level, &mut one);
            }
            _ => write_stage((stage, inner), level, trials.is_some(), &mut one),
        }
    }
}

/// Returns the statistics of the node below the stages, and of each stage. `stats` are those of the
/// outermost stage; each stage has the one before it as its input.
fn levels<'s>(stages: &[(&Stage, &Inner)], stats: Option<&'s NodeStats>) -> Vec<&'s NodeStats> {
    // A stage that writes does not run.
    let running = stages.iter().filter(|(stage, _)| !stage.writes()).count();
    let mut levels: Vec<&NodeStats> = Vec::new();
    let mut next = stats;
    while let Some(level) = next {
        levels.push(level);
        next = if levels.len() <= running { level.inputs.first() } else { None };
    }
    levels.reverse();
    levels
}

/// Writes a stage with the plans inside of it and what it did.
fn write_stage(
    (stage, inner): (&Stage, &Inner),
    level: Option<&NodeStats>,
    with_trials: bool,
    out: &mut DocWriter<'_>,
) {
    match (stage, inner) {
        (Stage::UnionWith(union), Inner::Union(plans)) => {
            write_union(union, plans, level, with_trials, out);
        }
        (Stage::Facet(facet), Inner::Branches(branches)) => {
            write_branches(facet, branches, level, with_trials, out);
        }
        _ => stage.print(out),
    }
    // MongoDB reports nothing about the search of a `$graphLookup`.
    if let (Stage::Lookup(_), Inner::Foreign(foreign)) = (stage, inner) {
        join_facts(foreign, level, out);
    }
    if let Some(level) = level {
        memory_counters(stage, level, out);
    }
    stage_counters(level, out);
}

/// Writes the branches of a `$facet`, each with the stage that hands it the input's documents.
fn write_branches(
    facet: &Facet,
    branches: &[Node],
    level: Option<&NodeStats>,
    with_trials: bool,
    out: &mut DocWriter<'_>,
) {
    let mut shown = out.document(facet.name());
    for (at, ((name, _), node)) in facet.branches.iter().zip(branches).enumerate() {
        let stages = node.stages();
        let levels = levels(&stages, level.and_then(|level| level.inputs.get(1 + at)));
        let mut branch = shown.array(name);
        {
            let mut first = branch.document();
            first.document("$teeConsumer");
            stage_counters(levels.first().copied(), &mut first);
        }
        for (at, stage) in stages.into_iter().enumerate() {
            let level = levels.get(at + 1).copied();
            write_stage(stage, level, with_trials, &mut branch.document());
        }
    }
}

/// Prints the pipelines of a sequence of `$unionWith` stages, as a list if there are several.
fn write_union(
    union: &UnionWith,
    plans: &[Plan],
    level: Option<&NodeStats>,
    with_trials: bool,
    out: &mut DocWriter<'_>,
) {
    let write = |(at, plan): (usize, &Plan), shown: &mut DocWriter<'_>| {
        let name = union.others.get(at).and_then(|other| other.from.name.as_deref());
        shown.append_some("coll", name.map(Value::from));
        let stats = level.and_then(|level| level.inputs.get(1 + at));
        let trials = with_trials.then_some(&[][..]);
        write_stages(plan, stats, (trials, None), &mut shown.array("pipeline"));
    };
    match plans {
        [one] => write((0, one), &mut out.document(union.name())),
        several => {
            let mut list = out.array(union.name());
            several.iter().enumerate().for_each(|plan| write(plan, &mut list.document()));
        }
    }
}

/// Prints a `$group` for which a scan returns one document of each group: `{newRoot: {_id: key,
/// field: first}}`.
fn write_distinct_group(stage: &Stage, out: &mut DocWriter<'_>) {
    let printed = DocBuf::build(|writer| stage.print(writer));
    let Some(Value::Document(group)) = printed.as_doc().get(stage.name()) else { return };
    let mut spec = out.document("$groupByDistinctScan");
    let mut root = spec.document("newRoot");
    for (name, value) in group.fields() {
        let first = value.as_document().and_then(|accumulator| accumulator.first());
        match first.filter(|_| name != "_id") {
            Some(first) => root.append(name, output_of(first)),
            None => root.append(name, value),
        };
    }
}

/// Returns the expression whose value in the first document is the result of an accumulator.
fn output_of(accumulator: Element<'_>) -> Value<'_> {
    match accumulator.value() {
        Value::Document(ranked) if matches!(accumulator.key(), "$top" | "$bottom") => {
            ranked.get("output").unwrap_or(Value::Null)
        }
        value => value,
    }
}

/// Prints the strategy of a join and what it examined.
fn join_facts(foreign: &Foreign, stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    let joined = stats.and_then(|stats| stats.joined.as_deref());
    let strategy = joined.map_or(foreign.strategy(false, false), |joined| joined.strategy);
    out.append("strategy", strategy.name());
    if let Some(scan) = foreign.keyed_scan().filter(|_| strategy == JoinStrategy::Index) {
        out.append("indexName", scan.index.name.as_str());
        out.append("indexKeyPattern", &scan.keys.shown_pattern(scan.index.key()));
    }
    if !foreign.whole.missing {
        foreign_plan(foreign, joined, out);
    }
    let Some(joined) = joined else { return };
    out.append("totalDocsExamined", long(joined.docs_examined));
    out.append("totalKeysExamined", long(joined.keys_examined));
    out.append("collectionScans", long(joined.collection_scans));
    let mut indexes = out.array("indexesUsed");
    joined.indexes_used.iter().for_each(|name| {
        indexes.push(name.as_str());
    });
}

/// Writes the counters of memory and disk of the stages that have them.
fn memory_counters(stage: &Stage, stats: &NodeStats, out: &mut DocWriter<'_>) {
    if let Some(memory) = &stats.memory {
        memory_use(memory, out);
    }
    if let Stage::Sort(_) = stage {
        out.append("totalDataSizeSortedBytesEstimate", long(stats.bytes_sorted));
    }
    let tells = matches!(stage, Stage::Sort(_) | Stage::Group(_) | Stage::BucketAuto(_));
    if tells || stats.memory.is_some() {
        out.append("usedDisk", stats.spills > 0);
        out.append("spills", long(stats.spills));
    }
}

fn stage_counters(stats: Option<&NodeStats>, out: &mut DocWriter<'_>) {
    if let Some(stats) = stats {
        out.append("nReturned", long(stats.returned));
        out.append("executionTimeMillisEstimate", long(stats.millis));
    }
}

fn memory_use(memory: &MemoryUse, out: &mut DocWriter<'_>) {
    {
        let mut functions = out.document("maxFunctionMemoryUsageBytes");
        for (field, bytes) in &memory.functions {
            functions.append(field, long(*bytes));
        }
    }
    out.append("maxTotalMemoryUsageBytes", long(memory.total));
}

/// Returns a counter in the type that MongoDB gives it beside a stage of a pipeline.
fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
