//! Search indexes exist only with a separate service of MongoDB (mongot, as in Atlas). Like a
//! mongod without that service, this server refuses the four commands and the stages.

use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Refuses `createSearchIndexes`, `dropSearchIndex`, `listSearchIndexes` and `updateSearchIndex`.
///
/// # Errors
/// 31082 SearchNotEnabled, always.
pub fn run(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    Err(quire_mql::stage::search_not_enabled(cx.command.name))
}
