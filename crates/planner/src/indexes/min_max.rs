//! `min` and `max`: a range between two complete keys of a hinted index.

use crate::indexes::hint::hinted;
use crate::plan::{IndexScan, KeyRange};
use crate::request::{FindRequest, Hint};
use quire_catalog::key::Intervals;
use quire_catalog::{Collection, Index};
use quire_document::{Doc, DocBuf, compare};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::Collation;
use std::cmp::Ordering;
use std::sync::Arc;

/// Returns the scan for `min` and `max`.
pub(crate) fn scan(
    request: &FindRequest,
    collection: &Arc<Collection>,
    collation: Option<&Collation>,
) -> Result<IndexScan> {
    let (min, max) = (request.min.as_doc(), request.max.as_doc());
    let fail = |location, why| Err(planner_error(location, &request.namespace, why));
    if !min.is_empty() && !max.is_empty() && !same_names(min, max) {
        return Err(Error::location(51176, "min and max must have the same field names"));
    }
    let hint = match &request.hint {
        None => {
            return fail(
                51173,
                "When using min()/max() a hint of which index to use must be provided",
            );
        }
        Some(Hint::Natural(_)) => {
            return Err(Error::new(
                ErrorCode::NoQueryExecutionPlans,
                "min and max are incompatible with $natural",
            ));
        }
        Some(hint) => hint,
    };
    let index = hinted(collection, hint)?;
    let fits = |bound: Doc<'_>| {
        bound.is_empty()
            || bound.iter().map(|e| e.key()).eq(index.keys.fields().iter().map(|f| f.path.as_str()))
    };
    let collated = index.keys.collation() == collation || !(has_strings(min) || has_strings(max));
    if !fits(min) || !fits(max) || !collated || index.keys.is_seen_in_views() {
        return fail(51174, "The index chosen is not compatible with min/max");
    }
    if !min.is_empty() && !max.is_empty() && key_order(index, min, max).is_ge() {
        return fail(
            51175,
            "The value provided for min() does not come before the value provided for max() in the hinted index",
        );
    }
    let bound = |doc: &DocBuf| (!doc.as_doc().is_empty()).then(|| doc.clone());
    let mut scan = IndexScan::whole(collection, index, index.multikey_paths());
    scan.range = Some(KeyRange { start: bound(&request.min), end: bound(&request.max) });
    Ok(scan)
}

/// Returns true if a collation can change the position of a key.
fn has_strings(key: Doc<'_>) -> bool {
    key.fields().any(|(_, value)| Intervals::point(value).hold_strings())
}

fn same_names(a: Doc<'_>, b: Doc<'_>) -> bool {
    a.iter().map(|element| element.key()).eq(b.iter().map(|element| element.key()))
}

fn key_order(index: &Index, a: Doc<'_>, b: Doc<'_>) -> Ordering {
    for ((field, (_, left)), (_, right)) in
        index.keys.fields().iter().zip(a.fields()).zip(b.fields())
    {
        let order = compare(left, right, index.keys.collator());
        if order.is_ne() {
            return if field.descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// Returns the error of a request without a valid plan.
fn planner_error(location: i32, namespace: &str, why: &str) -> Error {
    Error::location(
        location,
        format!(
            "error processing query: ns={namespace} planner returned error :: caused by :: {why}"
        ),
    )
}
