//! The plans of the pipelines inside of a stage.

use std::sync::Arc;

use quire_document::path::Path;
use quire_mql::ParseContext;
use quire_mql::collation::AskedCollation;
use quire_mql::expression::{Expression, FieldPath};
use quire_mql::stage::Stage;

use super::{Node, Plan};
use crate::request::Hint;

/// The plans inside of a stage.
#[derive(Clone, Debug)]
pub enum Inner {
    /// No plan: the stage reads only its input.
    Nothing,
    /// The plans of each `$unionWith` in a sequence.
    Union(Arc<[Plan]>),
    /// The branches of a `$facet`; their leaves are [`Node::Feed`]s.
    Branches(Arc<[Node]>),
    /// The foreign side of a `$lookup` or a `$graphLookup`.
    Foreign(Arc<Foreign>),
}

/// The foreign side of a join, planned once for all documents of the input.
#[derive(Debug, Clone)]
pub struct Foreign {
    /// Reads all foreign documents, up to the first stage whose result differs between documents of
    /// the input. With [`Plan::by_keys`], which reads the documents of some keys.
    pub whole: Plan,
    /// The field by which foreign documents are found, if there is one.
    pub key: Option<ForeignKey>,
    /// The stages for the foreign documents of one input document, above a [`Node::Feed`]; `None`
    /// if there are none.
    pub tail: Option<Node>,
    /// The number of variables around the stage and of its own. The stage's variables have no
    /// values in `whole`, which does not read them.
    pub variables: usize,
    /// True if the documents of `whole` depend on the variables around the stage, or differ from read to
    /// read.
    pub varies: bool,
    /// The stages that `whole` plans.
    pub(crate) stages: Vec<Stage>,
    /// The source that these stages read.
    pub(crate) source: Source,
    pub(crate) context: ParseContext,
}

/// The field by which foreign documents are found.
#[derive(Debug, Clone)]
pub enum ForeignKey {
    /// Compared as a filter does: also with elements of arrays, and null like missing.
    Field(Path),
    /// Compared as an expression does: one value, which may be missing. The search may find more
    /// documents, because a filter after it decides.
    Value(Arc<Expression>, FieldPath),
}

/// The source of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// `database.collection`, or `database.$cmd.aggregate` for a pipeline without a collection.
    pub namespace: String,
    /// The index to use.
    pub hint: Option<Hint>,
    /// The collation of the request.
    pub collation: AskedCollation,
    /// The source of the documents if they do not come from a collection.
    pub fed_by: Option<&'static str>,
    /// True if the first stages are those of a view.
    pub of_view: bool,
    /// True if stages outside of the pipeline read the metadata of its search.
    pub gives_metadata: bool,
}
