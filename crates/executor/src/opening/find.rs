//! Opening a `find`.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_document::Doc;
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_mql::sort::{SortPattern, natural};
use quire_planner::{FindRequest, is_id_lookup, plan_find};

use crate::env::Env;
use crate::execution::Execution;
use crate::opening::build::{Needs, build};
use crate::opening::statistics::ViewStatistics;
use crate::params::ExecParams;
use crate::views::Views;

/// Plans a `find` and makes it ready to run.
///
/// # Errors
/// What `mql` says about the filter, projection, sort and variables; what the planner says about
/// the hint, `min` and `max`.
pub fn open_find(
    request: &FindRequest,
    views: &dyn Views,
    params: ExecParams,
) -> Result<Execution> {
    let disk = request.allow_disk_use.unwrap_or(params.disk_by_default);
    let mut env = Env::new(params, request.let_vars.as_doc(), disk)?;
    env.filter = request.filter.clone();
    env.sort = request.sort.clone();
    let compile = || Filter::parse(request.filter.as_doc(), &env.parse);
    let filter = (!is_id_lookup(request)).then(compile).transpose()?;
    check_sort(request.sort.as_doc(), &env)?;
    let view = views.view();
    let collection = find_collection(&request.namespace, views)?;
    let stats = ViewStatistics::new(view, collection.as_deref());
    let plan = plan_find(request, filter.as_ref(), collection.as_deref(), &stats)?;
    let projects = !request.projection.as_doc().is_empty();
    if (plan.missing || request.return_key) && projects {
        crate::operators::projection::compile(request.projection.as_doc(), &env)?;
    }
    let root = build(&plan.root, &env, Needs::default())?;
    Ok(Execution::new(env, root, collection, Some(Arc::new(plan))))
}

/// Refuses a sort that the language does not take.
pub(crate) fn check_sort(sort: Doc<'_>, env: &Env) -> Result<()> {
    if natural(sort)?.is_none() && !sort.is_empty() {
        SortPattern::parse(sort, &env.parse)?;
    }
    Ok(())
}

/// The collection of a `database.collection`.
pub(crate) fn find_collection(
    namespace: &str,
    views: &dyn Views,
) -> Result<Option<Arc<Collection>>> {
    let found = views.view().catalog().find(namespace);
    if found.is_none() {
        Namespace::parse(namespace)?;
    }
    Ok(found.cloned())
}
