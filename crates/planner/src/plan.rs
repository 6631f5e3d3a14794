//! The plan: a tree of stages with MongoDB's names, and facts about the request.

mod buckets;
mod groups;
mod id_lookups;
mod index_scan;
mod inner;
mod join_cost;
mod rows;
mod search;

pub use buckets::{BucketScan, PointOrder};
pub use id_lookups::IdLookups;
pub use index_scan::{IndexScan, KeyRange, KeyedField};
pub(crate) use inner::Source;
pub use inner::{Foreign, ForeignKey, Inner};
pub use join_cost::LookedUp;
pub use rows::{BranchHead, Kept, MetadataRead, RowNeeds};
pub use search::SearchNode;

use crate::request::{Hint, WriteKind};
use quire_catalog::{AllowedIndex, Collection, IndexFilter, QuerySettings};
use quire_document::{DocBuf, ValueBuf};
use quire_mql::collation::Collation;
use quire_mql::filter::Node as Condition;
use quire_mql::projection::Projection;
use quire_mql::sort::SortPattern;
use quire_mql::stage::{Served, Stage, StageBody};
use std::fmt;
use std::sync::Arc;

/// The plan of a request.
#[derive(Clone)]
pub struct Plan {
    /// The full name of the collection, `database.collection`.
    pub namespace: String,
    /// The filter, with the conditions that its expressions imply; `None` for a lookup by `_id`
    /// that was planned without it.
    pub filter: Option<Arc<Condition>>,
    /// The root node, which returns the results.
    pub root: Node,
    /// The same plan for the documents with the keys of a join, which [`Keys::bind`](crate::Keys::bind) adds; `None` if
    /// the plan reads no keys of a join.
    pub by_keys: Option<Box<Node>>,
    /// The candidates that were not chosen.
    pub rejected: Vec<Node>,
    /// True if the collection does not exist.
    pub missing: bool,
    /// The sort as it was written.
    pub sort: DocBuf,
    /// The projection as it was written.
    pub projection: DocBuf,
    /// True for the plan of a pipeline.
    pub of_pipeline: bool,
    /// The collation of the request; `None` compares bytes.
    pub collation: Option<Arc<Collation>>,
    /// The index filter that restricts the choice of indexes.
    pub index_filter: Option<Arc<IndexFilter>>,
    /// The query settings of the request.
    pub settings: Option<Arc<QuerySettings>>,
    /// The index that the request demands.
    pub hint: Option<Hint>,
    /// True if the choice comes from the plan cache.
    pub from_cache: bool,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("namespace", &self.namespace)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Returns the plan of a pipeline over documents from outside of the collections. Its root must
    /// still be set.
    pub(crate) fn of_feed(namespace: &str) -> Self {
        Plan {
            namespace: namespace.to_owned(),
            filter: None,
            root: Node::Eof,
            by_keys: None,
            rejected: Vec::new(),
            missing: false,
            sort: DocBuf::new(),
            projection: DocBuf::new(),
            of_pipeline: false,
            collation: None,
            index_filter: None,
            settings: None,
            hint: None,
            from_cache: false,
        }
    }

    /// Returns the indexes that query settings allow in the collection; `None` for all.
    pub(crate) fn allowed_by_settings(&self) -> Option<&[AllowedIndex]> {
        self.settings.as_ref()?.allowed(&self.namespace)
    }

    /// Returns the part of the tree below all stages of a pipeline: the part that a `find` could
    /// have.
    pub fn cursor(&self) -> &Node {
        self.root.below_stages()
    }

    /// Returns the stages above [`Plan::cursor`], in the order of the pipeline.
    pub fn stages(&self) -> Vec<&Stage> {
        self.root.stages().into_iter().map(|(stage, _)| stage).collect()
    }
}

/// A stage and its inputs.
#[derive(Debug, Clone)]
pub enum Node {
    /// A stage of a pipeline.
    Stage {
        /// The stage of the pipeline.
        stage: Stage,
        /// The documents that go in.
        input: Box<Node>,
        /// The plans of the pipelines inside of the stage.
        inner: Inner,
        /// The metadata that the stage reads.
        reads: MetadataRead,
    },
    /// Documents from outside of the collections. The caller that opens the plan provides them.
    Feed {
        /// The name of their source, such as the stage `$currentOp`.
        name: &'static str,
    },
    /// One empty document, for a `$documents`.
    OneDocument,
    /// Documents about the server, at the beginning of a pipeline inside of a stage.
    Served(Arc<Served>),
    /// No rows: the collection does not exist or nothing can match.
    Eof,
    /// All documents in natural order.
    CollScan {
        /// The collection that it reads.
        collection: Arc<Collection>,
        /// The documents to keep.
        filter: Option<Condition>,
        /// True to read the newest document first.
        backward: bool,
        /// True to go on with the documents that are inserted later.
        tails: bool,
    },
    /// The documents of a clustered collection in the order of `_id`, which is their natural order.
    ClusteredScan {
        /// The part of the clustered index to visit.
        scan: Box<IndexScan>,
        /// The documents to keep.
        filter: Option<Condition>,
    },
    /// The points of the buckets of a time-series collection.
    Buckets(Box<BucketScan>),
    /// The points of a time-series collection: those of its records and those of its buckets.
    Points {
        /// The order of both inputs, in which they are merged.
        order: PointOrder,
        /// The sort that asked for the order; `None` for the natural order, and for none.
        pattern: Option<Arc<SortPattern>>,
        /// The records, then the buckets.
        inputs: Vec<Node>,
    },
    /// Random documents, for a `$sample` (`MULTI_ITERATOR` in MongoDB).
    RandomPicks {
        /// The collection that it reads.
        collection: Arc<Collection>,
        /// The number of documents.
        size: u64,
        /// A scan of all documents, used if too many draws find none.
        scan: Box<Node>,
    },
    /// One document by its `_id`.
    IdHack {
        /// The collection that it reads.
        collection: Arc<Collection>,
        /// The `_id` of the document.
        id: ValueBuf,
    },
    /// The documents whose `_id`s are the keys of a join.
    IdLookups(IdLookups),
    /// Keys of an index.
    IndexScan(Box<IndexScan>),
    /// The number of keys in one range of an index.
    CountScan(Box<IndexScan>),
    /// The first keys for each value of the index's leading fields up to `field`.
    DistinctScan {
        /// The scan whose keys are skipped.
        scan: Box<IndexScan>,
        /// The field whose values are wanted.
        field: usize,
        /// True to also return a key for the documents without the field, which are among those
        /// where it is null.
        missing_too: bool,
        /// The number of keys for each value.
        each: u64,
    },
    /// The documents of index keys.
    Fetch {
        /// The documents to keep.
        filter: Option<Condition>,
        /// The keys to fetch.
        input: Box<Node>,
    },
    /// The results of a search in its order, with their metadata and documents.
    Gather {
        /// The search that it belongs to.
        search: Arc<SearchNode>,
        /// The scans with which it begins.
        inputs: Vec<Node>,
    },
    /// The documents of a search that pass its test.
    Check {
        /// The search that it belongs to.
        search: Arc<SearchNode>,
        /// The documents that its scans found.
        input: Box<Node>,
    },
    /// The records of all inputs, each once.
    Or {
        /// The nodes whose rows are united.
        inputs: Vec<Node>,
    },
    /// The records that all inputs return. Only shown among the rejected plans.
    AndSorted {
        /// Scans of one point each.
        inputs: Vec<Node>,
    },
    /// The merged rows of sorted inputs, each record once.
    SortMerge {
        /// The order of the rows.
        pattern: Arc<SortPattern>,
        /// The nodes whose rows are united.
        inputs: Vec<Node>,
    },
    /// Reads all rows of its input, then returns them in order.
    Sort {
        /// The order of the rows.
        pattern: Arc<SortPattern>,
        /// True if its input is a search that gives the rows in this order already, so that a limit
        /// ends the search.
        presorted: bool,
        /// The number of rows to keep; 0 for all.
        limit: u64,
        /// True if its input is whole documents without other data of a row.
        simple: bool,
        /// The rows to sort.
        input: Box<Node>,
    },
    /// The rows of its input except the first `count`.
    Skip {
        /// The number of rows to drop.
        count: u64,
        /// The input rows.
        input: Box<Node>,
    },
    /// The first `count` rows of its input.
    Limit {
        /// The largest number of rows.
        count: u64,
        /// The input rows.
        input: Box<Node>,
    },
    /// Documents with a subset of their fields, or with computed ones.
    Projection {
        /// The cost class of the projection.
        kind: ProjectionKind,
        /// The projection of each row.
        spec: Arc<Reshape>,
        /// The documents to project.
        input: Box<Node>,
    },
    /// Notes the sort key of each row, for `$meta: "sortKey"` above an order that comes from an
    /// index. Explain does not show it.
    SortKeys {
        /// The order of the rows.
        pattern: Arc<SortPattern>,
        /// Rows in that order.
        input: Box<Node>,
    },
    /// Index keys instead of documents.
    ReturnKey {
        /// The fields that a projection adds with `{$meta: "sortKey"}`.
        sort_keys: Vec<String>,
        /// The input rows.
        input: Box<Node>,
    },
    /// A rooted `$or` whose branches were planned separately.
    Subplan {
        /// The input rows.
        input: Box<Node>,
    },
    /// The number of rows of its input.
    Count {
        /// The number of rows to drop first.
        skip: u64,
        /// The largest number to count; 0 for all.
        limit: u64,
        /// The rows to count.
        input: Box<Node>,
    },
    /// The number of documents according to the collection's counters.
    RecordStoreFastCount {
        /// The collection that it counts.
        collection: Arc<Collection>,
        /// The number of documents to drop first.
        skip: u64,
        /// The largest number to count; 0 for all.
        limit: u64,
    },
    /// The write of the documents that its query finds; only in explain.
    Write {
        /// The kind of the write.
        kind: WriteKind,
        /// The plan of its query.
        input: Box<Node>,
    },
}

/// A compiled projection of a plan.
#[derive(Clone, Debug)]
pub struct Reshape {
    /// The projection as explain shows it.
    pub shown: DocBuf,
    /// The projection to execute. `None` if none is executed, because the readers of the rows pick
    /// the fields that they need; the node then only says which fields are read.
    pub projection: Option<Arc<Projection>>,
    /// True to add `$recordId` to each document.
    pub show_record_id: bool,
    /// True if a document without a sort has an empty sort key, as in a find.
    pub empty_sort_key: bool,
    /// True if it only removes fields that no stage above reads.
    pub narrows: bool,
    /// True if the readers of the rows take only the values at the kept paths, so that `{a: {}}` and
    /// `{}` are the same to them.
    pub values_only: bool,
}

/// The cost class of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionKind {
    /// Keeps or removes whole top-level fields.
    Simple,
    /// Keeps whole top-level fields that are all in the index key.
    Covered,
    /// Any other projection.
    Default,
}

impl Node {
    /// Returns the stages of a pipeline from here down to the first other node, with the plans inside
    /// of them, in the order of the pipeline.
    pub fn stages(&self) -> Vec<(&Stage, &Inner)> {
        let mut stages = Vec::new();
        let mut node = self;
        while let Node::Stage { stage, inner, input, .. } = node {
            stages.push((stage, inner));
            node = input;
        }
        stages.reverse();
        stages
    }

    /// Returns the node below all stages of a pipeline.
    pub fn below_stages(&self) -> &Node {
        let mut node = self;
        while let Node::Stage { input, .. } = node {
            node = input;
        }
        node
    }

    /// Returns its inputs.
    pub fn inputs(&self) -> &[Node] {
        match self {
            Node::Eof
            | Node::OneDocument
            | Node::Served(_)
            | Node::Feed { .. }
            | Node::CollScan { .. }
            | Node::ClusteredScan { .. }
            | Node::Buckets(_)
            | Node::RandomPicks { .. }
            | Node::IdHack { .. }
            | Node::IdLookups(_)
            | Node::IndexScan(_)
            | Node::CountScan(_)
            | Node::DistinctScan { .. }
            | Node::RecordStoreFastCount { .. } => &[],
            Node::Or { inputs }
            | Node::Points { inputs, .. }
            | Node::AndSorted { inputs }
            | Node::Gather { inputs, .. }
            | Node::SortMerge { inputs, .. } => inputs,
            Node::Stage { input, .. }
            | Node::Fetch { input, .. }
            | Node::Check { input, .. }
            | Node::Sort { input, .. }
            | Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::SortKeys { input, .. }
            | Node::ReturnKey { input, .. }
            | Node::Subplan { input }
            | Node::Count { input, .. }
            | Node::Write { input, .. } => std::slice::from_ref(&**input),
        }
    }

    /// Returns the collection whose records it returns; `None` if it reads none.
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        match self {
            Node::CollScan { collection, .. }
            | Node::RandomPicks { collection, .. }
            | Node::IdHack { collection, .. }
            | Node::RecordStoreFastCount { collection, .. } => Some(collection),
            Node::IndexScan(scan)
            | Node::CountScan(scan)
            | Node::ClusteredScan { scan, .. }
            | Node::DistinctScan { scan, .. } => Some(&scan.collection),
            Node::IdLookups(found) => Some(&found.scan.collection),
            Node::Buckets(scan) => Some(&scan.collection),
            Node::Gather { search, .. } | Node::Check { search, .. } => Some(&search.collection),
            other => other.inputs().iter().find_map(Node::collection),
        }
    }

    /// Returns true for a scan of all documents of a collection in natural order.
    pub fn scans_collection(&self) -> bool {
        match self {
            Node::CollScan { .. } => true,
            Node::ClusteredScan { scan, .. } => scan.is_whole(),
            _ => false,
        }
    }

    /// Returns its only input, except that of a search, which is planned as a whole.
    pub(crate) fn input_mut(&mut self) -> Option<&mut Node> {
        match self {
            Node::Stage { input, .. }
            | Node::Fetch { input, .. }
            | Node::Sort { input, .. }
            | Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::SortKeys { input, .. }
            | Node::ReturnKey { input, .. }
            | Node::Subplan { input }
            | Node::Count { input, .. }
            | Node::Write { input, .. } => Some(input),
            _ => None,
        }
    }

    /// Returns MongoDB's name of the stage.
    pub fn name(&self) -> &'static str {
        match self {
            Node::Stage { stage, .. } => stage.name(),
            Node::Feed { name } => name,
            Node::OneDocument => "QUEUE",
            Node::Served(stage) => stage.name,
            Node::Eof => "EOF",
            Node::CollScan { .. } => "COLLSCAN",
            Node::ClusteredScan { scan, .. } if scan.is_whole() => "COLLSCAN",
            Node::ClusteredScan { .. } => "CLUSTERED_IXSCAN",
            Node::Buckets(_) => "UNPACK_TS_BUCKET",
            Node::Points { order: PointOrder::Any, .. } => "UNION",
            Node::Points { .. } => "SORT_MERGE",
            Node::RandomPicks { .. } => "MULTI_ITERATOR",
            Node::IdHack { .. } | Node::IdLookups(_) => "IDHACK",
            Node::IndexScan(_) => "IXSCAN",
            Node::CountScan(_) => "COUNT_SCAN",
            Node::DistinctScan { .. } => "DISTINCT_SCAN",
            Node::Fetch { .. } => "FETCH",
            Node::Gather { search, .. } => search.method.gather_stage(),
            Node::Check { search, .. } => search.method.check_stage().unwrap_or("FETCH"),
            Node::Or { .. } => "OR",
            Node::AndSorted { .. } => "AND_SORTED",
            Node::SortMerge { .. } => "SORT_MERGE",
            Node::Sort { .. } => "SORT",
            Node::Skip { .. } => "SKIP",
            Node::Limit { .. } => "LIMIT",
            Node::Projection { kind, .. } => match kind {
                ProjectionKind::Simple => "PROJECTION_SIMPLE",
                ProjectionKind::Covered => "PROJECTION_COVERED",
                ProjectionKind::Default => "PROJECTION_DEFAULT",
            },
            Node::SortKeys { .. } => "SORT_KEY_GENERATOR",
            Node::ReturnKey { .. } => "RETURN_KEY",
            Node::Subplan { .. } => "SUBPLAN",
            Node::Count { .. } => "COUNT",
            Node::RecordStoreFastCount { .. } => "RECORD_STORE_FAST_COUNT",
            Node::Write { kind, .. } if kind.removes() => "DELETE",
            Node::Write { .. } => "UPDATE",
        }
    }

    /// Returns true if no operator runs for the node itself: a projection that only says which
    /// fields are read, and the sort keys, which have no statistics.
    pub fn is_idle(&self) -> bool {
        match self {
            Node::Projection { spec, .. } => spec.projection.is_none(),
            Node::SortKeys { .. } => true,
            _ => false,
        }
    }

    /// Returns true if it returns whole documents and not only index keys.
    pub fn gives_documents(&self) -> bool {
        match self {
            Node::IndexScan(_) | Node::CountScan(_) | Node::DistinctScan { .. } => false,
            Node::Stage { .. }
            | Node::Feed { .. }
            | Node::Fetch { .. }
            | Node::Gather { .. }
            | Node::Check { .. }
            | Node::CollScan { .. }
            | Node::ClusteredScan { .. }
            | Node::Buckets(_)
            | Node::IdHack { .. }
            | Node::IdLookups(_)
            | Node::OneDocument
            | Node::Served(_)
            | Node::Eof => true,
            other => other.inputs().iter().all(Node::gives_documents),
        }
    }

    /// Returns true if it returns nothing before it has read its whole input.
    pub fn blocks(&self) -> bool {
        matches!(self, Node::Sort { presorted: false, .. })
            || self.inputs().iter().any(Node::blocks)
    }

    /// Returns true if no sort has noted the sort keys of its rows: not of all of them, if only one input was sorted.
    pub(crate) fn lacks_sort_keys(&self) -> bool {
        match self {
            Node::Points { .. } => true,
            Node::Sort { .. } => !self.blocks(),
            Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::Fetch { input, .. }
            | Node::Subplan { input } => input.lacks_sort_keys(),
            other => !other.blocks(),
        }
    }

    /// Calls `visit` for every index scan below, from left to right.
    pub fn for_each_scan<'n>(&'n self, visit: &mut impl FnMut(&'n IndexScan)) {
        match self {
            Node::IndexScan(scan)
            | Node::CountScan(scan)
            | Node::ClusteredScan { scan, .. }
            | Node::DistinctScan { scan, .. } => visit(scan),
            Node::IdLookups(found) => visit(&found.scan),
            other => other.inputs().iter().for_each(|input| input.for_each_scan(visit)),
        }
    }

    /// Returns the index scan that all its rows come from, if there is only one index and no fetch.
    pub fn only_index(&self) -> Option<&IndexScan> {
        if self.gives_documents() || self.fetches() {
            return None;
        }
        let (mut first, mut same): (Option<&IndexScan>, bool) = (None, true);
        self.for_each_scan(&mut |scan| match first {
            None => first = Some(scan),
            Some(other) => {
                // Another scan of an index with sort keys can have strings where this one has none.
                same &= Arc::ptr_eq(&other.keys, &scan.keys) && scan.keys.collation().is_none();
            }
        });
        first.filter(|_| same)
    }

    fn fetches(&self) -> bool {
        matches!(
            self,
            Node::Fetch { .. }
                | Node::Gather { .. }
                | Node::CollScan { .. }
                | Node::ClusteredScan { .. }
                | Node::Buckets(_)
                | Node::RandomPicks { .. }
                | Node::IdLookups(_)
        ) || self.inputs().iter().any(Node::fetches)
    }

    /// Returns a node that fetches the documents of the keys.
    #[must_use]
    pub fn fetched(self) -> Node {
        if self.gives_documents() {
            self
        } else {
            Node::Fetch { filter: None, input: Box::new(self) }
        }
    }
}
