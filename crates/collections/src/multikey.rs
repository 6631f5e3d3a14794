//! Facts about an index's entries (multikey paths, long keys): stored by the commit that makes
//! them true, shown to readers before it.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Facts, FactsBuf, Index, Multikey, multikey_key};
use quire_storage::{Snapshot, Space, Txn};

use crate::failure::Attempt;
use crate::meta::meta_doc;

/// Facts that a transaction has written and that its commit makes true.
#[derive(Debug, Clone)]
pub(crate) struct GrownFacts {
    pub(crate) multikey: Arc<Multikey>,
    pub(crate) facts: FactsBuf,
}

/// Sees to it that the facts are stored, at the latest by this transaction's commit. Answers
/// what the commit will have stored, if it stores anything.
pub(crate) fn grow(txn: &mut Txn, index: &Index, facts: &Facts<'_>) -> Attempt<Option<GrownFacts>> {
    let multikey = &index.multikey;
    if multikey.stored_covers(facts) {
        return Ok(None);
    }
    let key = multikey_key(index.id);
    let before = match txn.get(Space::Meta, &key)? {
        Some(bytes) => FactsBuf::decode(meta_doc(&bytes)?)?,
        None => FactsBuf::default(),
    };
    let mut all = before.clone();
    all.paths.resize(facts.paths.len(), 0);
    all.merge(facts);
    // Else written by this transaction before, or by a commit whose end has not been noted yet.
    let grows = all != before;
    if grows {
        let record = all.encode().into_bytes().into();
        txn.put(Space::Meta, Bytes::copy_from_slice(&key), record)?;
    }
    multikey.grow(&all);
    Ok(grows.then(|| GrownFacts { multikey: Arc::clone(multikey), facts: all }))
}

impl GrownFacts {
    /// After the commit.
    pub(crate) fn committed(&self) {
        self.multikey.mark_stored(&self.facts);
    }
}
