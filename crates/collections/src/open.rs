//! Opening a store: reads the catalog from the engine and removes the remains of work that a crash has interrupted.

use std::sync::Arc;

use quire_catalog::{
    CATALOG_FORMAT, Catalog, FormatRecord, IndexState, decode_collection, format_key, multikey_key,
    parse_collection_key, prefix_of_collections,
};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::{CommitOptions, Engine, Page, ScanRequest, Space};

use crate::change_log;
use crate::failure::from_storage;
use crate::layout::damaged;
use crate::meta::meta_doc;
use crate::numbers;
use crate::{Store, StoreOptions};

impl Store {
    /// Opens the data of an engine: reads the catalog, and makes sure that no number is used again
    /// that any data in the engine have (a damaged log can lose the record of the next number).
    /// Drops temporary collections and indexes whose build a crash interrupted. Refuses a newer
    /// format (MustUpgrade).
    pub fn open(engine: Arc<dyn Engine>, options: StoreOptions) -> Result<Arc<Self>> {
        let (catalog, known_id) = load(&engine)?;
        let logs_changes = change_log::open(&engine, options.change_log)?;
        let next_id = numbers::next(&engine, &catalog)?.max(known_id);
        if next_id > known_id {
            numbers::store(&engine, next_id)?;
        }
        let store = Arc::new(Store::new(engine, options, catalog, next_id));
        store.set_logs_changes(logs_changes);
        store.load_views()?;
        store.drop_unfinished()?;
        Ok(store)
    }

    fn drop_unfinished(self: &Arc<Self>) -> Result<()> {
        let options = CommitOptions::buffered();
        for collection in self.catalog().collections() {
            if collection.options.is_temporary() {
                self.drop_collection(&collection.namespace, &options)?;
                continue;
            }
            let unfinished =
                collection.indexes.iter().filter(|index| index.state == IndexState::WriteOnly);
            let doomed: Vec<_> = unfinished.map(|index| index.id).collect();
            if !doomed.is_empty() {
                self.remove_indexes(&collection.namespace, &doomed, &options)?;
            }
        }
        Ok(())
    }
}

fn load(engine: &Arc<dyn Engine>) -> Result<(Catalog, u32)> {
    let snapshot = engine.snapshot().map_err(from_storage)?;
    let next_id = match snapshot.get(Space::Meta, &format_key()).map_err(from_storage)? {
        None => 1,
        Some(bytes) => {
            let record = FormatRecord::decode(meta_doc(&bytes)?)?;
            if record.format > CATALOG_FORMAT {
                return Err(Error::new(
                    ErrorCode::MustUpgrade,
                    format!(
                        "the data were written in format {}, this version knows formats up to {CATALOG_FORMAT}",
                        record.format
                    ),
                ));
            }
            record.next_id
        }
    };
    let (start, end) = prefix_of_collections();
    let (mut collections, mut page) = (Vec::new(), Page::default());
    let mut from = start.to_vec();
    loop {
        snapshot
            .scan(&ScanRequest::new(Space::Meta, &from, &end), &mut page)
            .map_err(from_storage)?;
        for (key, value) in &page.rows {
            let id = parse_collection_key(key).ok_or_else(|| damaged("a catalog key"))?;
            collections.push(decode_collection(id, meta_doc(value)?, |index| {
                let facts =
                    snapshot.get(Space::Meta, &multikey_key(index)).map_err(from_storage)?;
                facts.map(|bytes| Ok(meta_doc(&bytes)?.to_owned())).transpose()
            })?);
        }
        match &page.resume {
            Some(resume) => from = resume.to_vec(),
            None => return Ok((Catalog::new(collections), next_id)),
        }
    }
}
