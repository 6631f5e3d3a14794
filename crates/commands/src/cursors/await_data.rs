//! How a `getMore` waits for documents: of a tailable cursor with `awaitData`, and of every other
//! cursor whose source follows commits.
//!
//! It registers for the commits of its source before it reads, so that it misses none. While it
//! waits it holds no view, and only its own thread. A commit of what it follows, a kill, a deadline,
//! a lost client and a shutdown wake it.

use crate::frame::context::Context;
use quire_collections::from_storage;
use quire_error::Result;
use quire_session::Cursor;
use quire_storage::{Version, Watch};
use std::time::{Duration, Instant};

/// How long a getMore without `maxTimeMS` waits. MongoDB: 1 second.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// A getMore that may wait.
pub struct Waiting {
    watch: Watch,
    until: Instant,
}

impl Waiting {
    /// Registers the getMore for the commits that its cursor follows; `None` if the cursor does not
    /// wait. `max_time_ms` is the longest wait, after which the batch is empty; it is no deadline of
    /// the command.
    pub fn begin(cx: &Context<'_>, cursor: &Cursor, max_time_ms: Option<u64>) -> Option<Self> {
        let mut awaits = cursor.source.awaits()?;
        cx.interrupt.set_deadline(None);
        let wait = max_time_ms.map_or(WAIT_DEFAULT, Duration::from_millis);
        let engine = cx.service.store.engine();
        let watch = loop {
            let watch = engine.watch(awaits.watched, awaits.reach, &cx.interrupt);
            // The collection can have been created, or created anew, before the watch began.
            match cursor.source.awaits()? {
                known if known == awaits => break watch,
                other => awaits = other,
            }
        };
        Some(Waiting { watch, until: Instant::now() + wait })
    }

    /// Waits until a commit after `past` may have added documents. Returns false if the time is
    /// over.
    ///
    /// # Errors
    /// The error of an interrupt, and of an engine that accepts no more commits.
    pub fn wait(&self, past: Version) -> Result<bool> {
        let left = self.until.saturating_duration_since(Instant::now());
        // News that come without end must not delay the reply.
        if left.is_zero() {
            return Ok(false);
        }
        self.watch.wait(past, Some(left)).map_err(from_storage)
    }
}
