//! Sorts long lists in parts, so that an operation can check its interrupt meanwhile.

use quire_error::Result;
use std::cmp::Ordering;

/// The units of work of adding one item to a merged list.
const MERGE_UNITS: u32 = 8;

/// Returns the units for `count` binary searches among `among` sorted values.
pub(crate) fn search_units(count: usize, among: usize) -> u32 {
    let steps = usize::BITS - among.leading_zeros();
    u32::try_from(count).map_or(u32::MAX, |count| count.saturating_mul(steps))
}

/// Sorts like `sort_by` of a slice (stable): sorts parts of `at_once` items, then merges pairs of
/// sorted parts. Calls `work` with the units of each step, of about ten nanoseconds each, and fails
/// if it fails. If there is more than one part, it needs the memory of a second list.
pub fn sort<T: Copy>(
    items: &mut Vec<T>,
    at_once: usize,
    work: &impl Fn(u32) -> Result<()>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    for part in items.chunks_mut(at_once) {
        work(search_units(part.len(), part.len()))?;
        part.sort_by(&order);
    }
    if items.len() <= at_once {
        return Ok(());
    }
    let mut merged = Vec::with_capacity(items.len());
    let mut width = at_once;
    while width < items.len() {
        merged.clear();
        for pair in items.chunks(width * 2) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged, work, &order)?;
        }
        std::mem::swap(items, &mut merged);
        width *= 2;
    }
    Ok(())
}

fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    out: &mut Vec<T>,
    work: &impl Fn(u32) -> Result<()>,
    order: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    while let ([first, after_first @ ..], [second, after_second @ ..]) = (left, right) {
        work(MERGE_UNITS)?;
        if order(second, first).is_lt() {
            out.push(*second);
            right = after_second;
        } else {
            out.push(*first);
            left = after_first;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}
