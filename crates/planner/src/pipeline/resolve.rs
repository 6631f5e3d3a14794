//! Resolves a namespace that a pipeline reads: the only place where views are looked up.

use crate::indexes::choose::Statistics;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::ParseContext;
use quire_mql::collation::AskedCollation;
use quire_mql::stage::{Place, Stage, parse_pipeline};
use std::sync::Arc;

/// A collection and the stages between it and the reader.
pub(crate) struct Resolved {
    /// The collection, `database.collection`.
    pub namespace: String,
    /// The stages of the views in between, the innermost view's first; empty for a collection.
    pub stages: Vec<Stage>,
    /// True if the namespace is that of a view.
    pub of_view: bool,
}

/// Resolves `namespace`. Every namespace that a stage names is resolved here before it is planned:
/// those of `$lookup`, `$unionWith` and `$graphLookup`. A view becomes its collection with the
/// view's stages, so that planning moves filters and limits into them. The view's stages see no
/// variables of the outer pipeline.
///
/// # Errors
/// 167 OptionNotSupportedOnView for a view whose collation is not the request's; the errors of
/// resolving the view and parsing its stages.
pub(crate) fn resolve(
    namespace: &str,
    collation: &AskedCollation,
    context: &ParseContext,
    stats: &dyn Statistics,
) -> Result<Resolved> {
    let Some(view) = stats.view(namespace)? else {
        let namespace = namespace.to_owned();
        return Ok(Resolved { namespace, stages: Vec::new(), of_view: false });
    };
    if collation.or(None) != view.collation.as_ref() {
        let text = format!("Cannot override default collation of view {}", view.view);
        return Err(Error::new(ErrorCode::OptionNotSupportedOnView, text));
    }
    let depth = context.place.as_deref().map_or(0, |place| place.depth);
    let mut own =
        context.at(Place { depth, view_ends: view.ends.clone(), ..Place::of(&view.namespace) });
    own.variables = Arc::default();
    let stages = view.pipeline.iter().map(|stage| Value::from(stage.as_doc()));
    let stages = parse_pipeline(stages, &own)?;
    Ok(Resolved { stages, namespace: view.namespace, of_view: true })
}
