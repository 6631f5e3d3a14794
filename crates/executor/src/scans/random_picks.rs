//! Random documents of a large collection, without reading the others: random record ids are drawn
//! until enough of them exist. All documents have the same probability, wherever ids are missing.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{RecordId, StoredDoc, View};
use quire_error::Result;
use quire_planner::explain::NodeStats;
use quire_storage::rng::Rng;

use crate::env::Run;
use crate::operators::{BoxedOperator, Operator, pass_on};
use crate::row::Row;
use crate::table::Table;

/// A collection of at most this many documents is read as a whole, as in MongoDB.
const SMALL_DOCS: u64 = 100;
/// The number of documents in the collection for each draw that makes drawing worthwhile: a look-up
/// costs as much as reading some adjacent documents. MongoDB's limit is 5 % too.
const DOCS_PER_DRAW_MIN: u64 = 20;
/// How many draws beyond twice the expected number are made before the operator gives up.
const SPARE_DRAWS: u64 = 100;
/// The number of ids that are looked up at a time.
const DRAWS_MAX: u64 = 1024;

/// Returns true if it costs less to draw `size` documents than to find them by a scan.
pub(crate) fn draws(view: &View<'_>, collection: &Collection, size: u64) -> bool {
    view.record_ids(collection).is_ok_and(|ids| expected(view, collection, &ids, size).is_some())
}

fn expected(view: &View<'_>, collection: &Collection, ids: &Range<u64>, size: u64) -> Option<u64> {
    expected_draws(view.counts(collection).documents, ids, size)
}

/// The operator of a `$sample` that draws random record ids.
pub(crate) struct RandomPicks {
    table: Table,
    size: u64,
    /// A scan of all documents.
    scan: BoxedOperator,
    state: State,
    stats: NodeStats,
}

enum State {
    New,
    /// The remaining drawn rows.
    Drawn(Vec<Row>),
    /// Too many draws found no document.
    Scanning,
}

impl RandomPicks {
    /// Returns the operator; `size` is the number of documents to choose. `scan` returns all
    /// documents.
    pub fn new(collection: &Arc<Collection>, scan: BoxedOperator, size: u64) -> Self {
        RandomPicks {
            table: Table::new(collection),
            size,
            scan,
            state: State::New,
            stats: NodeStats::default(),
        }
    }
}

impl Operator for RandomPicks {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        if let State::New = self.state {
            let Picks { rows, docs_examined, bytes_read } = pick(run, &mut self.table, self.size)?;
            (self.stats.docs_examined, self.stats.bytes_read) = (docs_examined, bytes_read);
            self.state = rows.map_or(State::Scanning, State::Drawn);
        }
        let State::Drawn(rows) = &mut self.state else {
            return pass_on(&mut self.scan, &mut self.stats, run, max, out);
        };
        let given = rows.split_off(rows.len().saturating_sub(max));
        self.stats.returned += given.len() as u64;
        self.stats.is_eof = rows.is_empty();
        out.extend(given);
        Ok(!self.stats.is_eof)
    }

    fn rest(&mut self) {
        self.scan.rest();
    }

    fn stats(&self) -> NodeStats {
        let docs_examined = self.stats.docs_examined + self.scan.stats().total_docs();
        let bytes_read = self.stats.bytes_read + self.scan.stats().total_bytes();
        NodeStats { docs_examined, bytes_read, ..self.stats.clone() }
    }
}

/// The drawn rows, and the number of documents looked up for them.
struct Picks {
    /// The documents; `None` if reading all documents is better.
    rows: Option<Vec<Row>>,
    docs_examined: u64,
    bytes_read: u64,
}

/// Draws `size` documents.
fn pick(run: &mut Run<'_>, table: &mut Table, size: u64) -> Result<Picks> {
    let mut picks = Picks { rows: None, docs_examined: 0, bytes_read: 0 };
    let collection = table.resolve(run)?;
    let ids = run.view().record_ids(collection)?;
    let Some(expected) = expected(&run.view(), collection, &ids, size) else { return Ok(picks) };
    let mut random = Rng::new(run.env.shared.random()?);
    let (mut met, mut rows) = (HashSet::new(), Vec::new());
    let (mut found, mut drawn, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut left = expected.saturating_mul(2).saturating_add(SPARE_DRAWS);
    while let missing @ 1.. = size.saturating_sub(rows.len() as u64) {
        // The sample of a scan can spill to disk.
        if left == 0 || bytes > run.env.params.stage_bytes_max {
            return Ok(picks);
        }
        run.pause()?;
        let draws = missing.min(DRAWS_MAX).min(left);
        left -= draws;
        drawn.clear();
        let draw = |_| RecordId(ids.start + random.below((ids.end - ids.start).max(1)));
        drawn.extend((0..draws).map(draw).filter(|id| met.insert(*id)));
        found.clear();
        run.view().get_many(table.resolve(run)?, &drawn, &mut found)?;
        let exists = |(id, doc): (&RecordId, Option<StoredDoc>)| {
            let mut row = Row::of_document(*id, doc?.into_bytes());
            row.detach();
            picks.bytes_read += row.doc().len() as u64;
            bytes += row.size();
            Some(row)
        };
        rows.extend(drawn.iter().zip(found.drain(..)).filter_map(exists));
        picks.docs_examined = rows.len() as u64;
    }
    picks.rows = Some(rows);
    Ok(picks)
}

/// Returns the expected number of ids to draw until `size` of them exist; `None` if a scan does not
/// cost more.
fn expected_draws(documents: u64, ids: &Range<u64>, size: u64) -> Option<u64> {
    if documents <= SMALL_DOCS || ids.is_empty() {
        return None;
    }
    let space = u128::from(ids.end - ids.start);
    let draws = (u128::from(size) * space).div_ceil(u128::from(documents));
    let draws = u64::try_from(draws).ok()?.max(size);
    (draws.saturating_mul(DOCS_PER_DRAW_MIN) < documents).then_some(draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_of_large_collections_are_drawn() {
        assert_eq!(expected_draws(1000, &(1..1001), 5), Some(5));
        assert_eq!(expected_draws(1000, &(1..1001), 50), None, "5 % of all");
        assert_eq!(expected_draws(100, &(1..101), 1), None, "too few documents");
        assert_eq!(expected_draws(1000, &(1..4001), 5), Some(20), "three of four ids are missing");
        assert_eq!(expected_draws(1000, &(1..20_001), 5), None, "too many ids are missing");
        assert_eq!(expected_draws(1000, &(7..7), 5), None);
        assert_eq!(expected_draws(1000, &(1..u64::MAX), u64::MAX), None);
    }
}
