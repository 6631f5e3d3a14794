//! Removes facts about index entries that no document needs any more, for a repair.

use std::sync::Arc;

use quire_catalog::{CollectionId, FactsBuf, IndexId, Multikey, Namespace, multikey_key};
use quire_error::Result;
use quire_storage::CommitOptions;

use super::{next_epoch, put_collection};
use crate::Store;
use crate::meta::put_meta;

impl Store {
    /// Replaces the facts about the entries of indexes. An open view keeps the catalog of its time
    /// and so the earlier facts; a running write conflicts and is retried. Does nothing if the
    /// collection is gone.
    pub(crate) fn narrow_facts(
        self: &Arc<Self>,
        namespace: &Namespace,
        id: CollectionId,
        facts: &[(IndexId, FactsBuf)],
    ) -> Result<()> {
        self.change_catalog(&CommitOptions::synced(), |writer, catalog, _| {
            let Some(now) = catalog.lookup(namespace).filter(|now| now.id == id) else {
                return Ok((None, ()));
            };
            let mut next = next_epoch(now);
            for index in &mut next.indexes {
                let Some((_, facts)) = facts.iter().find(|(id, _)| *id == index.id) else {
                    continue;
                };
                put_meta(writer.txn_mut(), &multikey_key(index.id), facts.encode())?;
                let fields = index.keys.fields().len();
                Arc::make_mut(index).multikey = Arc::new(Multikey::restored(fields, facts));
            }
            put_collection(writer, &next)?;
            Ok((Some(catalog.with(Arc::new(next))), ()))
        })
    }
}
