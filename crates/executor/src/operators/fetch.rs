//! FETCH: the documents of keys, those that pass a filter.

use std::sync::Arc;

use quire_catalog::Collection;
use quire_collections::{RecordId, StoredDoc};
use quire_error::Result;
use quire_mql::filter::Filter;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::filtering::Matcher;
use crate::operators::{BoxedOperator, Operator, over};
use crate::row::Row;
use crate::scans::table::Table;

/// Rows fetched at a time.
const ROWS_MAX: usize = 256;

/// Reads the documents of its input's rows.
pub(crate) struct Fetch {
    table: Table,
    input: BoxedOperator,
    filter: Option<Matcher>,
    rows: Vec<Row>,
    ids: Vec<RecordId>,
    docs: Vec<Option<StoredDoc>>,
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
            done: false,
            stats: NodeStats::default(),
        }
    }
}

impl Operator for Fetch {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        let (start, limit) = (out.len(), out.len() + max);
        while out.len() < limit && !self.done {
            self.rows.clear();
            let wanted = (limit - out.len()).min(ROWS_MAX);
            self.done = !self.input.next(run, wanted, &mut self.rows)?;
            self.ids.clear();
            self.ids.extend(self.rows.iter().filter(|row| row.doc.is_none()).map(|row| row.record));
            self.docs.clear();
            if let [only] = self.ids.as_slice() {
                self.docs.push(run.view().get(self.table.resolve(run)?, *only)?);
            } else if !self.ids.is_empty() {
                run.view().get_many(self.table.resolve(run)?, &self.ids, &mut self.docs)?;
            }
            let mut docs = self.docs.drain(..);
            for mut row in self.rows.drain(..) {
                if row.doc.is_none() {
                    let Some(doc) = docs.next().flatten() else { continue };
                    self.stats.docs_examined += 1;
                    row.doc = Some(doc.into_bytes());
                }
                if let Some(filter) = &mut self.filter
                    && !filter.matches(row.doc(), run.scope())?
                {
                    continue;
                }
                self.stats.returned += 1;
                out.push(row);
            }
            if out.len() > start && out.len() < limit && !self.done && wanted == ROWS_MAX {
                return Ok(true);
            }
        }
        self.stats.is_eof = self.done;
        Ok(!self.done)
    }

    fn rest(&mut self) {
        self.input.rest();
    }

    fn stats(&self) -> NodeStats {
        over(&self.input, &self.stats)
    }
}
