//! FETCH: reads the documents of index keys, and keeps those that match a filter.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{RecordId, StoredDoc};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::operators::{
    BATCH_BYTES, BoxedOperator, Operator, Passed, make_and_drop, over, pass_by,
};
use crate::row::Row;
use crate::table::Table;

/// The rows of the first fetch, when their size is not known.
const ROWS_FIRST: usize = 16;
/// The largest number of rows of a fetch.
const ROWS_MAX: usize = 256;

/// Fetches the documents of its input's rows.
pub(crate) struct Fetch {
    table: Table,
    input: BoxedOperator,
    filter: Option<Matcher>,
    rows: Vec<Row>,
    ids: Vec<RecordId>,
    docs: Vec<Option<StoredDoc>>,
    /// The number of rows of the next fetch: about as many as fit into `BATCH_BYTES`.
    step: usize,
    done: bool,
    stats: NodeStats,
}

impl Fetch {
    pub fn new(collection: &Arc<Collection>, input: BoxedOperator, filter: Option<Filter>) -> Self {
        Fetch {
            table: Table::new(collection),
            input,
            filter: filter.map(Matcher::new),
            rows: Vec::new(),
            ids: Vec::new(),
            docs: Vec::new(),
            step: ROWS_FIRST,
            done: false,
            stats: NodeStats::default(),
        }
    }
}

/// Returns how many documents to fetch after `count` of them had `bytes`.
fn step_for(bytes: usize, count: usize) -> usize {
    let mean = bytes / count.max(1);
    BATCH_BYTES.checked_div(mean).unwrap_or(ROWS_MAX).clamp(1, ROWS_MAX)
}

impl Operator for Fetch {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (start, limit) = (out.len(), out.len() + max);
        while out.len() < limit && !self.done {
            self.rows.clear();
            let wanted = (limit - out.len()).min(self.step);
            self.done = !self.input.next(run, wanted, &mut self.rows)?;
            self.ids.clear();
            self.ids.extend(self.rows.iter().filter(|row| row.doc.is_none()).map(|row| row.record));
            self.docs.clear();
            if let [only] = self.ids.as_slice() {
                self.docs.push(run.view().get(self.table.resolve(run)?, *only)?);
            } else if !self.ids.is_empty() {
                run.view().get_many(self.table.resolve(run)?, &self.ids, &mut self.docs)?;
            }
            let mut bytes = 0;
            let mut docs = self.docs.drain(..);
            for mut row in self.rows.drain(..) {
                if row.doc.is_none() {
                    let Some(doc) = docs.next().flatten() else { continue };
                    self.stats.docs_examined += 1;
                    let doc = doc.into_bytes();
                    bytes += doc.len();
                    row.doc = Some(doc);
                }
                if let Some(filter) = &mut self.filter
                    && !filter.matches(row.doc(), run.scope())?
                {
                    continue;
                }
                self.stats.returned += 1;
                out.push(row);
            }
            drop(docs);
            self.stats.bytes_read += bytes as u64;
            let is_full = wanted == ROWS_MAX || bytes >= BATCH_BYTES;
            self.step = step_for(bytes, self.ids.len());
            if out.len() > start && out.len() < limit && !self.done && is_full {
                return Ok(true);
            }
        }
        self.stats.is_eof = self.done;
        Ok(!self.done)
    }

    /// Reads no documents if there is no filter.
    fn pass(&mut self, run: &mut Run<'_>, max: u64) -> Result<Passed> {
        if self.filter.is_some() {
            return make_and_drop(self, run, max);
        }
        let passed = pass_by(&mut self.input, &mut self.stats, run, max)?;
        self.done = !passed.more;
        Ok(passed)
    }

    fn counts(&self) -> bool {
        self.filter.is_none() && self.input.counts()
    }

    /// Frees the buffers too: they may be larger than all else that a cursor keeps.
    fn rest(&mut self) {
        (self.rows, self.ids, self.docs) = Default::default();
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression test: rows of 16 MB were fetched 256 at a time.
    #[test]
    fn large_documents_are_fetched_one_by_one_and_small_ones_together() {
        assert_eq!(step_for(16 * (16 << 20), 16), 1);
        assert_eq!(step_for(16 << 20, 16), 4);
        assert_eq!(step_for(1000, 16), ROWS_MAX);
        assert_eq!(step_for(0, 0), ROWS_MAX);
    }
}
