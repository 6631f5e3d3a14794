//! IDHACK: one document by its `_id`.

use quire_document::ValueBuf;
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;
use crate::scans::table::Table;

/// Gives the document whose `_id` is `id`, if there is one.
pub(crate) struct IdLookup {
    pub table: Table,
    pub id: ValueBuf,
    pub stats: NodeStats,
}

impl Operator for IdLookup {
    fn next(&mut self, run: &mut Run<'_>, _: usize, out: &mut Vec<Row>) -> Result<bool> {
        if !self.stats.is_eof {
            self.stats.is_eof = true;
            let collection = self.table.resolve(run)?;
            if let Some(record) = run.view().get_by_id(collection, self.id.as_value())? {
                self.stats.keys_examined = 1;
                self.stats.docs_examined = 1;
                self.stats.returned = 1;
                out.push(Row::of_document(record.id, record.doc.into_bytes()));
            }
        }
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        self.stats.clone()
    }
}
