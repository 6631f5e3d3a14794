//! The projection of the document that `findAndModify` returns.

use crate::frame::context::Context;
use crate::write::find_and_modify_arguments::Arguments;
use bumpalo::Bump;
use quire_catalog::Collection;
use quire_document::{Doc, DocBuf};
use quire_error::{Error, Result};
use quire_mql::Collation;
use quire_mql::collation::as_collator;
use quire_mql::context::{EvalContext, ParseContext};
use quire_mql::projection::Projection;
use quire_planner::collation_of;
use std::sync::Arc;

/// A compiled projection, if there is one.
pub struct Projecting {
    projection: Option<Projection>,
    collation: Option<Arc<Collation>>,
}

impl Projecting {
    /// Compiles `fields` for the documents of `collection`, if it exists.
    ///
    /// # Errors
    /// The errors of `mql` about the projection; those of [`check`].
    pub fn new(
        cx: &Context<'_>,
        collection: Option<&Collection>,
        arguments: &Arguments<'_>,
    ) -> Result<Self> {
        if arguments.projection.as_doc().is_empty() {
            return Ok(Projecting { projection: None, collation: None });
        }
        let collation = collation_of(&arguments.collation, collection).cloned();
        let names = arguments.let_vars.as_doc().fields().map(|(name, _)| name);
        let mut parse = ParseContext::with_user_variables(names);
        parse.interrupt = cx.parse_context().interrupt;
        parse.collator = as_collator(collation.as_ref());
        parse.cluster_time = cx.shared().cluster_time.is_some();
        let (spec, filter) = (arguments.projection.as_doc(), arguments.filter.as_doc());
        let projection = Projection::parse_find(spec, Some(filter), &parse)?;
        check(&projection, arguments.new)?;
        Ok(Projecting { projection: Some(projection), collation })
    }

    /// Returns the projected document.
    pub fn apply(&self, cx: &Context<'_>, doc: Doc<'_>) -> Result<DocBuf> {
        let Some(projection) = &self.projection else { return Ok(doc.to_owned()) };
        let shared = cx.shared().with_collator(as_collator(self.collation.as_ref()));
        let arena = Bump::new();
        projection.apply_to(doc, &EvalContext::new(&arena, doc, &shared))
    }
}

/// Refuses projections that a findAndModify cannot answer.
///
/// # Errors
/// `BadValue` for the position in a document that may not match any more, and for the sort key.
fn check(projection: &Projection, new: bool) -> Result<()> {
    if new && projection.needs_position() {
        let text = "cannot use a positional projection and return the new document";
        return Err(Error::bad_value(text));
    }
    if projection.needs().metadata.contains("sortKey") {
        let text = "Cannot use a $meta sortKey projection in findAndModify commands.";
        return Err(Error::bad_value(text));
    }
    Ok(())
}
