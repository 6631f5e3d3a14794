//! Typed requests. The commands parse and check every field; the planner and the executor read
//! these. Filters, projections and the like are still BSON; they are compiled once, when the
//! request is planned.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_document::{Doc, DocBuf, ValueBuf};
use quire_mql::collation::{AskedCollation, Collation};
use quire_mql::stage::ViewStages;

/// The index, or the scan direction of the collection, that a request demands.
#[derive(Debug, Clone, PartialEq)]
pub enum Hint {
    /// The index with this name.
    Name(String),
    /// The index with this key pattern.
    Pattern(DocBuf),
    /// `{$natural: 1}` (true) or `{$natural: -1}` (false).
    Natural(bool),
}

/// The arguments of a `find` that the plan depends on.
#[derive(Debug, Clone, Default)]
pub struct FindRequest {
    /// The full name of the collection, `database.collection`.
    pub namespace: String,
    /// The filter; empty matches everything.
    pub filter: DocBuf,
    /// The projection; empty returns whole documents.
    pub projection: DocBuf,
    /// The sort; empty leaves the order to the plan.
    pub sort: DocBuf,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The number of documents to skip.
    pub skip: u64,
    /// The largest number of documents to return; 0 for all.
    pub limit: u64,
    /// Inclusive lower bound on an index; empty for none.
    pub min: DocBuf,
    /// Exclusive upper bound on an index; empty for none.
    pub max: DocBuf,
    /// True to return index keys instead of documents.
    pub return_key: bool,
    /// True to add `$recordId` to each document.
    pub show_record_id: bool,
    /// The variables of `let`, with unevaluated expressions.
    pub let_vars: DocBuf,
    /// `allowDiskUse`, if the client set it (the default is true).
    pub allow_disk_use: Option<bool>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The client's comment.
    pub comment: Option<ValueBuf>,
    /// True to follow the insertions into a capped collection.
    pub tailable: bool,
    /// True if it is the first part of a pipeline: the projection stays above the sort.
    pub of_pipeline: bool,
    /// The number of random documents to return.
    pub sample: Option<u64>,
}

impl FindRequest {
    /// Returns the search with which another command begins.
    pub fn search(
        namespace: &str,
        filter: &DocBuf,
        hint: Option<&Hint>,
        collation: &AskedCollation,
    ) -> Self {
        FindRequest {
            namespace: namespace.to_owned(),
            filter: filter.clone(),
            hint: hint.cloned(),
            collation: collation.clone(),
            ..FindRequest::default()
        }
    }
}

/// Returns the collation of a request on this collection; `None` is the simple one.
pub fn collation_of<'c>(
    asked: &'c AskedCollation,
    collection: Option<&'c Collection>,
) -> Option<&'c Arc<Collation>> {
    asked.or(collection.and_then(|collection| collection.options.collation()))
}

/// The arguments of an `aggregate` that the plan depends on.
#[derive(Debug, Clone, Default)]
pub struct AggregateRequest {
    /// `database.collection`, or `database.$cmd.aggregate` for a pipeline without a collection.
    pub namespace: String,
    /// The stages, one document each.
    pub pipeline: Vec<DocBuf>,
    /// The source of the documents if they do not come from a collection: the name of a stage that
    /// came before, such as `$currentOp`.
    pub fed_by: Option<&'static str>,
    /// The view that the client named. The pipeline begins with its stages.
    pub view: Option<ViewStages>,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The variables of `let`, with unevaluated expressions.
    pub let_vars: DocBuf,
    /// `allowDiskUse`, if the client set it (the default is true).
    pub allow_disk_use: Option<bool>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The client's comment.
    pub comment: Option<ValueBuf>,
}

/// The arguments of a `count` that the plan depends on.
#[derive(Debug, Clone, Default)]
pub struct CountRequest {
    /// The full name of the collection, `database.collection`.
    pub namespace: String,
    /// The filter; empty matches everything.
    pub filter: DocBuf,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The number of documents to skip.
    pub skip: u64,
    /// The largest number of documents to count; 0 for all (a negative limit counts as its absolute
    /// value).
    pub limit: u64,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The client's comment.
    pub comment: Option<ValueBuf>,
}

/// The arguments of a `distinct` that the plan depends on.
#[derive(Debug, Clone, Default)]
pub struct DistinctRequest {
    /// The full name of the collection, `database.collection`.
    pub namespace: String,
    /// The path whose values are returned.
    pub key: String,
    /// The filter; empty matches everything.
    pub filter: DocBuf,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The client's comment.
    pub comment: Option<ValueBuf>,
}

/// A request that reads, or the reading part of a write.
#[derive(Debug, Clone, Copy)]
pub enum ReadRequest<'r> {
    /// A `find`, or a request that is planned as one.
    Find(&'r FindRequest),
    /// An `aggregate`, with all its stages.
    Aggregate(&'r AggregateRequest),
    /// A `count` of documents.
    Count(&'r CountRequest),
    /// A `distinct` over one path.
    Distinct(&'r DistinctRequest),
    /// The query of an update, a delete or a findAndModify, with the kind of the write. Nothing is
    /// written.
    Write(&'r FindRequest, WriteKind),
}

impl<'r> From<&'r FindRequest> for ReadRequest<'r> {
    fn from(request: &'r FindRequest) -> Self {
        ReadRequest::Find(request)
    }
}

impl<'r> From<&'r AggregateRequest> for ReadRequest<'r> {
    fn from(request: &'r AggregateRequest) -> Self {
        ReadRequest::Aggregate(request)
    }
}

impl<'r> From<&'r CountRequest> for ReadRequest<'r> {
    fn from(request: &'r CountRequest) -> Self {
        ReadRequest::Count(request)
    }
}

impl<'r> From<&'r DistinctRequest> for ReadRequest<'r> {
    fn from(request: &'r DistinctRequest) -> Self {
        ReadRequest::Distinct(request)
    }
}

impl ReadRequest<'_> {
    /// Returns the first collection that the request names, and its collation.
    pub fn target(&self) -> (&str, &AskedCollation) {
        match self {
            ReadRequest::Find(request) | ReadRequest::Write(request, _) => {
                (&request.namespace, &request.collation)
            }
            ReadRequest::Aggregate(request) => (&request.namespace, &request.collation),
            ReadRequest::Count(request) => (&request.namespace, &request.collation),
            ReadRequest::Distinct(request) => (&request.namespace, &request.collation),
        }
    }

    /// Returns the variables of `let`, with unevaluated expressions.
    pub fn let_vars(&self) -> Doc<'_> {
        match self {
            ReadRequest::Find(request) | ReadRequest::Write(request, _) => {
                request.let_vars.as_doc()
            }
            ReadRequest::Aggregate(request) => request.let_vars.as_doc(),
            ReadRequest::Count(_) | ReadRequest::Distinct(_) => Doc::empty(),
        }
    }

    /// Returns whether blocking stages may use the disk; `None` if the client did not set it.
    pub fn allow_disk_use(&self) -> Option<bool> {
        match self {
            ReadRequest::Find(request) | ReadRequest::Write(request, _) => request.allow_disk_use,
            ReadRequest::Aggregate(request) => request.allow_disk_use,
            ReadRequest::Count(_) | ReadRequest::Distinct(_) => Some(true),
        }
    }

    /// Returns true if `$$NOW` and `$$CLUSTER_TIME` have values: not in `count` and `distinct`, as
    /// in mongod.
    pub fn has_clock(&self) -> bool {
        !matches!(self, ReadRequest::Count(_) | ReadRequest::Distinct(_))
    }
}

/// The verbosity of `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Prints the plans and runs none.
    QueryPlanner,
    /// Also runs the winning plan.
    ExecutionStats,
    /// Also runs all candidates for a while.
    AllPlansExecution,
}

/// What an explained write would do with the documents that its query finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// An `update` statement, which returns no document.
    Update {
        /// True for all documents, false for the first.
        multi: bool,
        /// True to insert if nothing matches.
        upsert: bool,
    },
    /// A `delete` statement, which returns no document.
    Delete {
        /// True for all documents, false for the first.
        multi: bool,
    },
    /// `findAndModify`, which changes one document and returns it.
    FindAndModify {
        /// True to delete the document.
        remove: bool,
        /// True to insert if nothing matches.
        upsert: bool,
        /// True to return the document after the change.
        new: bool,
    },
}

impl WriteKind {
    /// Returns true if it deletes what it finds.
    pub fn removes(self) -> bool {
        matches!(self, WriteKind::Delete { .. } | WriteKind::FindAndModify { remove: true, .. })
    }

    /// Returns true if it takes all documents, false for the first.
    pub fn takes_all(self) -> bool {
        matches!(self, WriteKind::Update { multi: true, .. } | WriteKind::Delete { multi: true })
    }

    /// Returns true if it inserts a document when none matches.
    pub fn upserts(self) -> bool {
        match self {
            WriteKind::Update { upsert, .. } | WriteKind::FindAndModify { upsert, .. } => upsert,
            WriteKind::Delete { .. } => false,
        }
    }

    /// Returns true if it returns a document: the one that it found, or the one that it inserted.
    pub fn returns_document(self, found: bool) -> bool {
        match self {
            WriteKind::FindAndModify { upsert, new, .. } => found || upsert && new,
            WriteKind::Update { .. } | WriteKind::Delete { .. } => false,
        }
    }
}
