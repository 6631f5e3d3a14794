//! Plans a `$group` that reads only the first documents of each group, as `$first`, `$last`, `$top` and `$topN` do: a scan
//! of an index skips from group to group (`DISTINCT_SCAN`). Of a time series it reads the first points of each source,
//! which is `sources`.

mod sources;

pub(crate) use self::sources::points_of_sources;
use crate::find::FindQuery;
use crate::indexes::access::{Access, Candidate};
use crate::indexes::choose::Statistics;
use crate::indexes::covering::{ProjectionFacts, has_position};
use crate::indexes::hint::{Choice, Restriction, choice};
use crate::indexes::keys::tests_keys;
use crate::indexes::sort_order::{self, SortPart};
use crate::plan::{IndexScan, Node, Plan};
use crate::request::FindRequest;
use quire_catalog::Collection;
use quire_error::Result;
use quire_mql::collation::Collation;
use quire_mql::expression::{Expression, ExpressionNode};
use quire_mql::filter::Node as Condition;
use quire_mql::stage::{Group, GroupKey};
use std::sync::Arc;

/// The most documents of each group that are read by an index. A scan of all documents is faster for more.
const EACH_MAX: u64 = 100;

/// Returns a plan that reads the first documents of each group, to replace the plan of `query`,
/// which reads all documents. `None` if the `$group` reads more than that, or if no index allows
/// it.
///
/// # Errors
/// `BadValue` for a hint that names no index; the interrupt's error.
pub(crate) fn below_group(
    group: &Group,
    query: &FindQuery<'_>,
    plan: &Plan,
    stats: &dyn Statistics,
) -> Result<Option<Node>> {
    let FindRequest { skip: 0, limit: 0, sample: None, .. } = query.request else {
        return Ok(None);
    };
    let Some(picks) = Picks::of(group, query) else { return Ok(None) };
    let (Some(paths), Some(collection)) = (key_paths(group.key()), plan.root.collection()) else {
        return Ok(None);
    };
    let search = Search { query, plan, collection, stats };
    let mut found = match paths.as_slice() {
        [key] if !plan.root.reads_buckets() => search.keys_of_each(key, &picks)?,
        _ => None,
    };
    if found.is_none() {
        found = search.points_of_each(&paths, &picks)?;
    }
    Ok(found.map(|node| match &query.projection {
        Some(spec) => ProjectionFacts::new(spec).apply(node, spec, false),
        None => node.fetched(),
    }))
}

/// Returns the paths that make up the key of the groups; `None` if it is no value of one path and no document of such
/// values.
fn key_paths(key: &GroupKey) -> Option<Vec<String>> {
    let path = |expression: &Expression| match expression.node() {
        ExpressionNode::Path(path) => Some(path.to_string()),
        _ => None,
    };
    match key {
        GroupKey::Expression(_) => Some(vec![key.path()?.to_string()]),
        GroupKey::Fields(fields) => fields.iter().map(|(_, expression)| path(expression)).collect(),
    }
}

/// The documents of each group that a `$group` reads.
struct Picks {
    /// They are the first ones in this order; `None` if it does not matter which ones they are.
    order: Option<Vec<SortPart>>,
    /// The number of documents.
    each: u64,
    /// True if an accumulator reads them in the order of the query's sort.
    by_arrival: bool,
    /// True if an accumulator reads the last ones in the order of the query's sort.
    takes_last: bool,
}

impl Picks {
    /// Returns the picks that take any document of each group.
    const ANY: Picks = Picks { order: None, each: 1, by_arrival: false, takes_last: false };

    /// Returns `None` for a `$group` that reads more than some documents of each group, and for one
    /// whose first documents are not determined by one sort.
    fn of(group: &Group, query: &FindQuery<'_>) -> Option<Self> {
        let arrival = match &query.sort {
            Some(sort) => Some(sort_order::parts(sort)?),
            None => None,
        };
        let mut picks = Picks::ANY;
        for (_, spec) in group.fields() {
            let picked = spec.picked()?;
            let mut order = match picked.sort {
                Some(sort) => sort_order::parts(sort)?,
                None => arrival.clone()?,
            };
            if picked.is_last {
                order.iter_mut().for_each(|part| part.descending = !part.descending);
            }
            if picks.order.as_ref().is_some_and(|other| *other != order) {
                return None;
            }
            picks.order = Some(order);
            picks.each = picks.each.max(picked.count);
            picks.by_arrival |= picked.sort.is_none();
            picks.takes_last |= picked.sort.is_none() && picked.is_last;
        }
        (picks.each <= EACH_MAX).then_some(picks)
    }

    /// Returns the scan in the direction that returns the first documents first, if its keys have
    /// the values of the groups unchanged and the documents of each group are adjacent.
    fn ordered(
        &self,
        key: &str,
        (mut scan, field): (IndexScan, usize),
        collation: Option<&Collation>,
    ) -> Option<(IndexScan, usize)> {
        let points = scan.bounds.iter().take(field).all(|bounds| bounds.is_point());
        let fits = scan.keys.fields().get(field).is_some_and(|field| field.path == key)
            && points
            && scan.gives_value(field)
            && scan.keys.collation() == collation;
        if !fits {
            return None;
        }
        if let Some(order) = &self.order {
            scan.backward = direction(&scan, key, order, collation)?;
        }
        Some((scan, field))
    }
}

/// Returns the direction in which a scan returns the documents of each group in an order. The order of the groups does
/// not matter, so their key may have either direction and any place in the order.
fn direction(
    scan: &IndexScan,
    key: &str,
    order: &[SortPart],
    collation: Option<&Collation>,
) -> Option<bool> {
    let within = |descending| {
        let key_part = SortPart { path: key.to_owned(), descending };
        let others = order.iter().filter(|part| part.path != key).cloned();
        let parts: Vec<SortPart> = std::iter::once(key_part).chain(others).collect();
        sort_order::direction(scan, &parts, collation)
    };
    let as_asked = order.iter().any(|part| part.path == key);
    let as_asked = || as_asked.then(|| sort_order::direction(scan, order, collation)).flatten();
    as_asked().or_else(|| within(false)).or_else(|| within(true))
}

/// A search for scans that replace the plan of a query.
struct Search<'s> {
    query: &'s FindQuery<'s>,
    plan: &'s Plan,
    collection: &'s Arc<Collection>,
    stats: &'s dyn Statistics,
}

impl Search<'_> {
    /// Returns a scan of the first keys of each value of `key`.
    fn keys_of_each(&self, key: &str, picks: &Picks) -> Result<Option<Node>> {
        // An index takes a number for a position in an array, an expression does not. The last documents must come in
        // their order, and not in the reverse one.
        if has_position(key) || picks.takes_last && picks.each > 1 {
            return Ok(None);
        }
        let collation = self.plan.collation.as_deref();
        let found = match self.filter() {
            None => {
                let indexes = self.indexes(&Condition::And(Vec::new()))?;
                let scans = indexes.iter().filter(|candidate| has_every_document(candidate));
                let scans = scans.map(|candidate| (candidate.scan(), 0));
                let fitting = scans.filter_map(|scan| picks.ordered(key, scan, collation));
                fitting.min_by_key(|(scan, _)| scan.bounds.len())
            }
            Some(filter) => match planned_scan(&self.plan.root) {
                Some(scan) => scan
                    .field(key)
                    .and_then(|field| picks.ordered(key, (scan.clone(), field), collation)),
                None if reads_all(&self.plan.root) => self.bounded_scan(key, filter, picks)?,
                None => None,
            },
        };
        Ok(found.map(|(scan, field)| distinct(scan, field, picks.each)))
    }

    /// Returns a scan of an index that begins with `key` and answers the filter, for a plan that reads the whole
    /// collection otherwise.
    fn bounded_scan(
        &self,
        key: &str,
        filter: &Condition,
        picks: &Picks,
    ) -> Result<Option<(IndexScan, usize)>> {
        let collation = self.plan.collation.as_deref();
        if filter.conjuncts().iter().any(tests_keys) {
            return Ok(None);
        }
        let (access, indexes) = (self.access(), self.indexes(filter)?);
        let begins = |candidate: &&Candidate| {
            candidate.keys.fields().first().is_some_and(|field| field.path == key)
        };
        let mut best: Option<(IndexScan, usize)> = None;
        for candidate in indexes.iter().filter(begins) {
            let Some(scan) = access.exact_scan(candidate, filter)? else { continue };
            let Some(fitting) = picks.ordered(key, (scan, 0), collation) else { continue };
            if best.as_ref().is_none_or(|(best, _)| fitting.0.bounds.len() < best.bounds.len()) {
                best = Some(fitting);
            }
        }
        Ok(best)
    }

    /// Returns the filter; `None` if every document passes.
    fn filter(&self) -> Option<&Condition> {
        self.query.filter.as_deref().filter(|filter| !filter.is_always_true())
    }

    fn access(&self) -> Access<'_> {
        let collation = self.plan.collation.as_deref();
        Access { indexes: Vec::new(), stats: self.stats, collation, gathers: false }
    }

    /// Returns the indexes that the request may use, without the clustered one.
    fn indexes(&self, filter: &Condition) -> Result<Vec<Candidate>> {
        let Search { query, plan, collection, .. } = self;
        let hint = query.request.hint.as_ref();
        let allowed = plan.allowed_by_settings();
        let restriction = Restriction::new(hint, allowed, plan.index_filter.as_deref());
        let mut indexes = match choice(collection, restriction, filter, plan.collation.as_deref())?
        {
            Choice::Any(indexes) => indexes,
            Choice::Only(index) => vec![index],
            Choice::Natural { .. } => Vec::new(),
        };
        indexes.retain(|candidate| !candidate.index.is_clustered());
        Ok(indexes)
    }
}

/// Returns a scan of the first keys of each value of a field.
fn distinct(scan: IndexScan, field: usize, each: u64) -> Node {
    Node::DistinctScan { scan: Box::new(scan), field, missing_too: true, each }
}

/// Returns true if the index has every document. A document without the fields of an index belongs
/// to a group too.
fn has_every_document(candidate: &Candidate) -> bool {
    !candidate.keys.misses_documents() && candidate.index.partial_filter().is_none()
}

/// Returns the only index scan of a plan, if the plan has no test of documents. Its sort is that of the query, which the
/// picks know.
fn planned_scan(node: &Node) -> Option<&IndexScan> {
    match node {
        Node::Projection { input, .. }
        | Node::Sort { input, .. }
        | Node::Fetch { filter: None, input } => planned_scan(input),
        Node::IndexScan(scan) if scan.range.is_none() => Some(scan),
        _ => None,
    }
}

/// Returns true for a plan that reads all documents or all keys of an index.
fn reads_all(node: &Node) -> bool {
    match node {
        Node::Projection { input, .. } | Node::Sort { input, .. } | Node::Fetch { input, .. } => {
            reads_all(input)
        }
        Node::IndexScan(scan) => scan.is_whole(),
        other => other.scans_collection(),
    }
}
