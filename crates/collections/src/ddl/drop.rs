//! `drop` and `dropDatabase`: one commit each. The space is freed later.

use std::sync::Arc;

use quire_catalog::{Collection, Namespace};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;

use super::drop_data;
use super::pattern_names::Fate;
use crate::Store;

impl Store {
    /// Drops a collection and returns it; `None` if there was none. Dropping `system.views` drops
    /// all views of the database. 20 IllegalOperation if a pattern forbids it.
    pub fn drop_collection(
        self: &Arc<Self>,
        namespace: &Namespace,
        options: &CommitOptions,
    ) -> Result<Option<Arc<Collection>>> {
        let dropped = self.change_catalog(options, |writer, catalog, next_id| {
            let Some(collection) = catalog.lookup(namespace) else { return Ok((None, None)) };
            drop_data(writer, collection)?;
            let next = catalog.without(namespace);
            let next = self.patterns_after(writer, next, next_id, (collection, Fate::Dropped))?;
            Ok((Some(next), Some(Arc::clone(collection))))
        })?;
        if let Some(collection) = &dropped {
            self.forget_record_ids(collection.id);
        }
        Ok(dropped)
    }

    /// Drops all collections of a database and returns their number.
    pub fn drop_database(self: &Arc<Self>, db: &str, options: &CommitOptions) -> Result<usize> {
        if db == "local" {
            return Err(Error::new(
                ErrorCode::IllegalOperation,
                "Cannot drop 'local' database while replication is active",
            ));
        }
        let dropped = self.change_catalog(options, |writer, catalog, _| {
            let Some(database) = catalog.database(db) else { return Ok((None, Vec::new())) };
            let collections: Vec<_> = database.collections().cloned().collect();
            writer.note_database_dropped(db);
            collections.iter().try_for_each(|collection| drop_data(writer, collection))?;
            Ok((Some(catalog.without_database(db)), collections))
        })?;
        dropped.iter().for_each(|collection| self.forget_record_ids(collection.id));
        Ok(dropped.len())
    }
}
