//! Points of buckets source by source: in the order of the meta values, and for each in the order of the time. It finds the
//! meta values in their directory, and reads the buckets of one at a time (`bucket_slices.rs`). A scan of the first points
//! of each source reads no others.

use quire_collections::{Source, SourceCursor};
use quire_error::Result;
use quire_storage::Direction;

use crate::env::Run;
use crate::operators::Filling;
use crate::scans::bucket_slices::Slices;
use crate::scans::wanted_buckets::Wanted;

/// A scan by source and time.
pub(super) struct Sources {
    /// The order of the meta values, and of the points of each.
    direction: Direction,
    newest_first: bool,
    /// The number of points that are wanted of each source; `None` for all.
    each: Option<u64>,
    /// The only source that is wanted, until it is opened.
    only: Option<Source>,
    /// The other sources; `None` if there are none, or before the first.
    cursor: Option<SourceCursor>,
    /// The points of the current source.
    current: Option<Slices>,
    has_begun: bool,
}

impl Sources {
    /// `only` is the only source that is wanted; `None` for all.
    pub fn new(
        (backward, newest_first): (bool, bool),
        each: Option<u64>,
        only: Option<Source>,
    ) -> Self {
        let direction = if backward { Direction::Reverse } else { Direction::Forward };
        Sources {
            direction,
            newest_first,
            each,
            only,
            cursor: None,
            current: None,
            has_begun: false,
        }
    }

    /// Drops the points that were unpacked ahead.
    pub fn rest(&mut self) {
        if let Some(slices) = &mut self.current {
            slices.rest();
        }
    }

    pub fn next(
        &mut self,
        wanted: &mut Wanted,
        run: &mut Run<'_>,
        filling: &mut Filling<'_>,
    ) -> Result<bool> {
        while !filling.is_full() {
            match &mut self.current {
                Some(slices) => {
                    if !slices.next(wanted, run, filling)? {
                        self.current = None;
                    }
                }
                None => {
                    let Some(source) = self.next_source(wanted, run)? else { return Ok(false) };
                    wanted.source = Some(source);
                    self.current = Some(Slices::new(self.newest_first, self.each));
                }
            }
        }
        Ok(true)
    }

    /// Returns the next source that may pass the conditions on the meta field.
    fn next_source(&mut self, wanted: &mut Wanted, run: &mut Run<'_>) -> Result<Option<Source>> {
        run.pause()?;
        if !std::mem::replace(&mut self.has_begun, true) {
            if let Some(only) = self.only.take() {
                return Ok(Some(only));
            }
            let buckets = wanted.table.resolve(run)?.buckets;
            self.cursor = buckets.map(|buckets| SourceCursor::new(buckets, self.direction));
        }
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        while let Some((source, entry)) = cursor.next(&run.view())? {
            run.env.check_interrupt()?;
            // The other conditions are tested for each bucket.
            if wanted.source_may_match(&entry, run)? {
                return Ok(Some(source));
            }
            wanted.stats.buckets_skipped += 1;
        }
        self.cursor = None;
        Ok(None)
    }
}
