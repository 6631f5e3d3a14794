//! The collections that stages do not read or write: a `$merge` needs the index that identifies the
//! document that an incoming document matches, and a fusion no time-series collection.

use crate::indexes::choose::Statistics;
use crate::request::{AggregateRequest, collation_of};
use quire_catalog::{Collection, Index, IndexState};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use quire_mql::stage::{Merge, Stage};
use std::sync::Arc;

/// Returns the unique index on exactly the fields by which a `$merge` matches documents; `None` if
/// there is none. `collation` is that of the pipeline.
fn merge_index<'c>(
    merge: &Merge,
    collection: &'c Collection,
    collation: Option<&Arc<Collation>>,
) -> Option<&'c Arc<Index>> {
    if merge.on.is_empty() {
        return collection.id_index();
    }
    collection.ready_indexes().find(|index| {
        let fields = index.keys.fields();
        (index.unique || index.is_id())
            && index.state == IndexState::Ready
            && index.keys.partial().is_none()
            && fields.len() == merge.on.len()
            && fields.iter().all(|field| merge.on.contains(&field.path))
            && index.keys.collation() == collation.map(|collation| &**collation)
    })
}

/// Returns the index that a running `$merge` reads. A collection that the `$merge` created has the
/// simple collation, and its index on `_id` serves a pipeline of any collation.
pub fn running_merge_index<'c>(
    merge: &Merge,
    collection: &'c Collection,
    collation: Option<&Arc<Collation>>,
) -> Option<&'c Arc<Index>> {
    let checked = merge_index(merge, collection, collation);
    checked.or_else(|| collection.id_index().filter(|_| is_by_id(merge)))
}

fn is_by_id(merge: &Merge) -> bool {
    merge.on.iter().all(|path| path == "_id")
}

/// Fails with 10557301 for a `$rankFusion` or a `$scoreFusion` over a time-series collection.
pub(crate) fn check_fused(
    stages: &[Stage],
    request: &AggregateRequest,
    stats: &dyn Statistics,
) -> Result<()> {
    if !stages.iter().any(|stage| matches!(stage, Stage::FusionInput(_))) {
        return Ok(());
    }
    let source = stats.collection(&request.namespace).ok().flatten();
    if source.is_some_and(|source| source.is_time_series()) {
        let text = "$rankFusion and $scoreFusion cannot read a time-series collection";
        return Err(Error::location(10557301, text));
    }
    Ok(())
}

/// Fails with 166 for a `$merge` into a time-series collection, and with 51183 if the pipeline ends with a `$merge` whose fields are not unique in its
/// collection.
pub(crate) fn check_target(
    stage: Option<&Stage>,
    request: &AggregateRequest,
    stats: &dyn Statistics,
) -> Result<()> {
    let Some(Stage::Merge(merge)) = stage else { return Ok(()) };
    let target = stats.collection(&format!("{}.{}", merge.db, merge.collection)).ok().flatten();
    if let Some(target) = target.as_deref().filter(|target| target.is_time_series()) {
        let text =
            format!("$merge cannot write to the time-series collection {}", target.namespace);
        return Err(Error::new(ErrorCode::CommandNotSupportedOnView, text));
    }
    let found = match &target {
        None => is_by_id(merge),
        Some(target) => {
            let source = stats.collection(&request.namespace).ok().flatten();
            let collation = collation_of(&request.collation, source.as_deref());
            merge_index(merge, target, collation).is_some()
        }
    };
    if found { Ok(()) } else { Err(Merge::no_index()) }
}
