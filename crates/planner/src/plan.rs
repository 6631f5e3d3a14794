//! The plan: a tree of stages under MongoDB's names, and what is known about the request.

use quire_catalog::key::{Intervals, KeySpec};
use quire_catalog::{Index, MultikeyPaths};
use quire_document::{DocBuf, ValueBuf};
use quire_mql::filter::Node as Condition;
use std::sync::Arc;

/// How a request will be answered.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `database.collection`.
    pub namespace: String,
    /// The filter, with what its expressions imply; `None` for a lookup by `_id` that was planned
    /// without it.
    pub filter: Option<Condition>,
    /// The stages.
    pub root: Node,
    /// What was considered and not chosen.
    pub rejected: Vec<Node>,
    /// True if the collection does not exist.
    pub missing: bool,
    /// The sort as written.
    pub sort: DocBuf,
    /// The projection as written.
    pub projection: DocBuf,
    /// The names of the stages that follow in a pipeline, as far as they shape its plan.
    pub stages: Vec<&'static str>,
}

/// A scan of one index.
#[derive(Debug, Clone)]
pub struct IndexScan {
    /// The index.
    pub index: Arc<Index>,
    /// What the scanned keys hold.
    pub keys: Arc<KeySpec>,
    /// The array paths that the plan relies on.
    pub multikey: MultikeyPaths,
    /// What to visit, for each field of the index.
    pub bounds: Vec<Intervals>,
    /// `min` and `max`, in place of `bounds`.
    pub range: Option<KeyRange>,
    /// Walk the index from its end.
    pub backward: bool,
    /// A test of the key's values.
    pub filter: Option<Condition>,
}

/// The part of an index between two whole keys, in the index's own order.
#[derive(Debug, Clone)]
pub struct KeyRange {
    /// The first key that belongs to it: one value a field.
    pub start: Option<DocBuf>,
    /// The first key that does not belong to it any more.
    pub end: Option<DocBuf>,
}

/// A stage and what it reads from.
#[derive(Debug, Clone)]
pub enum Node {
    /// Nothing: the collection does not exist or nothing can match.
    Eof,
    /// All documents in their natural order.
    CollScan {
        /// Keeps what matches.
        filter: Option<Condition>,
        /// Newest first.
        backward: bool,
    },
    /// Documents at random, for a `$sample` (`MULTI_ITERATOR` in MongoDB).
    RandomPicks {
        /// How many.
        size: u64,
        /// What gives all of them, if too many draws meet none.
        scan: Box<Node>,
    },
    /// One document by its `_id`.
    IdHack {
        /// The `_id`.
        id: ValueBuf,
    },
    /// Keys of an index.
    IndexScan(Box<IndexScan>),
    /// Keys of one range of an index, only counted.
    CountScan(Box<IndexScan>),
    /// The first key for each value of the index's leading fields up to `field`.
    DistinctScan {
        /// What to visit.
        scan: Box<IndexScan>,
        /// The field whose values are wanted.
        field: usize,
    },
    /// The documents of keys.
    Fetch {
        /// Keeps what matches.
        filter: Option<Condition>,
        /// Gives the keys.
        input: Box<Node>,
    },
    /// Each record that some input gives, once.
    Or {
        /// The branches.
        inputs: Vec<Node>,
    },
    /// Records that all inputs give. Never chosen, only shown among the rejected plans.
    AndSorted {
        /// Scans of one point each.
        inputs: Vec<Node>,
    },
    /// Inputs that are sorted, merged; each record once.
    SortMerge {
        /// The order.
        pattern: DocBuf,
        /// The branches.
        inputs: Vec<Node>,
    },
    /// Everything, sorted.
    Sort {
        /// The order.
        pattern: DocBuf,
        /// Only so many; 0 for all.
        limit: u64,
        /// Its input are whole documents and nothing else.
        simple: bool,
        /// What to sort.
        input: Box<Node>,
    },
    /// Without the first so many.
    Skip {
        /// How many.
        count: u64,
        /// From what.
        input: Box<Node>,
    },
    /// The first so many.
    Limit {
        /// How many.
        count: u64,
        /// Of what.
        input: Box<Node>,
    },
    /// Documents with only some fields, or others.
    Projection {
        /// How much work it is.
        kind: ProjectionKind,
        /// The projection as written.
        spec: DocBuf,
        /// Of what.
        input: Box<Node>,
    },
    /// Index keys in place of documents.
    ReturnKey {
        /// Fields that a projection adds with `{$meta: "sortKey"}`.
        sort_keys: Vec<String>,
        /// Of what.
        input: Box<Node>,
    },
    /// A rooted `$or` whose branches were planned one by one.
    Subplan {
        /// The plan.
        input: Box<Node>,
    },
    /// How many there are.
    Count {
        /// Without the first so many.
        skip: u64,
        /// At most so many; 0 for all.
        limit: u64,
        /// Of what.
        input: Box<Node>,
    },
    /// The number of documents, from the collection's counters.
    RecordStoreFastCount,
    /// What an `update` does with what it finds; only in explain.
    Update {
        /// The plan of its query.
        input: Box<Node>,
    },
    /// What a `delete` does with what it finds; only in explain.
    Delete {
        /// The plan of its query.
        input: Box<Node>,
    },
}

/// How much work a projection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectionKind {
    /// Whole top-level fields, kept or left out.
    Simple,
    /// Whole top-level fields, all of them in the index key.
    Covered,
    /// Everything else.
    Default,
}

impl Node {
    /// What it reads from.
    pub fn inputs(&self) -> &[Node] {
        match self {
            Node::Eof
            | Node::CollScan { .. }
            | Node::RandomPicks { .. }
            | Node::IdHack { .. }
            | Node::IndexScan(_)
            | Node::CountScan(_)
            | Node::DistinctScan { .. }
            | Node::RecordStoreFastCount => &[],
            Node::Or { inputs } | Node::AndSorted { inputs } | Node::SortMerge { inputs, .. } => {
                inputs
            }
            Node::Fetch { input, .. }
            | Node::Sort { input, .. }
            | Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::ReturnKey { input, .. }
            | Node::Subplan { input }
            | Node::Count { input, .. }
            | Node::Update { input }
            | Node::Delete { input } => std::slice::from_ref(&**input),
        }
    }

    /// The one stage that it reads from.
    pub(crate) fn input_mut(&mut self) -> Option<&mut Node> {
        match self {
            Node::Fetch { input, .. }
            | Node::Sort { input, .. }
            | Node::Skip { input, .. }
            | Node::Limit { input, .. }
            | Node::Projection { input, .. }
            | Node::ReturnKey { input, .. }
            | Node::Subplan { input }
            | Node::Count { input, .. }
            | Node::Update { input }
            | Node::Delete { input } => Some(input),
            _ => None,
        }
    }

    /// MongoDB's name of the stage.
    pub fn name(&self) -> &'static str {
        match self {
            Node::Eof => "EOF",
            Node::CollScan { .. } => "COLLSCAN",
            Node::RandomPicks { .. } => "MULTI_ITERATOR",
            Node::IdHack { .. } => "IDHACK",
            Node::IndexScan(_) => "IXSCAN",
            Node::CountScan(_) => "COUNT_SCAN",
            Node::DistinctScan { .. } => "DISTINCT_SCAN",
            Node::Fetch { .. } => "FETCH",
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
            Node::ReturnKey { .. } => "RETURN_KEY",
            Node::Subplan { .. } => "SUBPLAN",
            Node::Count { .. } => "COUNT",
            Node::RecordStoreFastCount => "RECORD_STORE_FAST_COUNT",
            Node::Update { .. } => "UPDATE",
            Node::Delete { .. } => "DELETE",
        }
    }

    /// True if it gives whole documents, not only index keys.
    pub fn gives_documents(&self) -> bool {
        match self {
            Node::IndexScan(_) | Node::CountScan(_) | Node::DistinctScan { .. } => false,
            Node::Fetch { .. } | Node::CollScan { .. } | Node::IdHack { .. } | Node::Eof => true,
            other => other.inputs().iter().all(Node::gives_documents),
        }
    }

    /// True if it gives nothing before it has seen everything.
    pub fn blocks(&self) -> bool {
        matches!(self, Node::Sort { .. }) || self.inputs().iter().any(Node::blocks)
    }

    /// Calls `visit` for every index scan below, from left to right.
    pub fn for_each_scan<'n>(&'n self, visit: &mut impl FnMut(&'n IndexScan)) {
        match self {
            Node::IndexScan(scan) | Node::CountScan(scan) | Node::DistinctScan { scan, .. } => {
                visit(scan);
            }
            other => other.inputs().iter().for_each(|input| input.for_each_scan(visit)),
        }
    }

    /// The index whose keys it gives, if all of them come from one and no document was fetched.
    pub fn only_index(&self) -> Option<&IndexScan> {
        if self.gives_documents() || self.fetches() {
            return None;
        }
        let (mut first, mut same): (Option<&IndexScan>, bool) = (None, true);
        self.for_each_scan(&mut |scan| match first {
            None => first = Some(scan),
            Some(other) => same &= other.index.id == scan.index.id,
        });
        first.filter(|_| same)
    }

    fn fetches(&self) -> bool {
        matches!(self, Node::Fetch { .. } | Node::CollScan { .. } | Node::RandomPicks { .. })
            || self.inputs().iter().any(Node::fetches)
    }

    /// Documents in place of keys.
    #[must_use]
    pub fn fetched(self) -> Node {
        if self.gives_documents() {
            self
        } else {
            Node::Fetch { filter: None, input: Box::new(self) }
        }
    }
}

impl IndexScan {
    /// The whole index.
    pub fn whole(index: &Arc<Index>, multikey: MultikeyPaths) -> Self {
        IndexScan {
            index: Arc::clone(index),
            keys: Arc::clone(&index.keys),
            multikey,
            bounds: vec![Intervals::all(); index.keys.fields().len()],
            range: None,
            backward: false,
            filter: None,
        }
    }

    /// True if a field of its key is walked from larger to smaller values.
    pub fn is_reversed(&self, field: usize) -> bool {
        self.keys.is_descending(field) != self.backward
    }

    /// The field of the key with this path.
    pub fn field(&self, path: &str) -> Option<usize> {
        self.keys.field(path)
    }

    /// Returns true if the scanned keys give back the value of `field` as it is in the document.
    pub fn gives_value(&self, field: usize) -> bool {
        let all = Intervals::all();
        let intervals = match &self.range {
            None => self.bounds.get(field).unwrap_or(&all),
            Some(_) => &all,
        };
        !self.multikey.field(field)
            && !self.index.has_long_keys()
            && self.keys.gives_value(field, intervals)
    }

    /// True if one range of keys is all that it visits: points, then one interval, then
    /// everything.
    pub fn is_one_range(&self) -> bool {
        let mut bounds = self.bounds.iter().skip_while(|intervals| intervals.is_point());
        bounds.next().is_none_or(|intervals| intervals.0.len() == 1)
            && bounds.all(Intervals::is_all)
    }
}
