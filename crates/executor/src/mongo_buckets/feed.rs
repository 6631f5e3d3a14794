//! Reads the points of a time-series collection by source and time, and makes a bucket of those that MongoDB would put into
//! one: they have the same source, lie within the bucket span of the collection, and stay below the limits of a bucket.

use std::collections::VecDeque;
use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{Store, from_interruption};
use quire_document::{ArrayBuf, DocBuf};
use quire_error::{Error, ErrorCode, Result};
use quire_mql::collation::AskedCollation;
use quire_planner::FindRequest;
use quire_storage::Interrupt;

use super::document::{Gathered, Limits};
use crate::execution::Execution;
use crate::opening::open::open;
use crate::operators::feed::Feed;
use crate::params::{BatchLimits, ExecParams, Follows};
use crate::views::{FreshViews, Views};

/// The points and the bytes that are read at a time.
const READ_POINTS_MAX: usize = 1000;
const READ_BYTES_MAX: usize = 1 << 20;

/// The source of the buckets.
pub struct BucketFeed {
    store: Arc<Store>,
    points: Execution,
    gathered: Gathered,
    ready: VecDeque<DocBuf>,
    is_done: bool,
}

impl BucketFeed {
    /// Plans the read of the points on the view of `views`.
    ///
    /// # Errors
    /// 115 CommandNotSupported on views that stay at one state, which the feed does not read; those of the planner.
    pub fn open(
        store: &Arc<Store>,
        series: &Collection,
        views: &dyn Views,
        params: ExecParams,
    ) -> Result<Self> {
        if views.is_pinned() {
            let text = "the buckets of a time-series collection cannot be read in a transaction or at a point in time";
            return Err(Error::new(ErrorCode::CommandNotSupported, text));
        }
        let limits = Limits::of(series);
        let sort = DocBuf::build(|sort| {
            if let Some(meta) = &limits.meta_field {
                sort.append(meta, 1);
            }
            sort.append(&limits.time_field, 1);
        });
        let request = FindRequest {
            namespace: series.namespace.as_str().to_owned(),
            sort,
            // The buckets of a source need not be in the order of the collection's strings.
            collation: AskedCollation::Own(None),
            ..FindRequest::default()
        };
        Ok(BucketFeed {
            store: Arc::clone(store),
            points: open(&request, views, params)?,
            gathered: Gathered::new(limits),
            ready: VecDeque::new(),
            is_done: false,
        })
    }

    /// Reads the next points.
    fn read(&mut self, interrupt: &Arc<Interrupt>) -> Result<()> {
        let mut views = FreshViews::new(&self.store)?;
        let limits =
            BatchLimits { docs_max: READ_POINTS_MAX, bytes_max: READ_BYTES_MAX, is_whole: false };
        let (points, mut end) = (&mut self.points, None);
        let batch = ArrayBuf::build(|out| {
            end = Some(points.next_batch(&mut views, interrupt, limits, out));
        });
        let follows = end.transpose()?.map(|end| end.follows);
        for point in batch.as_array().iter().filter_map(|point| point.as_document()) {
            self.ready.extend(self.gathered.add(point));
        }
        if !matches!(follows, Some(Follows::Rows | Follows::NothingYet { .. })) {
            self.ready.extend(self.gathered.take());
            self.is_done = true;
        }
        Ok(())
    }
}

impl Feed for BucketFeed {
    fn next(
        &mut self,
        max: usize,
        interrupt: &Arc<Interrupt>,
        out: &mut Vec<DocBuf>,
    ) -> Result<Follows> {
        while self.ready.is_empty() && !self.is_done {
            interrupt.check().map_err(from_interruption)?;
            self.read(interrupt)?;
        }
        let many = self.ready.len().min(max);
        out.extend(self.ready.drain(..many));
        Ok(if self.is_done && self.ready.is_empty() { Follows::End } else { Follows::Rows })
    }
}
