//! Plans a `distinct`, and a `$group` that reads one document of each group.

use crate::find::{FindQuery, plan_find};
use crate::indexes::access::Candidate;
use crate::indexes::choose::Statistics;
use crate::indexes::covering::{ProjectionFacts, has_position};
use crate::indexes::hint::{Choice, Restriction, choice};
use crate::indexes::sort_order::{self, SortPart};
use crate::plan::{IndexScan, Node, Plan, ProjectionKind, Reshape};
use crate::request::{DistinctRequest, FindRequest};
use quire_document::DocBuf;
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::expression::ExpressionNode;
use quire_mql::filter::Node as Condition;
use quire_mql::stage::{Group, GroupKey};
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
    let mut plan = plan_find(&FindQuery::of_filter(&find, Some(&filter)), stats)?;
    if plan.missing || plan.root.reads_buckets() {
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
    let scan = Node::DistinctScan { scan: Box::new(scan), field, missing_too: false };
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

/// Returns a plan that reads the first document of each group, to replace the plan of `query`,
/// which reads all documents. `None` if the `$group` reads more than that, or if no index allows
/// it.
///
/// # Errors
/// `BadValue` for a hint that names no index.
pub(crate) fn below_group(
    group: &Group,
    query: &FindQuery<'_>,
    plan: &Plan,
) -> Result<Option<Node>> {
    let FindRequest { skip: 0, limit: 0, sample: None, .. } = query.request else {
        return Ok(None);
    };
    if plan.root.reads_buckets() {
        return Ok(None);
    }
    let Some(wanted) = FirstOfEach::of(group, query) else { return Ok(None) };
    let collation = plan.collation.as_deref();
    let everything = query.filter.as_deref().is_none_or(Condition::is_always_true);
    let found = match plan.root.collection() {
        Some(collection) if everything => {
            let always = Condition::And(Vec::new());
            let hint = query.request.hint.as_ref();
            let allowed = plan.allowed_by_settings();
            let restriction = Restriction::new(hint, allowed, plan.index_filter.as_deref());
            let indexes = match choice(collection, restriction, &always, collation)? {
                Choice::Any(indexes) => indexes,
                Choice::Only(index) => vec![index],
                Choice::Natural { .. } => Vec::new(),
            };
            let scans = indexes.iter().filter(|candidate| has_every_document(candidate));
            let scans = scans.map(|candidate| (candidate.scan(), 0));
            let fitting = scans.filter_map(|scan| wanted.ordered(scan, collation));
            fitting.min_by_key(|(scan, _)| scan.bounds.len())
        }
        _ => planned_scan(&plan.root)
            .and_then(|scan| Some((scan.clone(), scan.field(&wanted.key)?)))
            .and_then(|scan| wanted.ordered(scan, collation)),
    };
    Ok(found.map(|(scan, field)| {
        let node = Node::DistinctScan { scan: Box::new(scan), field, missing_too: true };
        match &query.projection {
            Some(spec) => ProjectionFacts::new(spec).apply(node, spec, false),
            None => node.fetched(),
        }
    }))
}

/// Returns true if the index has every document. A document without the fields of an index belongs
/// to a group too.
fn has_every_document(candidate: &Candidate) -> bool {
    let index = &candidate.index;
    !index.is_clustered() && !index.keys.misses_documents() && index.partial_filter().is_none()
}

/// Returns the only index scan of a plan, if the plan has no test and no sort.
fn planned_scan(node: &Node) -> Option<&IndexScan> {
    match node {
        Node::Projection { input, .. } | Node::Fetch { filter: None, input } => planned_scan(input),
        Node::IndexScan(scan) if scan.filter.is_none() && scan.range.is_none() => Some(scan),
        _ => None,
    }
}

/// A `$group` that reads one document of each group.
struct FirstOfEach {
    /// The path that it groups by.
    key: String,
    /// True if it matters which document is the first.
    ordered: bool,
    sort: Vec<SortPart>,
}

impl FirstOfEach {
    /// Returns `None` for a `$group` that reads more than one document of each group, and for one
    /// whose first documents are not determined by a sort.
    fn of(group: &Group, query: &FindQuery<'_>) -> Option<Self> {
        let GroupKey::Expression(key) = group.key() else { return None };
        let ExpressionNode::Path(path) = key.node() else { return None };
        // An index takes a number for a position in an array, an expression does not.
        if has_position(&path.to_string()) {
            return None;
        }
        let sort = match &query.sort {
            Some(sort) => sort_order::parts(sort)?,
            None => Vec::new(),
        };
        let ordered = !group.fields().is_empty();
        let only_firsts = group.fields().iter().all(|(_, spec)| spec.name() == "$first");
        (only_firsts && (!ordered || !sort.is_empty())).then(|| FirstOfEach {
            key: path.to_string(),
            ordered,
            sort,
        })
    }

    /// Returns the scan in the direction that returns the first documents first, if its keys have
    /// the values of the groups unchanged and the documents of each group are adjacent.
    fn ordered(
        &self,
        (mut scan, field): (IndexScan, usize),
        collation: Option<&Collation>,
    ) -> Option<(IndexScan, usize)> {
        let fields = scan.keys.fields();
        let before = fields.get(..field)?;
        let points = scan.bounds.iter().take(field).all(|bounds| bounds.is_point());
        let fits = fields.get(field).is_some_and(|field| field.path == self.key)
            && points
            && scan.gives_value(field)
            && scan.keys.collation() == collation;
        if !fits {
            return None;
        }
        if self.ordered {
            let constant = |part: &&SortPart| before.iter().any(|field| field.path == part.path);
            let first = self.sort.iter().find(|part| !constant(part))?;
            if first.path != self.key {
                return None;
            }
            scan.backward = sort_order::direction(&scan, &self.sort, collation)?;
        }
        Some((scan, field))
    }
}
