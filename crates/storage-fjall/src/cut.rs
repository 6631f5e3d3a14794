//! Where tables of documents begin. fjall makes a table of the documents in memory once they are too
//! many, whatever is under way. Two tables that overlap by one key are merged later, which writes both
//! again; a table that begins behind the last key of the one before is only moved.

use std::time::Duration;

use fjall::{AbstractTree, Keyspace};
use quire_storage::Result;

/// Bytes of documents in memory from which on a moment to make a table of them is waited for. At 32 MiB
/// fjall does not wait any longer.
const DUE_BYTES: u64 = 28 << 20;

/// Whether the documents in memory are nearly as many as fit. Where flushes are behind, larger tables
/// are better than more of them.
pub(crate) fn is_due(documents: &Keyspace) -> bool {
    let tree = &documents.tree;
    tree.active_memtable().size() >= DUE_BYTES && tree.sealed_memtable_count() == 0
}

/// Begins a new memtable, and returns once it is in use. Afterwards fjall removes what it needs no more,
/// for which no writer has to wait: a thread of its own does that, and drops `open` when it is done.
pub(crate) fn begin_table(documents: &Keyspace, open: impl Send + 'static) -> Result<()> {
    let active = || documents.tree.active_memtable().id();
    let (before, own) = (active(), documents.clone());
    let thread = std::thread::Builder::new().name("quire-cut".into());
    let cutting = thread.spawn(move || {
        // What fails here fails again when fjall does it, which the next look reports.
        let _ = own.rotate_memtable();
        drop((own, open));
    })?;
    while active() == before && !cutting.is_finished() {
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}
