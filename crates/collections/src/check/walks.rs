//! The scans of a check: a range page by page, and the documents of a collection, also across
//! damaged blocks of the engine.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use quire_catalog::{Collection, CollectionId};
use quire_error::Result;
use quire_storage::{Interrupt, Page, ScanRequest, Snapshot, Space, StorageError};

use crate::RecordId;
use crate::failure::{from_interruption, from_storage};
use crate::layout::{collection_end, doc_key, record_id_of};

/// The number of documents in a page.
const ROWS_MAX: usize = 1000;

/// Ranges of record ids whose documents cannot be read, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Unreadable(Vec<RangeInclusive<u64>>);

impl Unreadable {
    /// Returns the ranges. The last one may extend to the end of all record ids.
    pub fn stretches(&self) -> &[RangeInclusive<u64>] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, id: RecordId) -> bool {
        self.0.iter().any(|stretch| stretch.contains(&id.0))
    }
}

/// Calls `each` for every readable document. Returns the ranges that cannot be read.
pub(super) fn walk_documents(
    snapshot: &dyn Snapshot,
    collection: &Collection,
    interrupt: &Arc<Interrupt>,
    mut each: impl FnMut(RecordId, &Bytes) -> Result<()>,
) -> Result<Unreadable> {
    let (mut from, mut rows, mut unreadable) = (Some(1), ROWS_MAX, Unreadable::default());
    let mut page = Page::default();
    while let Some(first) = from {
        interrupt.check().map_err(from_interruption)?;
        match scan(snapshot, collection.id, first, rows, &mut page) {
            Ok(()) => {
                rows = (rows * 2).min(ROWS_MAX);
                let mut last = first;
                for (key, value) in &page.rows {
                    let id = record_id_of(key)?;
                    each(id, value)?;
                    last = id.0;
                }
                from = page.resume.as_ref().and_then(|_| last.checked_add(1));
            }
            // Rows before the damage can be read in smaller pages.
            Err(StorageError::Corruption { .. }) if rows > 1 => rows = (rows / 8).max(1),
            Err(StorageError::Corruption { .. }) => {
                from = first_readable(snapshot, collection.id, first)?;
                unreadable.0.push(first..=from.map_or(u64::MAX, |next| next - 1));
            }
            Err(error) => return Err(from_storage(error)),
        }
    }
    Ok(unreadable)
}

/// Returns a record id after `damaged` at which reading succeeds and just before which it fails.
/// The search steps grow, so it can miss a readable row between two damaged blocks.
fn first_readable(
    snapshot: &dyn Snapshot,
    collection: CollectionId,
    damaged: u64,
) -> Result<Option<u64>> {
    let mut page = Page::default();
    let mut is_readable = |id| match scan(snapshot, collection, id, 1, &mut page) {
        Ok(()) => Ok(true),
        Err(StorageError::Corruption { .. }) => Ok(false),
        Err(error) => Err(from_storage(error)),
    };
    let (mut below, mut step) = (damaged, 1);
    let mut above = loop {
        let Some(next) = below.checked_add(step) else { return Ok(None) };
        if is_readable(next)? {
            break next;
        }
        (below, step) = (next, (next - damaged) / 8 + 1);
    };
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        match is_readable(middle)? {
            true => above = middle,
            false => below = middle,
        }
    }
    Ok(Some(above))
}

fn scan(
    snapshot: &dyn Snapshot,
    collection: CollectionId,
    first: u64,
    rows: usize,
    page: &mut Page,
) -> Result<(), StorageError> {
    let (start, end) = (doc_key(collection, RecordId(first)), collection_end(collection));
    snapshot.scan(&ScanRequest::new(Space::Doc, &start, &end).rows_max(rows), page)
}

/// Calls `each` for every key of a range.
pub(super) fn walk(
    snapshot: &dyn Snapshot,
    space: Space,
    mut start: Vec<u8>,
    end: &[u8],
    interrupt: &Arc<Interrupt>,
    mut each: impl FnMut(&Bytes, &Bytes) -> Result<()>,
) -> Result<()> {
    let mut page = Page::default();
    loop {
        interrupt.check().map_err(from_interruption)?;
        snapshot.scan(&ScanRequest::new(space, &start, end), &mut page).map_err(from_storage)?;
        for (key, value) in &page.rows {
            each(key, value)?;
        }
        match &page.resume {
            Some(resume) => start = resume.to_vec(),
            None => return Ok(()),
        }
    }
}
