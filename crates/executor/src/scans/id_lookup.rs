//! IDHACK: one document by its `_id`.

use quire_document::ValueBuf;
use quire_error::Result;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::Operator;
use crate::row::Row;
use crate::table::Table;

/// Returns the document whose `_id` is `id`, if there is one.
pub(crate) struct IdLookup {
    pub table: Table,
    pub id: ValueBuf,
    /// True if the collection is clustered: users see no index that is used.
    pub clustered: bool,
    /// Set by the lookup: true if the document was found.
    pub found: Option<bool>,
    /// The bytes of the document; 0 before the lookup.
    pub bytes: u64,
}

impl Operator for IdLookup {
    fn next(&mut self, run: &mut Run<'_>, _: usize, out: &mut Vec<Row>) -> Result<bool> {
        if self.found.is_none() {
            self.found = Some(false);
            let collection = self.table.resolve(run)?;
            if let Some(record) = run.view().get_by_id(collection, self.id.as_value())? {
                self.found = Some(true);
                self.bytes = record.doc.as_doc().len() as u64;
                out.push(Row::of_document(record.id, record.doc.into_bytes()));
            }
        }
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        let found = u64::from(self.found == Some(true));
        NodeStats {
            keys_examined: if self.clustered { 0 } else { found },
            docs_examined: found,
            bytes_read: self.bytes,
            returned: found,
            is_eof: self.found.is_some(),
            ..NodeStats::default()
        }
    }
}
