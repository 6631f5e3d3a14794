//! A compiled filter with the arena that evaluating it needs.

use std::sync::Arc;

use bumpalo::Bump;
use quire_document::Doc;
use quire_error::Result;
use quire_mql::EvalContext;
use quire_mql::filter::Filter;

use crate::env::{Env, Scope};

/// Bytes of an arena that are kept from document to document.
const ARENA_KEPT_BYTES: usize = 64 * 1024;

/// Tests documents against a filter.
pub(crate) struct Matcher {
    filter: Arc<Filter>,
    arena: Bump,
}

impl Matcher {
    pub fn new(filter: Filter) -> Self {
        Matcher::sharing(Arc::new(filter))
    }

    /// Tests documents beside others that have the same filter.
    pub fn sharing(filter: Arc<Filter>) -> Self {
        Matcher { filter, arena: Bump::new() }
    }

    /// What it tests them by.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// True if the document passes.
    #[inline]
    pub fn matches(&mut self, doc: Doc<'_>, scope: Scope<'_>) -> Result<bool> {
        renew(&mut self.arena, scope.env)?;
        let context = EvalContext::new(&self.arena, doc, &scope.env.shared);
        self.filter.matches(doc, &context.with_variables(scope.variables))
    }
}

/// Empties an arena before the next document. After one that took much memory, and so perhaps much
/// time, looks whether to stop.
#[inline]
pub(crate) fn renew(arena: &mut Bump, env: &Env) -> Result<()> {
    if arena.allocated_bytes() > ARENA_KEPT_BYTES {
        env.check_interrupt()?;
    }
    reset(arena);
    Ok(())
}

/// Empties an arena; gives its memory back if it has grown.
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
