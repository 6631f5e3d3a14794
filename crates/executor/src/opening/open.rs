//! Opening a request.

use std::sync::Arc;

use quire_catalog::Namespace;
use quire_collections::View;
use quire_error::{Error, ErrorCode, Result};
use quire_planner::{FindQuery, Node, Plan, ReadRequest, collation_of, plan, plan_find};

use crate::env::Env;
use crate::execution::Execution;
use crate::opening::build::build;
use crate::opening::statistics::ViewStatistics;
use crate::operators::feed::Feed;
use crate::params::ExecParams;
use crate::views::Views;

/// Plans a request on the view of `views` and makes it ready to run.
///
/// # Errors
/// What `mql` says about filter, projection, sort, stages and variables; what the planner says about
/// the hint, `min` and `max`.
pub fn open<'r>(
    request: impl Into<ReadRequest<'r>>,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    Ok(noted(start(&request.into(), None, views, params)?))
}

/// Opens a pipeline whose first stage reads what `feed` gives
/// (`quire_planner::AggregateRequest::fed_by`).
///
/// # Errors
/// As [`open`].
pub fn open_fed<'r>(
    request: impl Into<ReadRequest<'r>>,
    feed: Box<dyn Feed>,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    Ok(noted(start(&request.into(), Some(feed), views, params)?))
}

/// Opens the query of a statement that writes what it finds. The statement has compiled its filter,
/// and evaluates in the environment `env` too.
///
/// # Errors
/// What the planner says about the hint.
pub(crate) fn open_query(
    query: &FindQuery<'_>,
    env: &Arc<Env>,
    view: View<'_>,
) -> Result<Execution> {
    let plan = plan_find(query, &ViewStatistics::new(view, env))?;
    refuse_table_scan(&plan, env)?;
    let root = build(&plan.root, None)?;
    Ok(noted(Execution::new(Arc::clone(env), root, Arc::new(plan))))
}

/// Notes the use of the plan's indexes, for `$indexStats`.
fn noted(execution: Execution) -> Execution {
    execution.plan.root.for_each_scan(&mut |scan| scan.index.note_use());
    execution
}

/// Opens a request whose run is no use of its indexes, because it is explained; `feed` gives the documents of the plan's leaf that no collection feeds.
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
    let plan = plan(request, &env.parse, &statistics)?;
    refuse_table_scan(&plan, &env)?;
    let root = build(&plan.root, feed)?;
    Ok(Execution::new(Arc::new(env), root, Arc::new(plan)))
}

/// Refuses a plan that tests each document of a collection, if the server does without such plans.
/// A request for all documents has no other plan and passes.
fn refuse_table_scan(plan: &Plan, env: &Env) -> Result<()> {
    let is_internal = |namespace: Namespace| {
        namespace.is_system() || matches!(namespace.db(), "admin" | "config" | "local")
    };
    if !env.params.no_table_scan
        || !tests_collection(&plan.root)
        || Namespace::parse(&plan.namespace).is_ok_and(is_internal)
    {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::NoQueryExecutionPlans,
        format!(
            "error processing query: ns={} planner returned error :: caused by :: No indexed plans available, and running with 'notablescan'",
            plan.namespace
        ),
    ))
}

fn tests_collection(node: &Node) -> bool {
    let tests = matches!(
        node,
        Node::CollScan { filter: Some(_), .. } | Node::ClusteredScan { filter: Some(_), .. }
    ) && node.scans_collection();
    tests || node.inputs().iter().any(tests_collection)
}
