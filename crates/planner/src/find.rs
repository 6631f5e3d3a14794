//! From a `find` to its plan.

use crate::access::{Access, Candidate};
use crate::choose::{Statistics, rank};
use crate::covering::ProjectionFacts;
use crate::hint::{Choice, choice};
use crate::plan::{IndexScan, Node, Plan};
use crate::request::{FindRequest, Hint};
use crate::sort_order::{self, SortPart};
use quire_catalog::Collection;
use quire_document::{Doc, DocBuf, Value, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::Filter;
use quire_mql::collation::Collation;
use quire_mql::filter::{Comparison, Node as Condition, Test, is_operator_document};
use quire_mql::sort::{Direction, natural};

/// Plans a `find`. `filter` is the compiled filter of the request (a lookup by `_id` needs none:
/// [`is_id_lookup`]); projection and sort have been accepted by `mql`; `collection` is `None` if it
/// does not exist.
///
/// # Errors
/// `BadValue` for a hint that names no index, 51173 to 51176 for `min` and `max` that do not fit.
pub fn plan_find(
    request: &FindRequest,
    filter: Option<&Filter>,
    collection: Option<&Collection>,
    stats: &dyn Statistics,
) -> Result<Plan> {
    let filter = filter.map(|filter| match filter.root() {
        always if always.is_always_true() => Condition::And(Vec::new()),
        root => root.clone().with_implied(),
    });
    let plan = |root, rejected, missing| Plan {
        namespace: request.namespace.clone(),
        filter: filter.clone(),
        root,
        rejected,
        missing,
        sort: request.sort.clone(),
        projection: request.projection.clone(),
        stages: Vec::new(),
    };
    let Some(collection) = collection else { return Ok(plan(Node::Eof, Vec::new(), true)) };
    let finish = Finish::new(request);
    if wants_plain_documents(request) {
        let id = filter.as_ref().and_then(compiled_id_equality);
        if let Some(id) = id.or_else(|| id_equality(request.filter.as_doc())) {
            return Ok(plan(finish.id_hack(ValueBuf::new(id)), Vec::new(), false));
        }
    }
    let Some(filter) = &filter else {
        return Err(Error::internal("a plan without a compiled filter"));
    };
    let mut nodes = candidates(request, filter, collection, stats, &finish)?;
    let needed = match request.limit {
        0 => 0,
        limit => limit.saturating_add(request.skip),
    };
    let order = rank(&nodes.iter().collect::<Vec<_>>(), stats, needed);
    let best = order.first().copied().unwrap_or(0);
    let root = match (nodes.remove(best), request.sample) {
        (root, Some(size)) if reads_all(&root) && stats.draws(size) => {
            Node::RandomPicks { size, scan: Box::new(root) }
        }
        (root, _) => root,
    };
    Ok(plan(root, nodes, false))
}

/// Whether a plan gives every document of the collection.
fn reads_all(root: &Node) -> bool {
    match root {
        Node::CollScan { filter, .. } => filter.is_none(),
        Node::Projection { input, .. } => reads_all(input),
        _ => false,
    }
}

/// Every complete plan worth considering; at least one.
fn candidates(
    request: &FindRequest,
    filter: &Condition,
    collection: &Collection,
    stats: &dyn Statistics,
    finish: &Finish<'_>,
) -> Result<Vec<Node>> {
    if !request.min.as_doc().is_empty() || !request.max.as_doc().is_empty() {
        let scan = crate::min_max::scan(request, collection)?;
        let node = with_filter(Node::IndexScan(Box::new(scan)), filter);
        return Ok(vec![finish.finish(node)]);
    }
    let collation = request.collation.as_deref();
    let collection_scan = |backward| Node::CollScan {
        filter: (!filter.is_always_true()).then(|| filter.clone()),
        backward,
    };
    let by_index = matches!(request.hint, Some(Hint::Name(_) | Hint::Pattern(_)));
    if by_index && request.sort.as_doc().contains("$natural") {
        return Err(Error::bad_value("index hint not allowed with $natural sort order"));
    }
    if filter.is_always_false() {
        return Ok(vec![finish.finish(Node::Eof)]);
    }
    if let Some(backward) = finish.natural {
        return Ok(vec![finish.finish(collection_scan(backward))]);
    }
    let (indexes, hinted) = match choice(collection, request.hint.as_ref(), filter, collation)? {
        Choice::Natural { backward } => return Ok(vec![finish.finish(collection_scan(backward))]),
        Choice::Any(indexes) => (indexes, false),
        Choice::Only(index) => (vec![index], true),
    };
    let access = Access { indexes, stats, collation };
    let mut nodes = match access.indexes.first() {
        Some(only) if hinted && !only.holds_all(filter, collation) => Vec::new(),
        _ => access.nodes(filter),
    };
    let rooted_or = matches!(filter, Condition::Or(_)) && !hinted;
    nodes = nodes.into_iter().map(|node| finish.finish(node)).collect();
    let settled = rooted_or && !nodes.is_empty();
    if finish.sorts() && !settled && nodes.iter().all(Node::blocks) {
        nodes.extend(whole_scans(&access.indexes, filter, hinted, finish));
    }
    if nodes.is_empty() {
        nodes.push(match access.indexes.first() {
            Some(only) if hinted => {
                let scan = IndexScan::whole(&only.index, only.multikey.clone());
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

/// Scans of whole indexes that give the sort.
fn whole_scans(
    indexes: &[Candidate],
    filter: &Condition,
    hinted: bool,
    finish: &Finish<'_>,
) -> Vec<Node> {
    let Some(parts) = &finish.sort else { return Vec::new() };
    let mut out = Vec::new();
    for candidate in indexes {
        if candidate.index.keys.is_sparse() && !hinted {
            continue;
        }
        let scan = IndexScan::whole(&candidate.index, candidate.multikey.clone());
        if !candidate.index.has_long_keys()
            && sort_order::direction(&scan, parts, finish.collation()).is_some()
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

/// Whether a request asks for nothing that an index scan would have to do.
fn wants_plain_documents(request: &FindRequest) -> bool {
    request.hint.is_none()
        && request.skip == 0
        && request.min.as_doc().is_empty()
        && request.max.as_doc().is_empty()
        && !request.show_record_id
        && request.collation.is_none()
        && !request.sort.as_doc().contains("$natural")
}

/// Whether a request is a lookup by `_id` as it is written: its filter never fails to parse, and
/// planning needs no tree of it.
pub fn is_id_lookup(request: &FindRequest) -> bool {
    wants_plain_documents(request) && id_equality(request.filter.as_doc()).is_some()
}

/// The value of a filter that is an equality on `_id` and nothing else.
fn id_equality(filter: Doc<'_>) -> Option<Value<'_>> {
    let mut fields = filter.fields();
    let (Some(("_id", value)), None) = (fields.next(), fields.next()) else { return None };
    let value = match value {
        Value::Document(doc) if is_operator_document(doc) => {
            let mut operators = doc.fields();
            match (operators.next(), operators.next()) {
                (Some(("$eq", value)), None) => value,
                _ => return None,
            }
        }
        value => value,
    };
    is_point(value).then_some(value)
}

/// The same of a filter that only comes to that, such as `{_id: {$in: [1]}}`.
fn compiled_id_equality(filter: &Condition) -> Option<Value<'_>> {
    let Condition::Path(node) = filter else { return None };
    let Test::Compare(Comparison::Eq, operand) = &node.test else { return None };
    (node.path.as_str() == "_id" && is_point(operand.value())).then(|| operand.value())
}

/// Whether an `_id` that is equal to this is this one value.
fn is_point(value: Value<'_>) -> bool {
    !matches!(value, Value::Array(_) | Value::Regex(_) | Value::Null | Value::Undefined)
}

/// What is done with the documents that the filter leaves: sort, skip, projection, limit.
struct Finish<'r> {
    request: &'r FindRequest,
    /// The sort, if it is one that indexes may give.
    sort: Option<Vec<SortPart>>,
    /// `{$natural: ...}`: backward or not.
    natural: Option<bool>,
    projection: Option<(ProjectionFacts, DocBuf)>,
}

impl<'r> Finish<'r> {
    fn new(request: &'r FindRequest) -> Self {
        let sort = request.sort.as_doc();
        let natural = match request.hint {
            Some(Hint::Natural(_)) | None => {
                let order = natural(sort).ok().flatten();
                order.map(|direction| direction == Direction::Descending)
            }
            Some(_) => None,
        };
        let parts = (!sort.is_empty() && natural.is_none()).then(|| sort_order::parts(sort));
        let mut spec = request.projection.clone();
        if request.show_record_id {
            spec.extend(|writer| {
                writer.document("$recordId").append("$meta", "recordId");
            });
        }
        let projection = (!spec.as_doc().is_empty() && !request.return_key).then(|| {
            let mut facts = ProjectionFacts::new(spec.as_doc());
            if request.projection.as_doc().is_empty() {
                facts.required = None;
            }
            (facts, spec)
        });
        Finish { request, sort: parts.flatten(), natural, projection }
    }

    /// How the request compares strings.
    fn collation(&self) -> Option<&Collation> {
        self.request.collation.as_deref()
    }

    fn sorts(&self) -> bool {
        !self.request.sort.as_doc().is_empty() && self.natural.is_none()
    }

    fn id_hack(&self, id: ValueBuf) -> Node {
        let node = Node::IdHack { id };
        match &self.projection {
            Some((facts, spec)) => facts.apply(node, spec, !self.request.of_pipeline),
            None if self.request.return_key => self.keys_of(node),
            None => node,
        }
    }

    fn keys_of(&self, node: Node) -> Node {
        let is_sort_key = |value: Value<'_>| {
            let kind = value.as_document().and_then(|doc| doc.get("$meta"));
            matches!(kind, Some(Value::String("sortKey")))
        };
        let fields = self.request.projection.as_doc().fields();
        let sort_keys = fields.filter(|(_, value)| is_sort_key(*value));
        let sort_keys = sort_keys.map(|(name, _)| name.to_owned()).collect();
        Node::ReturnKey { sort_keys, input: Box::new(node) }
    }

    fn finish(&self, node: Node) -> Node {
        let mut node = node;
        let mut limited = self.request.limit == 0;
        if self.sorts() {
            let long_keys = has_long_keys(&node);
            let ordered = match &self.sort {
                Some(parts) if !long_keys => {
                    sort_order::ordered(&node, parts, &self.request.sort, self.collation())
                }
                _ => None,
            };
            node = match ordered {
                Some(ordered) => ordered,
                None => {
                    limited = true;
                    self.sorted(node)
                }
            };
        }
        if self.request.skip > 0 {
            node = Node::Skip { count: self.request.skip, input: Box::new(node) };
        }
        node = match &self.projection {
            _ if self.request.return_key => self.keys_of(node),
            Some((facts, spec)) => facts.apply(node, spec, !self.request.of_pipeline),
            None => node.fetched(),
        };
        if !limited {
            node = Node::Limit { count: self.request.limit, input: Box::new(node) };
        }
        node
    }

    fn sorted(&self, node: Node) -> Node {
        let by_key = match (&self.sort, node.only_index()) {
            (Some(parts), Some(scan)) => parts
                .iter()
                .all(|part| scan.field(&part.path).is_some_and(|field| scan.gives_value(field))),
            _ => false,
        };
        let input = if by_key { node } else { node.fetched() };
        let simple = input.gives_documents() && !self.request.return_key;
        let limit = match self.request.limit {
            0 => 0,
            limit => limit.saturating_add(self.request.skip),
        };
        let pattern = self.request.sort.clone();
        Node::Sort { pattern, limit, simple, input: Box::new(input) }
    }
}

fn has_long_keys(node: &Node) -> bool {
    let mut long = false;
    node.for_each_scan(&mut |scan| long |= scan.index.has_long_keys());
    long
}

/// The error of a plan that cannot be made.
pub(crate) fn planner_error(location: i32, namespace: &str, why: &str) -> Error {
    Error::location(
        location,
        format!(
            "error processing query: ns={namespace} planner returned error :: caused by :: {why}"
        ),
    )
}
