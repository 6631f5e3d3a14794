//! Facts about an index's entries (multikey paths, long keys): stored by the commit that makes
//! them true, shown to readers before it.

use bytes::Bytes;
use quire_catalog::{Index, Multikey, multikey_key};
use quire_storage::{Snapshot, Space, Txn};

use crate::failure::Attempt;
use crate::store::meta_doc;

/// Facts that a transaction has written and that its commit makes true.
#[derive(Debug, Clone)]
pub(crate) struct GrownFacts {
    pub(crate) multikey: std::sync::Arc<Multikey>,
    pub(crate) paths: Vec<u64>,
    pub(crate) long_keys: bool,
}

/// Sees to it that the facts are stored, at the latest by this transaction's commit. Answers
/// what the commit will have stored, if it stores anything.
pub(crate) fn grow(
    txn: &mut Txn,
    index: &Index,
    paths: &[u64],
    long_keys: bool,
) -> Attempt<Option<GrownFacts>> {
    let multikey = &index.multikey;
    if multikey.stored_covers(paths, long_keys) {
        return Ok(None);
    }
    let key = multikey_key(index.id);
    let (mut all, mut all_long) = (paths.to_vec(), long_keys);
    if let Some(bytes) = txn.get(Space::Meta, &key)? {
        let (before, long_before) = Multikey::decode_facts(meta_doc(&bytes)?)?;
        let covered = before.iter().zip(&all).all(|(old, new)| old & new == *new);
        for (bits, old) in all.iter_mut().zip(&before) {
            *bits |= old;
        }
        all_long |= long_before;
        if covered && (long_before || !long_keys) && before.len() == paths.len() {
            // Written by this transaction before, or by a commit whose end nobody has noted yet.
            multikey.grow(paths, long_keys);
            return Ok(None);
        }
    }
    let record = Multikey::encode_facts(&all, all_long);
    txn.put(Space::Meta, Bytes::copy_from_slice(&key), record.into_bytes().into())?;
    multikey.grow(&all, all_long);
    Ok(Some(GrownFacts { multikey: multikey.clone(), paths: all, long_keys: all_long }))
}

impl GrownFacts {
    /// After the commit.
    pub(crate) fn committed(&self) {
        self.multikey.mark_stored(&self.paths, self.long_keys);
    }
}
