//! The projection of `findAndModify` on the one document it answers.

use crate::frame::context::Context;
use crate::write::find_and_modify::Arguments;
use bumpalo::Bump;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::context::{EvalContext, ParseContext};
use quire_mql::projection::Projection;

/// A compiled projection, or none.
pub struct Projecting(Option<Projection>);

impl Projecting {
    /// Compiles `fields`.
    pub fn new(cx: &Context<'_>, arguments: &Arguments<'_>) -> Result<Self> {
        if arguments.projection.as_doc().is_empty() {
            return Ok(Projecting(None));
        }
        let names = arguments.let_vars.as_doc().fields().map(|(name, _)| name);
        let mut parse = ParseContext::with_user_variables(names);
        parse.cluster_time = cx.shared().cluster_time.is_some();
        let (spec, filter) = (arguments.projection.as_doc(), arguments.filter.as_doc());
        Ok(Projecting(Some(Projection::parse_find(spec, Some(filter), &parse)?)))
    }

    /// The document as the client wants it.
    pub fn apply(&self, cx: &Context<'_>, doc: Doc<'_>) -> Result<DocBuf> {
        let Some(projection) = &self.0 else { return Ok(doc.to_owned()) };
        let (arena, shared) = (Bump::new(), cx.shared());
        projection.apply_to(doc, &EvalContext::new(&arena, doc, &shared))
    }
}
