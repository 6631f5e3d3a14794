//! Plans a `distinct`.

use crate::find::{FindQuery, plan_find};
use crate::first_of_each::points_of_sources;
use crate::indexes::access::Candidate;
use crate::indexes::choose::Statistics;
use crate::indexes::hint::{Choice, Restriction, choice};
use crate::plan::{IndexScan, Node, Plan, ProjectionKind, Reshape};
use crate::request::{DistinctRequest, FindRequest};
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::{Filter, ParseContext};
use std::sync::Arc;

/// Plans a `distinct`: reads the first key of each value if an index allows it, else plans a
/// `find`.
///
/// # Errors
/// The errors of `mql` about the filter; `BadValue` for a hint that names no index.
pub(crate) fn plan_distinct(
    request: &DistinctRequest,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let filter = Filter::parse(request.filter.as_doc(), context)?;
    let (namespace, hint) = (&request.namespace, request.hint.as_ref());
    let find = FindRequest::search(namespace, &request.filter, hint, &request.collation);
    let query = FindQuery::of_filter(&find, Some(&filter));
    let mut plan = plan_find(&query, stats)?;
    if plan.missing {
        return Ok(plan);
    }
    if let Some(points) = points_of_sources(&request.key, &query, &plan, stats)? {
        plan.root = points;
        return Ok(plan);
    }
    if plan.root.reads_buckets() {
        return Ok(plan);
    }
    let (collation, index_filter) = (plan.collation.clone(), plan.index_filter.clone());
    let (collation, settings) = (collation.as_deref(), plan.settings.clone());
    if filter.is_always_true() {
        let Some(collection) = plan.root.collection() else { return Ok(plan) };
        let allowed = settings.as_ref().and_then(|settings| settings.allowed(namespace));
        let restriction = Restriction::new(hint, allowed, index_filter.as_deref());
        if let Choice::Any(indexes) = choice(collection, restriction, filter.root(), collation)?
            && let Some(scan) = whole_index(&indexes, &request.key, collation)
        {
            plan.root = distinct_scan(scan, 0, &request.key);
        }
        return Ok(plan);
    }
    if let Node::Fetch { filter: None, input } = &plan.root
        && let Node::IndexScan(scan) = &**input
        && scan.filter.is_none()
        && let Some(field) = scan.field(&request.key)
        && usable(scan, field, collation)
    {
        plan.root = distinct_scan(IndexScan::clone(scan), field, &request.key);
    }
    Ok(plan)
}

/// Returns the shortest index that begins with the key.
fn whole_index(
    indexes: &[Candidate],
    key: &str,
    collation: Option<&Collation>,
) -> Option<IndexScan> {
    indexes
        .iter()
        .filter(|candidate| !candidate.index.is_clustered())
        .filter(|candidate| {
            candidate.index.keys.fields().first().is_some_and(|field| field.path == key)
        })
        .map(Candidate::scan)
        .filter(|scan| usable(scan, 0, collation))
        .min_by_key(|scan| scan.bounds.len())
}

/// Returns true if the keys have the values of the field. Keys of arrays are elements and not
/// values, and long keys are not complete. Under another collation two values that the query
/// distinguishes can have the same key.
fn usable(scan: &IndexScan, field: usize, collation: Option<&Collation>) -> bool {
    let in_order = scan.bounds.get(field).is_some_and(|intervals| {
        scan.keys.collation().is_some() && scan.keys.gives_order(field, intervals, collation)
    });
    scan.gives_value(field) && scan.keys.collation() == collation
        || in_order && !scan.multikey.field(field) && !scan.index.has_long_keys()
}

fn distinct_scan(scan: IndexScan, field: usize, key: &str) -> Node {
    let gives_value = scan.gives_value(field);
    let kind = match (key.contains('.'), gives_value) {
        (true, _) => ProjectionKind::Default,
        (false, true) => ProjectionKind::Covered,
        (false, false) => ProjectionKind::Simple,
    };
    let scan = Node::DistinctScan { scan: Box::new(scan), field, missing_too: false, each: 1 };
    let input = Box::new(if gives_value { scan } else { scan.fetched() });
    // The values are taken from the keys directly.
    let spec = Reshape {
        shown: DocBuf::new(),
        projection: None,
        show_record_id: false,
        empty_sort_key: false,
        narrows: true,
        values_only: true,
    };
    Node::Projection { kind, spec: Arc::new(spec), input }
}
