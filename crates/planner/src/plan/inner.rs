//! The parts of a plan that stand inside of one stage: the plans of other pipelines.

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
    /// The stage works on its input alone.
    Nothing,
    /// The other documents of each `$unionWith` in a row.
    Union(Arc<[Plan]>),
    /// The branches of a `$facet`; their leaves are [`Node::Feed`]s.
    Branches(Arc<[Node]>),
    /// The foreign side of a `$lookup` or a `$graphLookup`.
    Foreign(Arc<Foreign>),
}

/// The foreign side of a join, planned once for all documents of the input.
#[derive(Debug)]
pub struct Foreign {
    /// Reads all foreign documents, up to the first stage whose result differs between documents of
    /// the input.
    pub whole: Plan,
    /// By which field foreign documents are found, if by one.
    pub key: Option<ForeignKey>,
    /// The name of the index that finds documents by a few keys; `None` if there is none.
    pub index: Option<String>,
    /// What is done with the documents that belong to one document of the input, above a
    /// [`Node::Feed`]; `None` if they are taken as they are.
    pub tail: Option<Node>,
    /// The number of variables around the stage and of its own. Those of the stage have no values
    /// in `whole`, which does not read them.
    pub variables: usize,
    /// The stages that `whole` stands for.
    pub(crate) stages: Vec<Stage>,
    /// What these stages read.
    pub(crate) source: Source,
    pub(crate) context: ParseContext,
}

/// By which field foreign documents are found.
#[derive(Debug)]
pub enum ForeignKey {
    /// As a filter compares: elements of arrays too, null and missing alike.
    Field(Path),
    /// As an expression compares: one value, which may be missing. More documents than these may be
    /// found, because a filter behind them decides.
    Value(Expression, FieldPath),
}

/// What a pipeline reads and how.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// `database.collection`, or `database.$cmd.aggregate` for a pipeline without a collection.
    pub namespace: String,
    /// The index to use.
    pub hint: Option<Hint>,
    /// How strings compare.
    pub collation: AskedCollation,
    /// What gives the documents if no collection does.
    pub fed_by: Option<&'static str>,
    /// The stages begin with those of a view.
    pub of_view: bool,
}
