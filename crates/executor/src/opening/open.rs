//! Opens a request.

use std::sync::Arc;

use quire_catalog::Namespace;
use quire_collections::View;
use quire_error::{Error, ErrorCode, Result};
use quire_planner::{
    FindQuery, FindRequest, Foreign, Inner, Node, Plan, ReadRequest, add_intersection,
    collation_of, plan, plan_find,
};

use quire_storage::{Reach, Watched};

use crate::build::build;
use crate::env::Env;
use crate::execution::Execution;
use crate::operators::feed::Feed;
use crate::params::{Awaits, ExecParams};
use crate::statistics::ViewStatistics;
use crate::steady::Steady;
use crate::views::Views;

/// Plans a request on the view of `views` and makes it ready to run.
///
/// # Errors
/// The errors of `mql` about filter, projection, sort, stages and variables; those of the planner
/// about the hint, `min` and `max`.
pub fn open<'r>(
    request: impl Into<ReadRequest<'r>>,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    Ok(noted(start(&request.into(), None, views, params)?))
}

/// Opens a pipeline whose first stage reads the documents of `feed`
/// (`quire_planner::AggregateRequest::fed_by`).
///
/// # Errors
/// Those of [`open`].
pub fn open_fed<'r>(
    request: impl Into<ReadRequest<'r>>,
    feed: Box<dyn Feed>,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    Ok(noted(start(&request.into(), Some(feed), views, params)?))
}

/// Opens the query of a statement that writes the documents that it finds. The statement has
/// compiled its filter, and evaluates it in the environment `env` too. `records_only` leaves out the buckets of a
/// time-series collection.
///
/// # Errors
/// The errors of the planner about the hint.
pub(crate) fn open_query(
    query: &FindQuery<'_>,
    env: &Arc<Env>,
    (view, records_only): (View<'_>, bool),
) -> Result<Execution> {
    let statistics = ViewStatistics::new(view, env);
    let statistics = if records_only { statistics.of_records() } else { statistics };
    let plan = plan_find(query, &statistics)?;
    refuse_table_scan(&plan, env)?;
    let root = build(&plan.root, None)?;
    let steady = Steady::of(&plan, statistics.series, &view);
    let execution = Execution::new(Arc::clone(env), root, Arc::new(plan));
    Ok(noted(Execution { of_write: true, steady, ..execution }))
}

/// Counts the use of the plan's indexes, for `$indexStats`.
fn noted(execution: Execution) -> Execution {
    note_uses(&execution.plan.root);
    execution
}

/// Counts the use of the indexes of a plan, with those of the plans inside of its stages.
fn note_uses(root: &Node) {
    root.for_each_scan(&mut |scan| scan.index.note_use());
    if !matches!(root, Node::Stage { .. }) {
        return;
    }
    for (_, inner) in root.stages() {
        match inner {
            Inner::Nothing => {}
            Inner::Union(plans) => plans.iter().for_each(|plan| note_uses(&plan.root)),
            Inner::Branches(branches) => branches.iter().for_each(note_uses),
            Inner::Foreign(foreign) => {
                let (whole, by_keys) = (&foreign.whole.root, foreign.whole.by_keys.as_deref());
                note_uses(by_keys.filter(|_| foreign.keyed_scan().is_some()).unwrap_or(whole));
                foreign.tail.iter().for_each(note_uses);
            }
        }
    }
}

/// Opens a request without counting the use of its indexes, as for an explain. `feed` provides the
/// documents of a leaf without a collection.
pub(crate) fn start(
    request: &ReadRequest<'_>,
    feed: Option<Box<dyn Feed>>,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    let disk = request.allow_disk_use().unwrap_or(params.disk_by_default);
    let (namespace, asked) = request.target();
    let view = views.view();
    let found = view.catalog().find(namespace);
    let collation = collation_of(asked, found.map(|found| &**found));
    let mut env = Env::new(params, collation, request.let_vars(), disk)?;
    env.parse.no_clock = !request.has_clock();
    let statistics = ViewStatistics::new(view, &env).knowing(namespace, found);
    let mut plan = plan(request, &env.parse, &statistics)?;
    if let Some(at) = env.params.considered {
        take_considered(&mut plan, at)?;
    }
    refuse_table_scan(&plan, &env)?;
    let awaits = feed.as_ref().and_then(|feed| feed.awaits());
    let steady = Steady::of(&plan, statistics.series, &view);
    let root = build(&plan.root, feed)?;
    let mut execution = Execution::new(Arc::new(env), root, Arc::new(plan));
    execution.steady = steady;
    execution.awaits = awaits.or_else(|| tailed(request, &execution));
    Ok(execution)
}

/// Returns the commits that a tailable find follows.
fn tailed(request: &ReadRequest<'_>, execution: &Execution) -> Option<Awaits> {
    let ReadRequest::Find(FindRequest { tailable: true, .. }) = request else { return None };
    let collection = execution.plan.root.collection()?;
    Some(Awaits { watched: Watched::Collection(collection.id.0), reach: Reach::Visible })
}

/// Replaces the chosen plan by the candidate number `at`.
///
/// # Errors
/// 291 NoQueryExecutionPlans if there is no candidate with this number.
fn take_considered(plan: &mut Plan, at: usize) -> Result<()> {
    add_intersection(plan);
    match plan.rejected.get_mut(at) {
        Some(other) => std::mem::swap(&mut plan.root, other),
        None => {
            let text = format!("plan {at} was not considered");
            return Err(Error::new(ErrorCode::NoQueryExecutionPlans, text));
        }
    }
    Ok(())
}

/// Refuses a plan that tests every document of a collection, if the server forbids such plans. A
/// request for all documents has no other plan and is allowed.
fn refuse_table_scan(plan: &Plan, env: &Env) -> Result<()> {
    match env.params.no_table_scan {
        true => refuse_tests(&plan.root, &plan.namespace),
        false => Ok(()),
    }
}

/// Refuses a node that tests every document of the collection `namespace`, also in joins.
fn refuse_tests(node: &Node, namespace: &str) -> Result<()> {
    let scans = match node {
        Node::CollScan { filter, .. } | Node::ClusteredScan { filter, .. } => {
            filter.is_some() && node.scans_collection()
        }
        _ => false,
    };
    if scans && !is_internal(namespace) {
        return Err(no_indexed_plan(namespace));
    }
    if let Node::Stage { inner, .. } = node {
        match inner {
            Inner::Nothing => {}
            Inner::Union(plans) => {
                plans.iter().try_for_each(|plan| refuse_tests(&plan.root, &plan.namespace))?;
            }
            Inner::Branches(branches) => {
                branches.iter().try_for_each(|branch| refuse_tests(branch, namespace))?;
            }
            Inner::Foreign(foreign) => refuse_join(foreign)?,
        }
    }
    node.inputs().iter().try_for_each(|input| refuse_tests(input, namespace))
}

/// Refuses a join that compares all foreign documents with each of its keys.
fn refuse_join(foreign: &Foreign) -> Result<()> {
    let namespace = foreign.namespace();
    let unserved = foreign.keyed_scan().is_none();
    let scans = foreign.key.is_some() && unserved;
    let reads = foreign.whole.cursor().collection().is_some();
    if scans && reads && !is_internal(namespace) {
        return Err(no_indexed_plan(namespace));
    }
    if unserved {
        refuse_tests(&foreign.whole.root, namespace)?;
    }
    foreign.tail.iter().try_for_each(|tail| refuse_tests(tail, namespace))
}

/// Returns true for a collection of the server, which may be scanned.
fn is_internal(namespace: &str) -> bool {
    Namespace::parse(namespace).is_ok_and(|namespace| {
        namespace.is_system() || matches!(namespace.db(), "admin" | "config" | "local")
    })
}

fn no_indexed_plan(namespace: &str) -> Error {
    let text = format!(
        "error processing query: ns={namespace} planner returned error :: caused by :: No indexed plans available, and running with 'notablescan'"
    );
    Error::new(ErrorCode::NoQueryExecutionPlans, text)
}
