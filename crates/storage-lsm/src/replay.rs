//! Writes the batches of the log to the memtables again when a database is opened.

use std::fs::File;
use std::path::PathBuf;

use lsm_tree::AbstractTree;
use quire_storage::{Result, Space};

use crate::damage::Damage;
use crate::journal::{self, inspect};
use crate::store::Store;
use crate::tables::of_space;

/// Replays log files, the oldest first. `log_guard` has cut them before, so that every record in
/// them is intact. Rows that are in tables are skipped.
pub(crate) fn replay(store: &Store, files: &[(u64, PathBuf)]) -> Result<()> {
    let persisted = Space::ALL.map(|space| store.trees.of(space).get_highest_persisted_seqno());
    for (number, path) in files {
        let found = inspect(path)?;
        let bytes = std::fs::read(path)?;
        for batch in &found.intact {
            let decoded = journal::decode(&bytes, batch);
            let changed = || Damage::new(path, "changed while it was read");
            let (seqno, mut ops) = decoded.ok_or_else(changed)?;
            ops.retain(|op| of_space(&persisted, op.space).is_none_or(|last| seqno > last));
            store.restore(ops, seqno, *number)?;
        }
        // A table must not outlive the batches before it.
        File::open(path)?.sync_data()?;
    }
    Ok(())
}
