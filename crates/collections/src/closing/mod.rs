//! Moves points of time-series collections between records and buckets: `pass` closes points of one source after the
//! other, `reopening` gives points back before a statement writes them, `dropping` deletes whole buckets.

mod dropping;
mod pass;
mod reopening;

use quire_catalog::{Collection, CollectionId};
use quire_storage::{CommitOptions, Counts, Version};

use crate::failure::Attempt;
use crate::write::Attempts;
use crate::{Failure, Store, Writer, is_in_doubt};

pub use dropping::drop_buckets;
pub use pass::{ClosePolicy, Closed, Closing};

pub(crate) use dropping::{expire_buckets, has_expired_bucket};

/// A state of the points of a collection: while it stays the same, mostly no point was inserted, deleted or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointsMark {
    counts: Counts,
    moved: Version,
    span_seconds: Option<i32>,
}

impl Store {
    /// Returns the state of the points of a collection.
    pub fn points_mark(&self, collection: &Collection) -> PointsMark {
        let series = collection.options.time_series();
        PointsMark {
            counts: self.counts(collection),
            moved: self.series_gate(collection.id).last_move(),
            span_seconds: series.map(|series| series.buckets.span_seconds()),
        }
    }

    /// Commits the writes that move points of a collection, so that readers know when they moved.
    fn commit_move(
        &self,
        writer: Writer,
        collection: CollectionId,
        attempts: &Attempts<'_>,
    ) -> Attempt<()> {
        let gate = self.series_gate(collection);
        let moving = gate.moving();
        match writer.commit(CommitOptions::buffered().ended_by(attempts.interrupt())) {
            Ok(committed) => moving.end(Some(committed.version)),
            Err(Failure::Error(error)) if is_in_doubt(&error) => {
                moving.end_unknown();
                return Err(error.into());
            }
            Err(failure) => {
                moving.end(None);
                return Err(failure);
            }
        }
        Ok(())
    }
}
