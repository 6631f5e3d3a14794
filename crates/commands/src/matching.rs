//! Filtering documents that no collection holds: rows of listings and of running operations.

use crate::dispatch::Context;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_mql::context::{EvalContext, ParseContext};
use quire_mql::filter::Filter;

/// The documents that match, in order.
pub fn filter_documents<'r>(
    cx: &Context<'_>,
    filter: Doc<'_>,
    rows: &'r [DocBuf],
) -> Result<Vec<&'r DocBuf>> {
    if filter.is_empty() {
        return Ok(rows.iter().collect());
    }
    let mut parse = ParseContext::default();
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
