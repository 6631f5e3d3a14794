//! IDHACK: one document by its `_id`, and documents by the keys of a join, which are `_id`s.

use quire_document::{Value, ValueBuf};
use quire_error::{Error, Result};
use quire_mql::filter::InList;
use quire_planner::IdLookups as Planned;
use quire_planner::explain::NodeStats;

use crate::env::Run;
use crate::operators::{Filling, Operator};
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

/// Looks up the keys of a join as `_id`s, in the order of the index.
pub(crate) struct IdLookups {
    table: Table,
    ids: InList,
    backward: bool,
    /// True if the collection is clustered: users see no index that is used.
    clustered: bool,
    /// The number of `_id`s that have been looked up.
    done: usize,
    stats: NodeStats,
}

impl IdLookups {
    /// # Errors
    /// 1 InternalError for a plan that is not bound to keys.
    pub fn new(planned: &Planned) -> Result<Self> {
        let Planned { scan, ids } = planned;
        let ids = ids.clone().ok_or_else(|| Error::internal("look-ups by _id without keys"))?;
        Ok(IdLookups {
            table: Table::new(&scan.collection),
            ids,
            backward: scan.is_reversed(0),
            clustered: scan.index.is_clustered(),
            done: 0,
            stats: NodeStats::default(),
        })
    }
}

impl Operator for IdLookups {
    fn next(&mut self, run: &mut Run<'_>, max: usize, out: &mut Vec<Row>) -> Result<bool> {
        run.pause()?;
        let collection = self.table.resolve(run)?;
        let (view, mut filling) = (run.view(), Filling::new(out, max));
        let left = self.ids.len() - self.done;
        for _ in 0..left {
            if filling.is_full() {
                return Ok(true);
            }
            let at = if self.backward { self.ids.len() - 1 - self.done } else { self.done };
            self.done += 1;
            // No document has an `_id` of these types.
            let id =
                self.ids.get(at).filter(|id| !matches!(id, Value::Array(_) | Value::Undefined));
            let Some(id) = id else { continue };
            if let Some(record) = view.get_by_id(collection, id)? {
                self.stats.returned += 1;
                self.stats.bytes_read += record.doc.as_doc().len() as u64;
                filling.push(Row::of_document(record.id, record.doc.into_bytes()));
            }
        }
        self.stats.is_eof = true;
        Ok(false)
    }

    fn stats(&self) -> NodeStats {
        let found = self.stats.returned;
        let keys_examined = if self.clustered { 0 } else { found };
        NodeStats { keys_examined, docs_examined: found, ..self.stats.clone() }
    }
}
