//! The rows of the recorder's windows (docs/format.md, "The recorder"). What is in a row is for the
//! layer above.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::CollectionId;
use quire_document::{Doc, DocBuf};
use quire_error::Result;
use quire_storage::{CommitOptions, Mode, Page, ScanRequest, Space};

use crate::Store;
use crate::failure::from_storage;
use crate::meta::{meta_doc, put_meta};

/// The first byte of every key.
const RECORDED: u8 = b'q';
/// The rows that are read or deleted at a time.
const PAGE_ROWS: usize = 500;

/// A row of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRow {
    /// The hours since 1970.
    pub hour: u32,
    /// The key of a shape; `None` for the row of the window itself.
    pub shape: Option<u64>,
    /// The content, a document.
    pub row: DocBuf,
}

impl Store {
    /// Counts a document that a rule wrote because of another write.
    pub(crate) fn note_derived(&self, collection: CollectionId) {
        *self.derived.lock().entry(collection).or_default() += 1;
    }

    /// Returns how many documents rules wrote into each collection since the last call.
    pub fn take_derived(&self) -> HashMap<CollectionId, u64> {
        std::mem::take(&mut *self.derived.lock())
    }

    /// Stores rows in one commit and deletes the rows of other shapes of an hour.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn put_recorded(
        self: &Arc<Self>,
        rows: &[RecordedRow],
        hour: u32,
        gone: &[u64],
        options: CommitOptions,
    ) -> Result<()> {
        let (mut txn, _) = self.begin(Mode::Write)?;
        for shape in gone {
            txn.delete(Space::Meta, key(hour, Some(*shape)).into()).map_err(from_storage)?;
        }
        for RecordedRow { hour, shape, row } in rows {
            put_meta(&mut txn, &key(*hour, *shape), row.clone())?;
        }
        txn.commit(options).map(|_| ()).map_err(from_storage)
    }

    /// Calls `each` with hour, shape and content of the rows of these hours, in this order. Damaged
    /// rows are left out: nothing depends on them.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn recorded(
        self: &Arc<Self>,
        hours: RangeInclusive<u32>,
        each: &mut dyn FnMut(u32, Option<u64>, Doc<'_>),
    ) -> Result<()> {
        let end = end_of(*hours.end());
        let start = key(*hours.start(), None);
        let request = ScanRequest::new(Space::Meta, &start, &end).rows_max(PAGE_ROWS);
        let (mut page, mut resume) = (Page::default(), None::<Bytes>);
        let snapshot = self.engine().snapshot().map_err(from_storage)?;
        loop {
            let request = resume.as_deref().map_or(request, |from| request.resumed(from));
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            for (key, value) in &page.rows {
                if let (Some((hour, shape)), Ok(row)) = (parse(key), meta_doc(value)) {
                    each(hour, shape, row);
                }
            }
            resume = page.resume.take();
            if resume.is_none() {
                return Ok(());
            }
        }
    }

    /// Deletes the rows of all hours before `before`.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn delete_recorded(self: &Arc<Self>, before: u32, options: &CommitOptions) -> Result<()> {
        let end = key(before, None);
        loop {
            let snapshot = self.engine().snapshot().map_err(from_storage)?;
            let from = [RECORDED];
            let request =
                ScanRequest::new(Space::Meta, &from, &end).keys_only().rows_max(PAGE_ROWS);
            let mut page = Page::default();
            snapshot.scan(&request, &mut page).map_err(from_storage)?;
            if page.rows.is_empty() {
                return Ok(());
            }
            let (mut txn, _) = self.begin(Mode::Write)?;
            for (key, _) in &page.rows {
                txn.delete(Space::Meta, Bytes::copy_from_slice(key)).map_err(from_storage)?;
            }
            txn.commit(options.clone()).map_err(from_storage)?;
        }
    }
}

fn key(hour: u32, shape: Option<u64>) -> Vec<u8> {
    let mut key = vec![RECORDED];
    key.extend_from_slice(&hour.to_be_bytes());
    if let Some(shape) = shape {
        key.extend_from_slice(&shape.to_be_bytes());
    }
    key
}

/// Returns the first key after those of an hour.
fn end_of(hour: u32) -> Vec<u8> {
    match hour.checked_add(1) {
        Some(next) => key(next, None),
        None => vec![RECORDED + 1],
    }
}

fn parse(key: &[u8]) -> Option<(u32, Option<u64>)> {
    let (hour, shape) = key.strip_prefix(&[RECORDED])?.split_first_chunk::<4>()?;
    let shape = match shape {
        [] => None,
        shape => Some(u64::from_be_bytes(shape.try_into().ok()?)),
    };
    Some((u32::from_be_bytes(*hour), shape))
}
