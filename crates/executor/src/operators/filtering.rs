//! A compiled filter with an arena for its evaluation.

use std::sync::Arc;

use bumpalo::Bump;
use quire_document::Doc;
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::filter::Filter;

use crate::env::{Env, Scope};

/// The largest size of an arena that is reused for the next document, in bytes.
const ARENA_KEPT_BYTES: usize = 64 * 1024;

/// Tests documents with a filter.
pub(crate) struct Matcher {
    filter: Arc<Filter>,
    arena: Bump,
}

impl Matcher {
    pub fn new(filter: Filter) -> Self {
        Matcher::sharing(Arc::new(filter))
    }

    /// Returns a matcher that shares a filter with other threads.
    pub fn sharing(filter: Arc<Filter>) -> Self {
        Matcher { filter, arena: Bump::new() }
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// Returns true if the document matches.
    #[inline]
    pub fn matches(&mut self, doc: Doc<'_>, scope: Scope<'_>) -> Result<bool> {
        renew(&mut self.arena, scope.env)?;
        let context = EvalContext::new(&self.arena, doc, &scope.env.shared);
        self.filter.matches(doc, &context.with_variables(scope.variables))
    }
}

/// Empties an arena before the next document. After a document that took much memory, and so
/// perhaps much time, checks the interrupt.
#[inline]
pub(crate) fn renew(arena: &mut Bump, env: &Env) -> Result<()> {
    if arena.allocated_bytes() > ARENA_KEPT_BYTES {
        env.check_interrupt()?;
    }
    reset(arena);
    Ok(())
}

/// Empties an arena, and frees its memory if it has grown.
pub(crate) fn reset(arena: &mut Bump) {
    if arena.allocated_bytes() == 0 {
        return;
    }
    if arena.allocated_bytes() > ARENA_KEPT_BYTES {
        *arena = Bump::new();
    } else {
        arena.reset();
    }
}
