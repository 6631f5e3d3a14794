//! Search indexes live in a service beside MongoDB (mongot, as Atlas runs one). As a mongod
//! without one, this server says so: by the four commands and by the stages.

use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// `createSearchIndexes`, `dropSearchIndex`, `listSearchIndexes`, `updateSearchIndex`.
///
/// # Errors
/// 31082 SearchNotEnabled, always.
pub fn run(cx: &mut Context<'_>, _: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    Err(quire_mql::stage::search_not_enabled(cx.command.name))
}
