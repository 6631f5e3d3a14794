//! Plans a `find`.

mod by_id;
mod caching;
mod finish;

pub(crate) use self::by_id::lookups_of_keys;
pub use self::by_id::{compares_ids, id_of_write, id_to_look_up};
use self::by_id::{id_of_lookup, ids_compare_alike, wants_plain_documents};
use self::caching::Caching;
use self::finish::Finish;
use crate::indexes::access::{Access, Candidate, views};
use crate::indexes::choose::{Statistics, rank};
use crate::indexes::hint::{Choice, Restriction, choice, of_branches};
use crate::indexes::intersection;
use crate::indexes::search;
use crate::indexes::sort_order;
use crate::natural::{natural_scan, tail_scan};
use crate::plan::{BucketScan, Node, Plan, Reshape};
use crate::request::{FindRequest, collation_of};
use crate::shape::{PlanParts, PlanShape};
use quire_catalog::{Collection, bind_searches};
use quire_document::{DocBuf, Value, ValueBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::filter::{Node as Condition, Search as SearchCondition};
use quire_mql::projection::Projection;
use quire_mql::sort::{Direction, SortPattern, natural};
use quire_mql::{Filter, ParseContext};
use std::borrow::Cow;
use std::sync::Arc;

/// A compiled `find`: a query of one collection. Pipelines and writes begin with one, too.
#[derive(Debug)]
pub struct FindQuery<'r> {
    /// The limits, the hint and the other options; the filter, sort and projection as they were
    /// written, for explain.
    pub request: &'r FindRequest,
    /// The filter, with the conditions that its expressions imply; `None` for a lookup by `_id`
    /// that is planned without it ([`id_to_look_up`]).
    pub filter: Option<Arc<Condition>>,
    /// The `_id` of such a lookup.
    pub(crate) by_id: Option<Value<'r>>,
    /// The sort; `None` without one, and for `$natural`.
    pub sort: Option<Arc<SortPattern>>,
    /// The order of `{$natural: ...}` in place of a sort.
    pub(crate) natural: Option<Direction>,
    /// The projection, if there is one.
    pub projection: Option<Arc<Reshape>>,
    /// The collection, if it exists and was looked up.
    pub collection: Option<Arc<Collection>>,
    /// True if stages above the query read the metadata of a search in the filter.
    pub(crate) reads_metadata: bool,
}

impl<'r> FindQuery<'r> {
    /// Compiles a request.
    ///
    /// # Errors
    /// The errors of `mql` about the filter, the sort and the projection.
    pub fn compile(
        request: &'r FindRequest,
        context: &ParseContext,
        stats: &dyn Statistics,
    ) -> Result<Self> {
        let collection = stats.collection(&request.namespace)?;
        let compile = || Filter::parse(request.filter.as_doc(), context);
        let by_id = id_to_look_up(request, collection.as_deref());
        let filter = if by_id.is_none() { Some(compile()?) } else { None };
        let mut query = FindQuery::of_condition(request, filter.map(Filter::into_node));
        query.by_id = by_id;
        query.collection = collection;
        query.compile_sort(context)?;
        query.projection = projection(request, &query.with_metadata(context))?.map(Arc::new);
        Ok(query)
    }

    /// Returns a query by a compiled filter, without a sort and a projection.
    pub fn of_filter(request: &'r FindRequest, filter: Option<&Filter>) -> Self {
        FindQuery::of_condition(request, filter.map(|filter| filter.root().clone()))
    }

    /// Returns a query by a condition that was taken from a filter, without a sort and a
    /// projection.
    pub fn of_condition(request: &'r FindRequest, condition: Option<Condition>) -> Self {
        let filter = condition.map(planned);
        FindQuery {
            request,
            filter,
            by_id: None,
            sort: None,
            natural: None,
            projection: None,
            collection: None,
            reads_metadata: false,
        }
    }

    /// Returns the search in the filter.
    pub(crate) fn search(&self) -> Option<&Arc<dyn SearchCondition>> {
        self.filter.as_deref()?.search()
    }

    /// Returns the context for the sort and the projection: with the metadata of the search.
    fn with_metadata<'c>(&self, context: &'c ParseContext) -> Cow<'c, ParseContext> {
        match self.search() {
            Some(search) => Cow::Owned(context.with_metadata(search.metadata())),
            None => Cow::Borrowed(context),
        }
    }

    /// Returns true if the sort or the projection reads metadata of the search.
    fn reads_search(&self) -> bool {
        let Some(search) = self.search() else { return false };
        let projection = self.projection.as_deref().and_then(|spec| spec.projection.as_ref());
        search.metadata().iter().any(|kind| {
            projection.is_some_and(|spec| spec.metadata().contains(*kind))
                || self
                    .sort
                    .as_ref()
                    .is_some_and(|sort| sort.metadata().any(|read| read.name() == *kind))
        })
    }

    /// Compiles the sort of the request.
    ///
    /// # Errors
    /// The errors of `mql` about the sort.
    pub fn compile_sort(&mut self, context: &ParseContext) -> Result<()> {
        let sort = self.request.sort.as_doc();
        self.natural = natural(sort)?;
        if !sort.is_empty() && self.natural.is_none() {
            let context = self.with_metadata(context);
            self.sort = Some(Arc::new(SortPattern::parse(sort, &context)?));
        }
        Ok(())
    }

    /// Returns the sort as explain shows it.
    pub(crate) fn written_sort(&self) -> &DocBuf {
        match &self.sort {
            Some(pattern) if self.request.of_pipeline => pattern.to_bson(),
            _ => &self.request.sort,
        }
    }

    /// Returns the shape of the query's plans.
    pub(crate) fn shape(&self, collation: Option<&Collation>) -> PlanShape {
        let parts = PlanParts {
            filter: self.filter.as_deref(),
            sort: self.written_sort().as_doc(),
            projection: self.request.projection.as_doc(),
            collation,
        };
        PlanShape::of(parts, &[])
    }
}

/// Returns a filter's condition in the form that plans have: with the conditions that its
/// expressions imply.
pub fn planned(condition: Condition) -> Arc<Condition> {
    Arc::new(match condition.is_always_true() {
        true => Condition::And(Vec::new()),
        false => condition.with_implied(),
    })
}

/// Compiles the projection of a find; `None` if it returns whole documents.
fn projection(request: &FindRequest, context: &ParseContext) -> Result<Option<Reshape>> {
    let written = &request.projection;
    if written.as_doc().is_empty() && !request.show_record_id {
        return Ok(None);
    }
    let filter = Some(request.filter.as_doc());
    let projection = Arc::new(Projection::parse_find(written.as_doc(), filter, context)?);
    let mut shown = written.clone();
    if request.show_record_id {
        shown.extend(|writer| {
            writer.document("$recordId").append("$meta", "recordId");
        });
    }
    Ok(Some(Reshape {
        shown,
        projection: Some(projection),
        show_record_id: request.show_record_id,
        empty_sort_key: true,
        narrows: false,
        values_only: false,
    }))
}

/// The largest filter in bytes that is planned without checks of the interrupt.
const UNCOUNTED_BYTES_MAX: usize = 64 * 1024;

/// Plans a query.
///
/// # Errors
/// `BadValue` for a hint that names no index and for `$meta: "sortKey"` without a sort; 51173 to
/// 51176 for `min` and `max` that do not match the index or each other.
pub fn plan_find(query: &FindQuery<'_>, stats: &dyn Statistics) -> Result<Plan> {
    let request = query.request;
    stats.note_query();
    let found = match &query.collection {
        Some(found) => Some(Arc::clone(found)),
        None => stats.collection(&request.namespace)?,
    };
    let collation = collation_of(&request.collation, found.as_deref());
    let filter = bound(query, found.as_deref())?;
    let plan = |root, rejected, missing| Plan {
        namespace: request.namespace.clone(),
        filter: filter.clone(),
        root,
        by_keys: None,
        rejected,
        missing,
        sort: query.written_sort().clone(),
        projection: request.projection.clone(),
        of_pipeline: request.of_pipeline,
        collation: collation.cloned(),
        index_filter: None,
        settings: stats.query_settings().cloned(),
        hint: request.hint.clone(),
        from_cache: false,
    };
    let Some(collection) = &found else {
        return Ok(plan(Node::Eof, Vec::new(), true));
    };
    let plain = || wants_plain_documents(request) && ids_compare_alike(collection, collation);
    let id = id_of_lookup(query, plain);
    if let Some(id) = id
        && query.projection.is_none()
    {
        let root = Node::IdHack { collection: Arc::clone(collection), id: ValueBuf::new(id) };
        return Ok(plan(root, Vec::new(), false));
    }
    let mut finish = Finish::new(query, collation.map(|collation| &**collation))?;
    if let Some(id) = id {
        return Ok(plan(finish.id_hack(collection, ValueBuf::new(id)), Vec::new(), false));
    }
    let Some(filter) = &filter else {
        return Err(Error::internal("a plan without a compiled filter"));
    };
    search::check(filter, request, query.natural.is_some())?;
    if collection.is_time_series() && stats.has_buckets(collection)? {
        let scan = BucketScan::new(collection, filter, finish.collation.is_none());
        finish.buckets = scan.map(Box::new);
    }
    pause(request, stats)?;
    let settings = stats.query_settings();
    let allowed = settings.and_then(|settings| settings.allowed(collection.namespace.as_str()));
    let index_filter = match allowed {
        Some(_) => None,
        None => collection.index_filters.find(|| query.shape(finish.collation).0),
    };
    let restriction = Restriction::new(request.hint.as_ref(), allowed, index_filter.as_deref());
    if request.tailable {
        check_tail(request, filter, collection, restriction, finish.collation)?;
        return Ok(plan(finish.finish(tail_scan(collection, filter)), Vec::new(), false));
    }
    let search = Search { query, filter, collection, restriction, stats, finish: &finish };
    let chosen = search.choose()?;
    let root = match (chosen.root, request.sample) {
        (root, Some(size)) if draws(&root, stats, size) => {
            let collection = Arc::clone(collection);
            Node::RandomPicks { collection, size, scan: Box::new(root) }
        }
        (root, _) => root,
    };
    let from_cache = chosen.from_cache;
    Ok(Plan { index_filter, from_cache, ..plan(root, chosen.rejected, false) })
}

/// Returns the filter with its search bound to the index that answers it.
fn bound(query: &FindQuery<'_>, collection: Option<&Collection>) -> Result<Option<Arc<Condition>>> {
    let mut filter = query.filter.clone();
    if let Some(filter) = filter.as_mut().filter(|filter| filter.search().is_some()) {
        search::check_place(filter)?;
        bind_searches(Arc::make_mut(filter), collection)?;
    }
    Ok(filter)
}

/// Checks the options of a tailable cursor that need an index. As in MongoDB it reads in the order of
/// insertion all the same: a hint must only name an index that exists.
fn check_tail(
    request: &FindRequest,
    filter: &Condition,
    collection: &Arc<Collection>,
    restriction: Restriction<'_>,
    collation: Option<&Collation>,
) -> Result<()> {
    if !request.min.as_doc().is_empty() || !request.max.as_doc().is_empty() {
        return Err(Error::bad_value("cannot use tailable option with min or max"));
    }
    choice(collection, restriction, filter, collation).map(|_| ())
}

/// A search of a collection by a filter, which several plans may serve.
struct Search<'s> {
    query: &'s FindQuery<'s>,
    filter: &'s Condition,
    collection: &'s Arc<Collection>,
    restriction: Restriction<'s>,
    stats: &'s dyn Statistics,
    finish: &'s Finish<'s>,
}

/// The plan of a search, and those that were not chosen.
struct Chosen {
    root: Node,
    rejected: Vec<Node>,
    from_cache: bool,
}

impl Search<'_> {
    /// Chooses a plan: the one of the plan cache, or the cheapest.
    fn choose(&self) -> Result<Chosen> {
        let Search { query, filter, collection, restriction, stats, finish } = *self;
        let caching =
            Caching::begin(query, filter, collection, restriction, finish.collation, stats);
        if let Some(caching) = &caching
            && let Some(index) = caching.index()
            && let Some(root) =
                caching.take(self.candidates(restriction.to_cached(index))?, stats)?
        {
            return Ok(Chosen { root, rejected: Vec::new(), from_cache: true });
        }
        let mut nodes = self.candidates(restriction)?;
        pause(query.request, stats)?;
        let request = query.request;
        let needed = match request.limit {
            0 => 0,
            limit => limit.saturating_add(request.skip),
        };
        let ranking = rank(&nodes.iter().collect::<Vec<_>>(), stats, needed)?;
        let mut best = ranking.order.first().copied().unwrap_or(0);
        let in_order = finish.sorts() && !nodes.get(best).is_some_and(Node::blocks);
        if needed == 0
            && !in_order
            && let Some(both) = intersection::worthwhile(&nodes, &ranking, filter, stats)
        {
            best = nodes.len();
            nodes.push(finish.finish(both));
        } else if let Some(caching) = caching {
            caching.remember(&nodes, &ranking, stats, restriction.is_filtered());
        }
        Ok(Chosen { root: nodes.remove(best), rejected: nodes, from_cache: false })
    }

    /// Returns the plans that the restriction allows.
    fn candidates(&self, restriction: Restriction<'_>) -> Result<Vec<Node>> {
        let Search { query, filter, collection, stats, finish, .. } = *self;
        if filter.is_always_true() && finish.takes_any_order() && restriction.is_free() {
            // No index reads less than the collection.
            return Ok(vec![finish.finish(natural_scan(collection, None, false))]);
        }
        candidates(query.request, filter, collection, restriction, stats, finish)
    }
}

/// Checks the interrupt between the steps of planning a large filter.
fn pause(request: &FindRequest, stats: &dyn Statistics) -> Result<()> {
    match request.filter.as_bytes().len() {
        0..=UNCOUNTED_BYTES_MAX => Ok(()),
        _ => stats.check_interrupt(),
    }
}

/// Returns true if drawing `size` random documents is cheaper than choosing them from the plan's
/// rows.
fn draws(root: &Node, stats: &dyn Statistics, size: u64) -> bool {
    reads_all(root) && root.collection().is_some_and(|found| stats.draws(found, size))
}

/// Returns true if a plan returns every document of the collection.
fn reads_all(root: &Node) -> bool {
    match root {
        Node::CollScan { filter, .. } => filter.is_none(),
        Node::ClusteredScan { filter, .. } => root.scans_collection() && filter.is_none(),
        Node::Projection { input, .. } => reads_all(input),
        _ => false,
    }
}

/// Returns all complete plans that are worth considering, at least one.
fn candidates(
    request: &FindRequest,
    filter: &Condition,
    collection: &Arc<Collection>,
    restriction: Restriction<'_>,
    stats: &dyn Statistics,
    finish: &Finish<'_>,
) -> Result<Vec<Node>> {
    if !request.min.as_doc().is_empty() || !request.max.as_doc().is_empty() {
        let scan = crate::indexes::min_max::scan(request, collection, finish.collation)?;
        let node = with_filter(Node::IndexScan(Box::new(scan)), filter);
        return Ok(vec![finish.finish(node)]);
    }
    let collation = finish.collation;
    let collection_scan = |backward| {
        let filter = (!filter.is_always_true()).then(|| filter.clone());
        natural_scan(collection, filter, backward)
    };
    if restriction.names_index() && finish.query.natural.is_some() {
        return Err(Error::bad_value("index hint not allowed with $natural sort order"));
    }
    if filter.is_always_false() {
        restriction.check_hint(collection)?;
        return Ok(vec![finish.finish(Node::Eof)]);
    }
    if let Some(backward) = finish.natural {
        return Ok(vec![finish.finish(collection_scan(backward))]);
    }
    let (indexes, hinted) = match choice(collection, restriction, filter, collation)? {
        Choice::Natural { backward } => return Ok(vec![finish.finish(collection_scan(backward))]),
        Choice::Any(mut indexes) => {
            indexes.extend(of_branches(collection, restriction, filter, collation));
            (indexes, false)
        }
        Choice::Only(index) => (vec![index], true),
    };
    let alone = !hinted || indexes.iter().all(Candidate::stands_alone);
    let gathers = finish.reads_search;
    let access = Access { indexes: views(indexes, filter), stats, collation, gathers };
    let mut nodes = match access.indexes.first() {
        Some(only) if hinted && !only.holds_all(filter, collation) => Vec::new(),
        _ => access.nodes(filter)?,
    };
    let rooted_or = matches!(filter, Condition::Or(_)) && !hinted;
    nodes = nodes.into_iter().map(|node| finish.finish(node)).collect();
    if let Some(search) = filter.search().filter(|_| nodes.is_empty()) {
        return Err(search::no_plan(&request.namespace, filter, &**search));
    }
    let settled = (rooted_or || filter.search().is_some()) && !nodes.is_empty();
    if finish.sorts() && !settled && nodes.iter().all(Node::blocks) {
        nodes.extend(whole_scans(&access.indexes, filter, hinted, finish));
    }
    if let Some(backward) = restriction.natural() {
        nodes.push(finish.finish(collection_scan(backward)));
    } else if nodes.is_empty() && restriction.is_of_settings() {
        // As in MongoDB: settings without a usable index do not count.
        let free = Restriction::new(request.hint.as_ref(), None, None);
        return candidates(request, filter, collection, free, stats, finish);
    }
    if nodes.is_empty() && !alone {
        return Err(no_plan(&request.namespace, access.indexes.is_empty()));
    }
    if nodes.is_empty() {
        nodes.push(match access.indexes.first() {
            Some(only) if hinted => {
                let scan = only.scan();
                finish.finish(with_filter(Node::IndexScan(Box::new(scan)), filter))
            }
            _ => finish.finish(collection_scan(false)),
        });
    }
    if rooted_or {
        nodes = nodes.into_iter().map(|node| Node::Subplan { input: Box::new(node) }).collect();
    }
    Ok(nodes)
}

/// Returns scans of whole indexes that return the rows in the order of the sort.
fn whole_scans(
    indexes: &[Candidate],
    filter: &Condition,
    hinted: bool,
    finish: &Finish<'_>,
) -> Vec<Node> {
    let Some(parts) = &finish.sort else { return Vec::new() };
    let mut out = Vec::new();
    for candidate in indexes {
        let misses_documents = candidate.index.keys.misses_documents() || candidate.of_branches;
        if !candidate.stands_alone() || misses_documents && !hinted {
            continue;
        }
        let scan = candidate.scan();
        if !candidate.index.has_long_keys()
            && sort_order::direction(&scan, parts, finish.collation).is_some()
        {
            let node = with_filter(Node::IndexScan(Box::new(scan)), filter);
            out.push(finish.finish(node));
        }
    }
    out
}

fn with_filter(node: Node, filter: &Condition) -> Node {
    if filter.is_always_true() {
        return node;
    }
    Node::Fetch { filter: Some(filter.clone()), input: Box::new(node) }
}

/// Returns the error of a hinted wildcard index that cannot be used. `unserved` means that it
/// contains no path of the filter.
fn no_plan(namespace: &str, unserved: bool) -> Error {
    let why = match unserved {
        true => "No query solutions",
        false => "$hint: refusing to build whole-index solution, because it's a wildcard index",
    };
    Error::new(
        ErrorCode::NoQueryExecutionPlans,
        format!(
            "error processing query: ns={namespace} planner returned error :: caused by :: {why}"
        ),
    )
}
