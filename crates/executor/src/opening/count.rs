//! Running a `count`.

use std::sync::Arc;

use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::{CountRequest, Node, plan_count};
use quire_storage::Interrupt;

use crate::env::Env;
use crate::examined::Examined;
use crate::execution::Execution;
use crate::opening::build::{Needs, build};
use crate::opening::find::find_collection;
use crate::opening::statistics::ViewStatistics;
use crate::params::ExecParams;
use crate::views::Views;

/// Counts the documents that match.
///
/// # Errors
/// What `mql` says about the filter, the planner about the hint, and what running it meets.
pub fn count(
    request: &CountRequest,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(u64, Examined)> {
    let interrupt: Arc<Interrupt> = Arc::clone(&params.interrupt);
    let mut env = Env::new(params, quire_document::Doc::empty(), true)?;
    // As in mongod, `$$NOW` and `$$CLUSTER_TIME` have no value here.
    env.parse.no_clock = true;
    let filter = Filter::parse(request.filter.as_doc(), &env.parse)?;
    let collection = find_collection(&request.namespace, views)?;
    let plan = {
        let stats = ViewStatistics::new(views.view(), collection.as_deref());
        plan_count(request, &filter, collection.as_deref(), &stats)?
    };
    let root = match (&plan.root, &collection) {
        (Node::RecordStoreFastCount, Some(collection)) if !views.is_pinned() => {
            let all = views.view().counts(collection).documents;
            let examined = Examined { plan: Some(Arc::new(plan)), ..Examined::default() };
            return Ok((limited(all, request), examined));
        }
        (Node::RecordStoreFastCount, _) => {
            let scan = Node::CollScan { filter: None, backward: false };
            Node::Count { skip: request.skip, limit: request.limit, input: Box::new(scan) }
        }
        (other, _) => other.clone(),
    };
    let root = build(&root, &env, Needs::default())?;
    let mut execution = Execution::new(env, root, collection, Some(Arc::new(plan)));
    execution.drain(views, &interrupt)?;
    Ok((execution.root.stats().counted, execution.examined()))
}

fn limited(all: u64, request: &CountRequest) -> u64 {
    let rest = all.saturating_sub(request.skip);
    if request.limit > 0 { rest.min(request.limit) } else { rest }
}
