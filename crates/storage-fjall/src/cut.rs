//! Where tables of documents begin. fjall turns the memtable into a table when it is full, also in
//! the middle of a statement. A later compaction merges two tables whose keys overlap, which writes
//! both again; it only moves a table that begins after the last key of the table before.

use std::time::Duration;

use fjall::{AbstractTree, Keyspace};
use quire_storage::Result;

/// The size of the memtable of documents, in bytes, from which the committer looks for a good
/// moment to begin a new table. At 32 MiB fjall does not wait any longer.
const DUE_BYTES: u64 = 28 << 20;

/// Returns true if the memtable of documents is nearly full. If flushes are behind, it returns
/// false: larger tables are better than more of them then.
pub(crate) fn is_due(documents: &Keyspace) -> bool {
    let tree = &documents.tree;
    tree.active_memtable().size() >= DUE_BYTES && tree.sealed_memtable_count() == 0
}

/// Begins a new memtable and returns when it is in use. Then a separate thread lets fjall remove
/// the files that it no longer needs, so that no writer waits for that, and drops `open` at its
/// end.
pub(crate) fn begin_table(documents: &Keyspace, open: impl Send + 'static) -> Result<()> {
    let active = || documents.tree.active_memtable().id();
    let (before, own) = (active(), documents.clone());
    let thread = std::thread::Builder::new().name("quire-cut".into());
    let cutting = thread.spawn(move || {
        // If it fails here, fjall's own attempt fails too, and the next `look` reports that.
        let _ = own.rotate_memtable();
        drop((own, open));
    })?;
    while active() == before && !cutting.is_finished() {
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}
