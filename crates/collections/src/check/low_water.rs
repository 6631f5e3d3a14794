//! The stored low-water mark of a collection's record ids. Scans begin at it, so a mark that is too
//! high hides documents.

use bytes::Bytes;
use quire_catalog::low_water_key;
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Page, ScanRequest, Space, StorageError, begin};

use super::{Checker, Problem, Repair};
use crate::layout::{collection_end, doc_key, record_id_of};
use crate::{RecordId, from_storage};

impl Checker<'_> {
    /// Compares the mark with the first document. A repair resets a wrong mark, so that scans begin
    /// at the first record id.
    pub(super) fn check_low_water(&mut self) -> Result<()> {
        let id = self.collection.id;
        let snapshot = self.store.engine().snapshot().map_err(from_storage)?;
        let key = low_water_key(id);
        let Some(stored) = snapshot.get(Space::Meta, &key).map_err(from_storage)? else {
            return Ok(());
        };
        let (start, end) = (doc_key(id, RecordId(0)), collection_end(id));
        let request = ScanRequest::new(Space::Doc, &start, &end).keys_only().rows_max(1);
        let mut page = Page::default();
        match snapshot.scan(&request, &mut page) {
            // The scan of the documents has reported it.
            Err(StorageError::Corruption { .. }) => return Ok(()),
            read => read.map_err(from_storage)?,
        }
        let first = page.rows.first().map(|(key, _)| record_id_of(key)).transpose()?;
        let problem = match <[u8; 8]>::try_from(&stored[..]).map(u64::from_be_bytes) {
            Ok(mark) if first.is_none_or(|first| mark <= first.0) => return Ok(()),
            Ok(mark) => {
                format!("the low-water mark {mark} hides documents with smaller record ids")
            }
            Err(_) => "the low-water mark is damaged".to_owned(),
        };
        let repairs = self.repair == Repair::All;
        self.find(problem, Problem::Other, repairs);
        if repairs {
            let mut txn = begin(self.store.engine(), Mode::Write).map_err(from_storage)?;
            txn.delete_entry(Space::Meta, Bytes::copy_from_slice(&key)).map_err(from_storage)?;
            txn.commit(CommitOptions::synced()).map_err(from_storage)?;
            if let Some(ids) = self.store.record_ids_if_known(id) {
                ids.forget_mark();
            }
        }
        Ok(())
    }
}
