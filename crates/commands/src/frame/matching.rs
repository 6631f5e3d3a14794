//! Filters documents that are not in a collection: rows of listings and of running operations.

use crate::frame::context::Context;
use quire_document::{Doc, DocBuf, Value};
use quire_error::{Error, Result};
use quire_mql::context::EvalContext;
use quire_mql::filter::Filter;

/// Returns the documents that match, in order.
pub fn filter_documents<'r>(
    cx: &Context<'_>,
    filter: Doc<'_>,
    rows: &'r [DocBuf],
) -> Result<Vec<&'r DocBuf>> {
    if filter.is_empty() {
        return Ok(rows.iter().collect());
    }
    refuse_special(filter)?;
    let mut parse = cx.parse_context();
    parse.no_clock = true;
    let filter = Filter::parse(filter, &parse)?;
    let shared = cx.shared();
    let mut arena = bumpalo::Bump::new();
    let mut kept = Vec::new();
    for row in rows {
        arena.reset();
        if filter.matches(row.as_doc(), &EvalContext::new(&arena, row.as_doc(), &shared))? {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Refuses operators that only a collection supports: JavaScript, text search, distances.
fn refuse_special(filter: Doc<'_>) -> Result<()> {
    for (name, value) in filter.fields() {
        match (name, value) {
            ("$where" | "$text", _) => {
                let text = format!("{name} is not allowed in this context");
                return Err(Error::bad_value(text));
            }
            ("$near" | "$nearSphere" | "$geoNear", _) => {
                let text = "$geoNear, $near, and $nearSphere are not allowed in this context";
                return Err(Error::location(5626500, text));
            }
            ("$and" | "$or" | "$nor", Value::Array(branches)) => {
                for branch in branches.iter().filter_map(|branch| branch.as_document()) {
                    refuse_special(branch)?;
                }
            }
            (name, Value::Document(test)) if !name.starts_with('$') => refuse_special(test)?,
            _ => {}
        }
    }
    Ok(())
}
