//! Where tables of documents begin.
//!
//! Writers take record ids before their commit, so the documents of one that is unfinished when a
//! table begins have smaller ids than others in the table before. The two tables would overlap by
//! these documents, and a merge would write all documents of both again. So the late documents go to
//! the table before, until their writers have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use quire_catalog::CollectionId;
use quire_storage::{Bytes, Engine};

use crate::RecordId;
use crate::layout::doc_key;
use crate::low_water::RecordIds;

/// The writers that were unfinished when the newest table of documents began.
#[derive(Default)]
pub(crate) struct LateWriters {
    /// True if there are any.
    any: AtomicBool,
    /// Their collections, each with a bound of the ids that had been taken.
    collections: Mutex<Vec<(Arc<RecordIds>, RecordId)>>,
}

impl LateWriters {
    /// Makes `engine` begin its next table of documents, if that is about to begin. `known` has the
    /// record ids of every collection with writers.
    pub(crate) fn begin_table(
        &self,
        engine: &dyn Engine,
        known: &[(CollectionId, Arc<RecordIds>)],
    ) {
        let mut collections = self.collections.lock();
        let mut late = || {
            let (mut writers, mut keys) = (Vec::new(), Vec::new());
            for (id, ids) in known {
                if let Some(below) = ids.late_below() {
                    let [start, end] = [RecordId(0), below].map(|record| doc_key(*id, record));
                    keys.push(Bytes::copy_from_slice(&start)..Bytes::copy_from_slice(&end));
                    writers.push((Arc::clone(ids), below));
                }
            }
            *collections = writers;
            keys
        };
        // If this fails, the memtable becomes a table when it is full.
        let _ = engine.cut_table(&mut late);
        self.any.store(!collections.is_empty(), Ordering::Release);
    }

    /// Tells `engine` when all of these writers have ended.
    pub(crate) fn look(&self, engine: &dyn Engine) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        // If the lock is held, another thread looks.
        let Some(mut collections) = self.collections.try_lock() else { return };
        collections.retain(|(ids, below)| ids.is_unfinished_below(*below));
        if collections.is_empty() && self.any.swap(false, Ordering::AcqRel) {
            engine.end_late();
        }
    }
}
