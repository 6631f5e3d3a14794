//! Facts about an index's entries (multikey paths, long keys). The commit that makes a fact true
//! stores it; readers see the fact before that commit.

use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Facts, FactsBuf, Index, Multikey, multikey_key};
use quire_storage::{Snapshot, Space, Txn};

use crate::failure::Attempt;
use crate::meta::meta_doc;

/// Facts that a transaction has written. Its commit makes them true.
#[derive(Debug, Clone)]
pub(crate) struct GrownFacts {
    pub(crate) multikey: Arc<Multikey>,
    pub(crate) facts: FactsBuf,
}

/// Makes sure that the facts are stored, at the latest by this transaction's commit. Returns the
/// facts that the commit stores, if it stores any.
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
    // Else this transaction wrote them before, or a commit that is not yet noted in memory.
    let grows = all != before;
    if grows {
        let record = all.encode().into_bytes().into();
        txn.put(Space::Meta, Bytes::copy_from_slice(&key), record)?;
    }
    multikey.grow(&all);
    Ok(grows.then(|| GrownFacts { multikey: Arc::clone(multikey), facts: all }))
}

impl GrownFacts {
    /// Notes the facts in memory, after the commit.
    pub(crate) fn committed(&self) {
        self.multikey.mark_stored(&self.facts);
    }
}
