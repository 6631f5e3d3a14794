//! The projection of the document that `findAndModify` returns.

use crate::frame::context::Context;
use crate::write::find_and_modify_arguments::Arguments;
use bumpalo::Bump;
use quire_catalog::{Collection, bind_searches};
use quire_document::{Doc, DocBuf};
use quire_error::{Error, Result};
use quire_mql::Collation;
use quire_mql::Filter;
use quire_mql::collation::as_collator;
use quire_mql::context::{EvalContext, ParseContext};
use quire_mql::filter::Search;
use quire_mql::projection::Projection;
use quire_planner::collation_of;
use std::sync::Arc;

/// A compiled projection, if there is one.
pub struct Projecting {
    projection: Option<Projection>,
    collation: Option<Arc<Collation>>,
    /// The search of the query, which gives metadata to the document.
    search: Option<Arc<dyn Search>>,
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
            return Ok(Projecting { projection: None, collation: None, search: None });
        }
        let collation = collation_of(&arguments.collation, collection).cloned();
        let names = arguments.let_vars.as_doc().fields().map(|(name, _)| name);
        let mut parse = ParseContext::with_user_variables(names);
        parse.interrupt = cx.parse_context().interrupt;
        parse.collator = as_collator(collation.as_ref());
        parse.cluster_time = cx.shared().cluster_time.is_some();
        let (spec, filter) = (arguments.projection.as_doc(), arguments.filter.as_doc());
        let search = search_of(filter, collection, &parse)?;
        if let Some(search) = &search {
            parse.metadata = search.metadata();
        }
        let projection = Projection::parse_find(spec, Some(filter), &parse)?;
        check(&projection, arguments.new)?;
        Ok(Projecting { projection: Some(projection), collation, search })
    }

    /// Returns the projected document. `found` is the document that the query found.
    pub fn apply(&self, cx: &Context<'_>, doc: Doc<'_>, found: Doc<'_>) -> Result<DocBuf> {
        let Some(projection) = &self.projection else { return Ok(doc.to_owned()) };
        let shared = cx.shared().with_collator(as_collator(self.collation.as_ref()));
        let arena = Bump::new();
        let metadata = self.search.as_ref().map(|search| search.metadata_of(found)).transpose()?;
        let context = EvalContext::new(&arena, doc, &shared);
        let context = context.with_metadata(metadata.as_ref().map(DocBuf::as_doc));
        projection.apply_to(doc, &context)
    }
}

/// Returns the search of a query, bound to its index if the collection exists; `None` if it has none.
fn search_of(
    filter: Doc<'_>,
    collection: Option<&Collection>,
    parse: &ParseContext,
) -> Result<Option<Arc<dyn Search>>> {
    // Only an operator in place of a field can be or hold a search.
    if !filter.fields().any(|(name, _)| name.starts_with('$')) {
        return Ok(None);
    }
    let mut condition = Filter::parse(filter, parse)?.into_node();
    if condition.search().is_none() {
        return Ok(None);
    }
    // An explain reads no document, and its plan checks the index.
    if collection.is_some() {
        bind_searches(&mut condition, collection)?;
    }
    Ok(condition.search().cloned())
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
