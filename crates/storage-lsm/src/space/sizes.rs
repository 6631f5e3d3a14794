//! Estimates the size of a range of keys.

use quire_storage::backend::{Backend, RawSnapshot};
use quire_storage::{Page, Result, ScanRequest, Size, Space};

use crate::table::trees::TableList;

/// A range of at most this many keys is counted exactly.
const ROWS_COUNTED: usize = 2000;

/// Estimates the bytes and keys of a range: counts up to `ROWS_COUNTED` keys; a larger range is the
/// sum of the tables inside it and half of each table that overlaps it.
pub(crate) fn estimate(
    backend: &impl Backend,
    tables: &TableList,
    space: Space,
    start: &[u8],
    end: &[u8],
) -> Result<Size> {
    let mut page = Page::default();
    let request = ScanRequest::new(space, start, end).rows_max(ROWS_COUNTED);
    if request.is_empty() {
        return Ok(Size::default());
    }
    backend.snapshot()?.scan(&request, &mut page)?;
    let bytes: usize = page.rows.iter().map(|(key, value)| key.len() + value.len()).sum();
    let seen = Size { bytes: bytes as u64, keys: page.rows.len() as u64 };
    if page.resume.is_none() {
        return Ok(seen);
    }
    let mut size = Size::default();
    for table in tables.tables() {
        let keys = &table.metadata.key_range;
        if keys.max()[..] < *start || (!end.is_empty() && keys.min()[..] >= *end) {
            continue;
        }
        let whole = keys.min()[..] >= *start && (end.is_empty() || keys.max()[..] < *end);
        let share = if whole { 1 } else { 2 };
        size.bytes += table.metadata.file_size / share;
        size.keys += table.metadata.item_count / share;
    }
    Ok(Size { bytes: size.bytes.max(seen.bytes), keys: size.keys.max(seen.keys) })
}
