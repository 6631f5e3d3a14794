//! Drops whole buckets: those whose last point has expired, and those of a delete whose filter takes whole buckets.

use quire_catalog::Collection;
use quire_error::Result;
use quire_storage::Direction;

use crate::failure::Attempt;
use crate::series::{BucketCursor, BucketEntry, Span};
use crate::{View, Writer};

/// The buckets of a page of the directory.
const PAGE_ROWS: usize = 256;

/// Returns true if a bucket has expired whose points are not after `cutoff_ms`.
///
/// # Errors
/// The errors of reading.
pub(crate) fn has_expired_bucket(
    view: &View<'_>,
    collection: &Collection,
    cutoff_ms: i64,
) -> Result<bool> {
    let times = Span { first: i64::MIN, last: cutoff_ms };
    Ok(!within(view, collection, (times, 1), &mut |_| Ok(true))?.is_empty())
}

/// Drops at most `max` buckets whose points are not after `cutoff_ms`. Returns the number of their points, and true if
/// there may be more such buckets.
///
/// # Errors
/// The errors of reading and writing.
pub(crate) fn expire_buckets(
    writer: &mut Writer,
    collection: &Collection,
    cutoff_ms: i64,
    max: usize,
) -> Attempt<(u64, bool)> {
    let times = Span { first: i64::MIN, last: cutoff_ms };
    drop_buckets(writer, collection, (times, max), &mut |_| Ok(true))
}

/// Drops at most `max` buckets that lie within a span and that `is_wanted` picks. Returns the number of their points, and
/// true if there may be more such buckets.
///
/// # Errors
/// The errors of `is_wanted`, and of reading and writing.
pub fn drop_buckets(
    writer: &mut Writer,
    collection: &Collection,
    (times, max): (Span, usize),
    is_wanted: &mut dyn FnMut(&BucketEntry) -> Result<bool>,
) -> Attempt<(u64, bool)> {
    let Some(buckets) = collection.buckets else { return Ok((0, false)) };
    let found = within(&writer.view(), collection, (times, max), is_wanted)?;
    for entry in &found {
        writer.drop_bucket(collection, buckets, entry)?;
    }
    let points = found.iter().map(|entry| u64::from(entry.points)).sum();
    Ok((points, found.len() == max))
}

/// Returns the first buckets, at most `max`, that lie within a span and that `is_wanted` picks.
fn within(
    view: &View<'_>,
    collection: &Collection,
    (times, max): (Span, usize),
    is_wanted: &mut dyn FnMut(&BucketEntry) -> Result<bool>,
) -> Result<Vec<BucketEntry>> {
    let Some(buckets) = collection.buckets else { return Ok(Vec::new()) };
    let mut cursor = BucketCursor::by_time(buckets, times, Direction::Forward);
    let (mut page, mut found, mut more) = (Vec::new(), Vec::new(), true);
    while more && found.len() < max {
        page.clear();
        more = cursor.next_page(view, PAGE_ROWS, &mut page)?;
        for entry in page.drain(..).filter(|entry: &BucketEntry| entry.max_ms <= times.last) {
            if found.len() < max && is_wanted(&entry)? {
                found.push(entry);
            }
        }
    }
    Ok(found)
}
