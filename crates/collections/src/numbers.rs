//! Finds the used collection and index numbers. A damaged log can lose the catalog's record of the
//! next number while data with such numbers still exist, and a number that is used twice makes one
//! of two collections disappear. So each open searches for the greatest number everywhere.

use std::sync::Arc;

use quire_catalog::{
    CATALOG_FORMAT, Catalog, FormatRecord, format_key, number_in_key, prefixes_of_numbers,
};
use quire_error::Result;
use quire_storage::{CommitOptions, Engine, Mode, Page, ScanRequest, Space, begin};

use crate::failure::from_storage;
use crate::meta::put_meta;

/// Returns the smallest number that is greater than every number in the catalog, its records, the
/// counters, the dropped ranges, and the keys of documents and index entries.
pub(crate) fn next(engine: &Arc<dyn Engine>, catalog: &Catalog) -> Result<u32> {
    let mut greatest = 0;
    let mut see = |number: u32| greatest = greatest.max(number);
    for collection in catalog.collections() {
        see(collection.id.0);
        collection.indexes.iter().for_each(|index| see(index.id.0));
        collection.buckets.iter().for_each(|buckets| see(buckets.0));
    }
    let traces = engine.traces();
    traces.counted.into_iter().for_each(&mut see);
    // The keys of the other spaces do not begin with a number.
    let dropped = traces.dropped.iter();
    let dropped = dropped.filter(|range| matches!(range.space, Space::Doc | Space::Idx));
    dropped.filter_map(|range| prefix_of(&range.start)).for_each(&mut see);
    for space in [Space::Doc, Space::Idx] {
        let last = engine.upper_bound(space).map_err(from_storage)?;
        last.as_deref().and_then(prefix_of).into_iter().for_each(&mut see);
    }
    let snapshot = engine.snapshot().map_err(from_storage)?;
    for (start, end) in prefixes_of_numbers() {
        let request = ScanRequest::new(Space::Meta, &start, &end).reverse().keys_only().rows_max(1);
        let mut page = Page::default();
        snapshot.scan(&request, &mut page).map_err(from_storage)?;
        page.rows.iter().filter_map(|(key, _)| number_in_key(key)).for_each(&mut see);
    }
    Ok(greatest.saturating_add(1))
}

/// Stores the next number.
pub(crate) fn store(engine: &Arc<dyn Engine>, next_id: u32) -> Result<()> {
    let mut txn = begin(engine, Mode::Write).map_err(from_storage)?;
    let record = FormatRecord { format: CATALOG_FORMAT, next_id };
    put_meta(&mut txn, &format_key(), record.encode())?;
    txn.commit(CommitOptions::buffered()).map_err(from_storage)?;
    Ok(())
}

fn prefix_of(key: &[u8]) -> Option<u32> {
    key.first_chunk::<4>().map(|prefix| u32::from_be_bytes(*prefix))
}
