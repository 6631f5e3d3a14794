//! Snapshots that stay open while much is written (docs/adr/0010-long-snapshots.md). Every snapshot
//! keeps its memtables and tables, and nothing else. The memtables of those that stay open long are
//! counted here, because they occupy memory that no flush frees.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use quire_storage::Space;

use crate::store::view::View;
use crate::table::tuning::memtable_bytes;

/// The views of the snapshots that are held for long.
#[derive(Default)]
pub(crate) struct HeldViews(Mutex<Vec<Weak<View>>>);

/// Counts a view as held until it is dropped.
pub(crate) struct HeldMark {
    view: Weak<View>,
    held: Arc<HeldViews>,
}

impl HeldViews {
    /// Counts a view as held.
    pub fn add(self: &Arc<Self>, view: &Arc<View>) -> HeldMark {
        let view = Arc::downgrade(view);
        self.0.lock().push(Weak::clone(&view));
        HeldMark { view, held: Arc::clone(self) }
    }

    /// Returns the memory, in bytes, of the memtables of held views. One that is still written to
    /// counts as full.
    pub fn bytes(&self) -> u64 {
        let held: Vec<Arc<View>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let mut counted = HashSet::new();
        let mut bytes = 0;
        for (view, space) in held.iter().flat_map(|view| Space::ALL.map(|space| (view, space))) {
            for memtable in view.of(space).memtables.iter().filter(|it| !it.is_empty()) {
                if counted.insert(Arc::as_ptr(memtable)) {
                    bytes += memtable.bytes().max(memtable_bytes(space));
                }
            }
        }
        bytes
    }
}

impl Drop for HeldMark {
    fn drop(&mut self) {
        let mut held = self.held.0.lock();
        if let Some(at) = held.iter().position(|view| Weak::ptr_eq(view, &self.view)) {
            held.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quire_storage::Op;

    use super::*;
    use crate::LsmOptions;
    use crate::store::Store;

    #[test]
    fn an_active_memtable_counts_as_full() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), &LsmOptions::default(), &Arc::default(), 1);
        let store = store.unwrap();
        let put = |number: u64| {
            let (key, value) = (Bytes::from(number.to_be_bytes().to_vec()), vec![7; 1 << 20]);
            store.write(vec![Op { space: Space::Doc, key, value: Some(value.into()) }], false)
        };
        put(0).unwrap();
        let held = Arc::new(HeldViews::default());
        let view = store.view();
        let _mark = held.add(&view);
        let counted = held.bytes();
        let first = view.of(Space::Doc).active().number();
        let is_active = || store.view().of(Space::Doc).active().number() == first;
        (1..).take_while(|_| is_active()).for_each(|number| put(number).unwrap());
        let (one, bytes) = (1 << 20, held.bytes());
        assert!((counted - one..counted + 2 * one).contains(&bytes), "{counted} and {bytes}");
    }
}
