//! The updates that a time-series collection takes: those of all points with some value of the meta
//! field, which change nothing but that field.

use quire_catalog::Collection;
use quire_catalog::time_series::is_on_meta;
use quire_document::Doc;
use quire_error::{Error, ErrorCode, Result};
use quire_mql::update::Update;

/// Refuses an update that a time-series collection does not take.
///
/// # Errors
/// 72 InvalidOptions for an upsert, an update of one document, a replacement, a pipeline, and for one
/// whose filter or operators name another field than the meta field.
pub(super) fn check_series_update(
    collection: Option<&Collection>,
    (multi, upsert): (bool, bool),
    filter: Doc<'_>,
    update: Option<&Update>,
) -> Result<()> {
    let Some(series) = collection.and_then(|found| found.options.time_series()) else {
        return Ok(());
    };
    let Some(update) = update else { return Ok(()) };
    if upsert {
        return refused("Cannot perform an upsert on a time-series collection");
    }
    if !multi {
        return refused("Cannot perform a non-multi update on a time-series collection");
    }
    let Some(meta) = &series.meta_field else {
        return refused(
            "Cannot perform an update on a time-series collection that does not have a metaField",
        );
    };
    let Some(mut touched) = update.touched() else {
        return refused(
            "Cannot perform an update on a time-series collection using a pipeline update",
        );
    };
    if !is_on_meta(series, filter) {
        return refused(&format!(
            "Cannot perform an update on a time-series collection when querying on a field that is not the metaField '{meta}'"
        ));
    }
    if !touched.all(|path| series.is_meta(path)) {
        return refused(&format!(
            "Cannot perform an update on a time-series collection that changes a field that is not the metaField '{meta}'"
        ));
    }
    Ok(())
}

fn refused(text: &str) -> Result<()> {
    Err(Error::new(ErrorCode::InvalidOptions, text))
}
