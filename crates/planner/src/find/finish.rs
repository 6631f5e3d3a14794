//! The nodes above the documents that pass the filter of a query.

use crate::find::FindQuery;
use crate::indexes::covering::ProjectionFacts;
use crate::indexes::search;
use crate::indexes::sort_order::{self, SortPart};
use crate::natural::converted;
use crate::plan::{BucketScan, IdLookups, IndexScan, Node, PointOrder, Reshape};
use crate::request::FindRequest;
use quire_catalog::Collection;
use quire_document::{Value, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::collation::Collation;
use quire_mql::sort::Direction;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The operations on the documents that pass the filter: sort, skip, projection, limit.
pub(super) struct Finish<'r> {
    pub query: &'r FindQuery<'r>,
    request: &'r FindRequest,
    /// The collation of the request.
    pub collation: Option<&'r Collation>,
    /// The sort, if indexes can provide it.
    pub sort: Option<Vec<SortPart>>,
    /// The direction of `{$natural: ...}`: true for backward.
    pub natural: Option<bool>,
    projection: Option<(ProjectionFacts, Arc<Reshape>)>,
    /// True if the projection reads the sort key of a row.
    reads_sort_key: bool,
    /// True if metadata of a search in the filter are read.
    pub reads_search: bool,
    /// The scan of the buckets, if the collection has some: every plan reads them, too.
    pub buckets: Option<Box<BucketScan>>,
}

impl<'r> Finish<'r> {
    pub fn new(query: &'r FindQuery<'r>, collation: Option<&'r Collation>) -> Result<Self> {
        let request = query.request;
        let natural = query.natural.map(|direction| direction == Direction::Descending);
        let parts = query.sort.as_deref().map(sort_order::parts);
        let projection = query.projection.as_ref().filter(|_| !request.return_key).map(|spec| {
            let mut facts = ProjectionFacts::new(spec);
            if request.projection.as_doc().is_empty() {
                facts.required = None;
            }
            (facts, Arc::clone(spec))
        });
        let compiled = projection.as_ref().and_then(|(_, spec)| spec.projection.as_ref());
        let mut reads_sort_key =
            compiled.is_some_and(|projection| projection.metadata().contains("sortKey"));
        reads_sort_key |= request.return_key && !sort_keys(request).is_empty();
        if reads_sort_key && !request.of_pipeline && request.sort.as_doc().is_empty() {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        let sort = parts.flatten();
        let reads_search = query.reads_metadata || query.reads_search();
        Ok(Finish {
            query,
            request,
            collation,
            sort,
            natural,
            projection,
            reads_sort_key,
            reads_search,
            buckets: None,
        })
    }

    pub fn sorts(&self) -> bool {
        self.query.sort.is_some()
    }

    /// Returns true if the documents may be read in any order, without an index that `min` or `max` names.
    pub fn takes_any_order(&self) -> bool {
        let bounds = [&self.request.min, &self.request.max];
        !self.sorts()
            && self.natural.is_none()
            && bounds.iter().all(|bound| bound.as_doc().is_empty())
    }

    pub fn id_hack(&self, collection: &Arc<Collection>, id: ValueBuf) -> Node {
        let node = Node::IdHack { collection: Arc::clone(collection), id };
        match &self.projection {
            Some((facts, spec)) => self.projected(node, facts, spec),
            None => node,
        }
    }

    /// Returns the documents whose `_id`s are the keys of a join; `None` if the keys of `scan`, which would find the
    /// same, are enough for the projection.
    pub fn id_lookups(&self, scan: IndexScan) -> Option<Node> {
        if self.projection.as_ref().is_some_and(|(facts, _)| facts.covered_by(&scan)) {
            return None;
        }
        let node = Node::IdLookups(IdLookups { scan: Arc::new(scan), ids: None });
        Some(match &self.projection {
            Some((facts, spec)) => self.projected(node, facts, spec),
            None => node,
        })
    }

    /// Puts the projection above a node. It goes below a sort if the result is the same: in a find,
    /// or in a pipeline that reads no other fields and keeps all fields of the sort.
    fn projected(&self, node: Node, facts: &ProjectionFacts, spec: &Arc<Reshape>) -> Node {
        let narrows = spec.narrows && self.request.limit == 0;
        match facts.apply(node, spec, !self.request.of_pipeline || narrows) {
            Node::Projection { kind, spec, input } => {
                let input = Box::new(self.with_sort_keys(*input));
                Node::Projection { kind, spec, input }
            }
            other => other,
        }
    }

    /// Adds a node that notes the sort keys of rows, if they are read and no sort below has noted
    /// them.
    fn with_sort_keys(&self, node: Node) -> Node {
        match &self.query.sort {
            Some(pattern) if self.reads_sort_key && node.lacks_sort_keys() => {
                Node::SortKeys { pattern: Arc::clone(pattern), input: Box::new(node) }
            }
            _ => node,
        }
    }

    fn keys_of(&self, node: Node) -> Node {
        let input = Box::new(self.with_sort_keys(node));
        Node::ReturnKey { sort_keys: sort_keys(self.request), input }
    }

    pub fn finish(&self, node: Node) -> Node {
        let mut node = converted(node, self.query.filter.as_deref());
        let mut limited = self.request.limit == 0;
        if let Some(scan) = &self.buckets
            && !matches!(node, Node::Eof)
        {
            node = self.with_buckets(node, BucketScan::clone(scan));
        }
        let is_merged = matches!(&node, Node::Points { order, .. } if *order != PointOrder::Any);
        if self.sorts() && !is_merged {
            let long_keys = has_long_keys(&node);
            let ordered = match &self.sort {
                Some(parts) if !long_keys => {
                    let pattern = self.query.sort.as_ref();
                    pattern.and_then(|pattern| {
                        sort_order::ordered(&node, parts, pattern, self.collation)
                    })
                }
                _ => None,
            };
            node = match ordered {
                Some(ordered) => ordered,
                None => match self.sorted(node) {
                    sorted @ Node::Sort { .. } => {
                        limited = true;
                        sorted
                    }
                    other => other,
                },
            };
        }
        if self.request.skip > 0 {
            node = Node::Skip { count: self.request.skip, input: Box::new(node) };
        }
        node = match &self.projection {
            _ if self.request.return_key => self.keys_of(node),
            Some((facts, spec)) => self.projected(node, facts, spec),
            None => node.fetched(),
        };
        if !limited {
            node = Node::Limit { count: self.request.limit, input: Box::new(node) };
        }
        node
    }

    /// Returns the points of the node and those of buckets, in the order that the request asks for if the buckets can be
    /// read in it. The natural order is that of the time.
    fn with_buckets(&self, node: Node, mut scan: BucketScan) -> Node {
        let order = match (&self.query.sort, &node) {
            (Some(_), _) => self.point_order(&scan),
            (None, Node::ClusteredScan { scan, .. }) if !self.request.of_pipeline => {
                PointOrder::Time { backward: scan.backward }
            }
            (None, _) => PointOrder::Any,
        };
        let rows = match (&self.sort, &self.query.sort) {
            (Some(parts), Some(pattern)) if order != PointOrder::Any => {
                let ordered = match has_long_keys(&node) {
                    true => None,
                    false => sort_order::ordered(&node, parts, pattern, self.collation),
                };
                ordered.unwrap_or_else(|| self.sorted(node)).fetched()
            }
            _ => node.fetched(),
        };
        scan.fields = self.fields_of(&scan);
        scan.order = order;
        let pattern = self.query.sort.clone().filter(|_| order != PointOrder::Any);
        Node::Points { order, pattern, inputs: vec![rows, Node::Buckets(Box::new(scan))] }
    }

    /// Returns the top-level fields of points that are read; `None` if any may be.
    fn fields_of(&self, scan: &BucketScan) -> Option<Vec<String>> {
        let (facts, _) = self.projection.as_ref().filter(|(_, spec)| spec.narrows)?;
        let series = scan.collection.options.time_series()?;
        let mut fields = BTreeSet::from([series.time_field.as_str()]);
        fields.extend(facts.top_fields()?);
        if self.query.sort.is_some() {
            let parts = self.sort.as_ref()?;
            fields.extend(parts.iter().map(|part| first_component(&part.path)));
        }
        if let Some(rest) = &scan.rest {
            if !rest.reads_only_paths() {
                return None;
            }
            rest.visit_paths(&mut |node| {
                fields.insert(first_component(node.path.as_str()));
            });
        }
        Some(fields.into_iter().map(str::to_owned).collect())
    }

    /// Returns the order of the sort if the buckets can be read in it: by the time, or by the meta value and the time.
    /// The buckets are in the order of the bytes of their meta values, not in that of a collation.
    fn point_order(&self, scan: &BucketScan) -> PointOrder {
        let Some(series) = scan.collection.options.time_series() else { return PointOrder::Any };
        let is_meta = |part: &SortPart| {
            series.meta_field.as_ref() == Some(&part.path) && self.collation.is_none()
        };
        match self.sort.as_deref() {
            Some([time]) if time.path == series.time_field => {
                PointOrder::Time { backward: time.descending }
            }
            Some([meta]) if is_meta(meta) => {
                PointOrder::Sources { backward: meta.descending, newest_first: false }
            }
            Some([meta, time]) if is_meta(meta) && time.path == series.time_field => {
                PointOrder::Sources { backward: meta.descending, newest_first: time.descending }
            }
            _ => PointOrder::Any,
        }
    }

    fn sorted(&self, node: Node) -> Node {
        let by_key = match (&self.sort, node.only_index()) {
            (Some(parts), Some(scan)) => parts.iter().all(|part| scan.gives(&part.path)),
            _ => false,
        };
        let input = if by_key { node } else { node.fetched() };
        let by_metadata = self.query.sort.as_ref().is_some_and(|sort| sort.reads_metadata());
        let simple = input.gives_documents() && !self.request.return_key && !by_metadata;
        let limit = match self.request.limit {
            0 => 0,
            limit => limit.saturating_add(self.request.skip),
        };
        match &self.query.sort {
            Some(pattern) => {
                let presorted = pattern
                    .only_metadata()
                    .is_some_and(|kind| search::order(&input).is_some_and(|order| order == kind));
                let pattern = Arc::clone(pattern);
                Node::Sort { pattern, presorted, limit, simple, input: Box::new(input) }
            }
            None => input,
        }
    }
}

fn first_component(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Returns the fields that a projection fills with the sort key of a document.
fn sort_keys(request: &FindRequest) -> Vec<String> {
    let is_sort_key = |value: Value<'_>| {
        let kind = value.as_document().and_then(|doc| doc.get("$meta"));
        matches!(kind, Some(Value::String("sortKey")))
    };
    let fields = request.projection.as_doc().fields();
    fields.filter(|(_, value)| is_sort_key(*value)).map(|(name, _)| name.to_owned()).collect()
}

fn has_long_keys(node: &Node) -> bool {
    let mut long = false;
    node.for_each_scan(&mut |scan| long |= scan.index.has_long_keys());
    long
}
