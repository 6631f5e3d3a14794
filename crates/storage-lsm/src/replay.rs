//! Writes the batches of the log to the memtables again when a database is opened.

use std::fs::File;
use std::path::PathBuf;

use lsm_tree::AbstractTree;
use quire_storage::{Result, Space};

use crate::damage::Damage;
use crate::journal::{self, Decoded};
use crate::store::Store;
use crate::tables::of_space;

/// Replays log files, the oldest first. `log_guard` has cut them before, so that every record in
/// them is intact. Rows that are in tables are skipped.
pub(crate) fn replay(store: &Store, files: &[(u64, PathBuf)]) -> Result<()> {
    let persisted = Space::ALL.map(|space| store.trees.of(space).get_highest_persisted_seqno());
    for (number, path) in files {
        let bytes = std::fs::read(path)?;
        // A table must not outlive the batches before it.
        File::options().write(true).open(path)?.sync_data()?;
        let mut at = 0;
        while let Some(batch) = journal::decode(&bytes, at) {
            let Decoded { seqno, mut ops, end } = batch;
            ops.retain(|op| of_space(&persisted, op.space).is_none_or(|last| seqno > last));
            store.restore(ops, seqno, *number)?;
            at = end;
        }
        if !journal::is_unused_from(&bytes, at) {
            return Err(Damage::new(path, "changed while it was read").into());
        }
    }
    Ok(())
}
