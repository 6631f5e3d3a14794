//! Which fields of foreign documents a join and the stages after it read. The foreign side keeps
//! only these, so that a hash join fits more documents into the same memory and an index may be
//! enough.

use crate::pipeline::needed::{narrowing, needed_paths};
use quire_error::Result;
use quire_mql::ParseContext;
use quire_mql::stage::{Lookup, Modified, Stage, StageBody, Transform};
use std::collections::BTreeSet;

/// Returns the stage that keeps only the fields of foreign documents that are read: by the join
/// through `key`, by the stages of `tail` inside of the join, and by the stages of `behind` after
/// it. `None` if any field may be read.
pub(crate) fn keeping_fields(
    lookup: &Lookup,
    key: Option<&str>,
    tail: &[Stage],
    behind: &[Stage],
    context: &ParseContext,
) -> Result<Option<Stage>> {
    let joined = joined_fields(&lookup.output.to_string(), behind);
    let Some(mut fields) = joined.and_then(|joined| read_by(tail, joined)) else {
        return Ok(None);
    };
    fields.extend(key.map(first_component));
    // A projection cannot name such a field.
    if fields.iter().any(|field| field.starts_with('$')) {
        return Ok(None);
    }
    let narrowing = narrowing(&fields, true, context)?;
    let stage = |projection| Stage::Transform(Transform::Projection("$project", projection));
    Ok(narrowing.projection.map(stage))
}

/// Returns the fields of the documents at `output` that stages read; `None` if they may read any.
fn joined_fields(output: &str, behind: &[Stage]) -> Option<BTreeSet<String>> {
    let mut fields = BTreeSet::new();
    for path in needed_paths(behind.iter())? {
        let is_around = output.strip_prefix(&path).is_some_and(|rest| rest.starts_with('.'));
        if path == output || is_around {
            return None;
        }
        let below = path.strip_prefix(output).and_then(|rest| rest.strip_prefix('.'));
        fields.extend(below.map(first_component));
    }
    Some(fields)
}

/// Returns the fields that stages read of their input if what follows them reads `fields`.
fn read_by(stages: &[Stage], fields: BTreeSet<String>) -> Option<BTreeSet<String>> {
    let mut read = BTreeSet::new();
    for stage in stages {
        let needs = stage.needs();
        if needs.reads.whole_document || !needs.reads.metadata.is_empty() {
            return None;
        }
        read.extend(needs.reads.paths.iter().map(|path| first_component(path)));
        if needs.exhaustive {
            return Some(read);
        }
        if matches!(stage.modified(), Modified::All) {
            return None;
        }
    }
    read.extend(fields);
    Some(read)
}

/// Returns the top-level field. It is kept whole, because a projection of `a.b` removes the
/// elements of arrays that are not documents.
fn first_component(path: &str) -> String {
    path.split('.').next().unwrap_or_default().to_owned()
}
