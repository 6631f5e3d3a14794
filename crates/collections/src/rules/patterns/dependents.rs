//! The documents that have a value at the local field of a pattern, found with the index that the
//! pattern has.

use std::sync::Arc;

use quire_catalog::{Collection, Index};
use quire_document::Value;
use quire_storage::Direction;

use super::needed_index;
use crate::failure::Attempt;
use crate::rules::RuleWriter;
use crate::{IndexCursor, IndexEntry, IndexRange, Record};

/// The entries of a page.
const PAGE: usize = 128;

/// The entries of one value in an index.
pub(super) struct Dependents {
    index: Arc<Index>,
    cursor: IndexCursor,
    /// The first page, if it was read to count the entries, and true if more follow.
    counted: Option<(Vec<IndexEntry>, bool)>,
}

impl Dependents {
    /// Returns the documents of `collection` with `value` at `path`, from a stored position on.
    ///
    /// # Errors
    /// 27 IndexNotFound if the collection has no index for it.
    pub fn new(
        collection: &Collection,
        path: &str,
        value: Value<'_>,
        position: Option<&[u8]>,
    ) -> Attempt<Self> {
        let index = Arc::clone(needed_index(collection, path)?);
        let range = IndexRange::equal(&index, &[value]);
        let range = match position {
            Some(position) => range.beginning_at(position),
            None => range,
        };
        let cursor = IndexCursor::new(&index, range, Direction::Forward);
        Ok(Dependents { index, cursor, counted: None })
    }

    /// Returns true if there are more than `limit` entries.
    pub fn exceed(&mut self, writer: &dyn RuleWriter, limit: u32) -> Attempt<bool> {
        let mut page = Vec::new();
        let more = self.cursor.next_page(&writer.view(), PAGE, &mut page)?;
        let found = page.len();
        self.counted = Some((page, more));
        let mut left = (limit as usize + 1).saturating_sub(found);
        if left == 0 {
            return Ok(true);
        }
        let range = self.cursor.remaining().clone();
        let mut cursor = IndexCursor::new(&self.index, range, Direction::Forward);
        while more && !cursor.is_done() {
            let (passed, _) = cursor.pass_page(&writer.view(), left)?;
            left = left.saturating_sub(passed);
            if left == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the first document that is `wanted`.
    pub fn first(
        mut self,
        collection: &Collection,
        writer: &dyn RuleWriter,
        wanted: impl Fn(&Record) -> bool,
    ) -> Attempt<Option<Record>> {
        let (mut entries, mut more) = (Vec::new(), true);
        while more {
            entries.clear();
            more = self.cursor.next_page(&writer.view(), PAGE, &mut entries)?;
            for entry in &entries {
                let Some(doc) = writer.view().get(collection, entry.record)? else { continue };
                let record = Record { id: entry.record, doc };
                if wanted(&record) {
                    return Ok(Some(record));
                }
            }
        }
        Ok(None)
    }

    /// Visits the documents until the commit's budget is spent. Returns the position at which to go
    /// on; `None` after the last document.
    pub fn visit(
        mut self,
        collection: &Collection,
        writer: &mut dyn RuleWriter,
        mut visit: impl FnMut(&mut dyn RuleWriter, &Record) -> Attempt<()>,
    ) -> Attempt<Option<Vec<u8>>> {
        let mut entries = Vec::new();
        loop {
            let more = match self.counted.take() {
                Some((page, more)) => {
                    entries = page;
                    more
                }
                None => {
                    entries.clear();
                    self.cursor.next_page(&writer.view(), PAGE, &mut entries)?
                }
            };
            for entry in &entries {
                if writer.is_spent() {
                    return Ok(Some(self.position(entry)));
                }
                let Some(doc) = writer.view().get(collection, entry.record)? else { continue };
                let record = Record { id: entry.record, doc };
                visit(writer, &record)?;
            }
            if !more {
                return Ok(None);
            }
        }
    }

    /// Returns the key of an entry.
    fn position(&self, entry: &IndexEntry) -> Vec<u8> {
        let mut key = self.index.id.to_bytes().to_vec();
        key.extend_from_slice(&entry.values);
        if !self.index.unique {
            key.extend_from_slice(&entry.record.0.to_be_bytes());
        }
        key
    }
}
