//! The characteristics of a shard key: cardinality, frequency and monotonicity. One pass over an index
//! that begins with the key gives all three, because equal keys are adjacent.

use super::Sample;
use super::key::ShardKey;
use crate::frame::context::Context;
use quire_catalog::key::Part;
use quire_catalog::{Collection, Index};
use quire_collections::{IndexCursor, IndexEntry, IndexRange, RecordId};
use quire_document::{DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::Direction;
use quire_storage::rng::{self, Rng};
use std::cmp::Reverse;
use std::sync::Arc;

/// The number of entries that are read on one view.
const PAGE: usize = 1000;
/// The values that are listed with their frequency. MongoDB: `analyzeShardKeyNumMostCommonValues`.
const COMMON_VALUES: usize = 5;
/// The correlation from which a key is monotonic. MongoDB:
/// `analyzeShardKeyMonotonicityCorrelationCoefficientThreshold`.
const MONOTONIC_MIN: f64 = 0.7;
/// The resolution of the random numbers of the sample.
const CHANCES: u64 = 1 << 32;

/// Appends `keyCharacteristics`; nothing if no index supports the key.
///
/// # Errors
/// 20 IllegalOperation for an empty collection.
pub fn write(
    cx: &Context<'_>,
    collection: &Arc<Collection>,
    key: &ShardKey,
    sample: Sample,
    reply: &mut DocWriter<'_>,
) -> Result<()> {
    let Some(index) = supporting(collection, key) else { return Ok(()) };
    let counts = cx.service.store.counts(collection);
    if counts.documents == 0 {
        let text = "Cannot analyze the characteristics of a shard key for an empty collection";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let chances = match sample {
        Sample::Rate(rate) => (rate * CHANCES as f64) as u64,
        Sample::Size(size) if size >= counts.documents => CHANCES,
        Sample::Size(size) => (size as f64 / counts.documents as f64 * CHANCES as f64) as u64,
    };
    let found = walk(cx, index, key, chances)?;
    let mut out = reply.document("keyCharacteristics");
    let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    out.append("numDocsTotal", long(counts.documents));
    out.append("avgDocSizeBytes", long(counts.bytes / counts.documents));
    out.append("numDocsSampled", long(found.sampled));
    let is_unique = index.unique && index.keys.fields().len() == key.paths.len();
    out.append("isUnique", is_unique);
    out.append("numDistinctValues", long(found.distinct));
    write_common(cx, collection, key, &found.common, &mut out)?;
    let mut monotonicity = out.document("monotonicity");
    // Hashes are in no order, and a record of a clustered collection has no number.
    let is_ordered = !is_hashed(index) && !key.is_hashed;
    match found.correlation.coefficient() {
        _ if collection.clustered_index().is_some() => drop(monotonicity.append("type", "unknown")),
        _ if key.is_hashed => drop(monotonicity.append("type", "not monotonic")),
        Some(coefficient) if is_ordered && found.distinct > 1 => {
            monotonicity.append("recordIdCorrelationCoefficient", coefficient);
            let is_monotonic = coefficient.abs() >= MONOTONIC_MIN;
            monotonicity.append("type", if is_monotonic { "monotonic" } else { "not monotonic" });
        }
        _ => drop(monotonicity.append("type", "unknown")),
    }
    Ok(())
}

/// Returns an index that has each document once and begins with the fields of the key: a unique one
/// that has no others if there is one.
fn supporting<'c>(collection: &'c Collection, key: &ShardKey) -> Option<&'c Arc<Index>> {
    let begins = |index: &&Arc<Index>| {
        let fields = index.keys.fields();
        fields.len() >= key.paths.len()
            && fields.iter().zip(&key.paths).all(|(field, path)| {
                field.path == *path && matches!(field.part, Part::Value | Part::Hash)
            })
    };
    let is_whole = |index: &&Arc<Index>| {
        !index.keys.is_sparse()
            && index.keys.partial().is_none()
            && index.keys.collation().is_none()
            && !index.is_multikey()
    };
    let found = collection.ready_indexes().filter(begins).filter(is_whole);
    found.min_by_key(|index| (index.keys.fields().len(), !index.unique, is_hashed(index)))
}

fn is_hashed(index: &Index) -> bool {
    index.keys.fields().iter().any(|field| field.part == Part::Hash)
}

/// What a pass over the index has found.
struct Found {
    sampled: u64,
    distinct: u64,
    /// The most common keys: how often, and a record that has it.
    common: Vec<(u64, RecordId)>,
    correlation: Correlation,
}

/// The run of equal keys that is being read.
struct Run {
    key: Vec<u8>,
    count: u64,
    record: RecordId,
}

fn walk(cx: &Context<'_>, index: &Index, key: &ShardKey, chances: u64) -> Result<Found> {
    let mut found =
        Found { sampled: 0, distinct: 0, common: Vec::new(), correlation: Correlation::default() };
    let mut cursor = IndexCursor::new(index, IndexRange::whole(index), Direction::Forward);
    let mut random = Rng::new(rng::word());
    let (mut entries, mut more): (Vec<IndexEntry>, bool) = (Vec::new(), true);
    let mut run: Option<Run> = None;
    while more {
        cx.check_interrupt()?;
        entries.clear();
        let view = cx.service.store.read_view()?;
        more = cursor.next_page(&view.view(), PAGE, &mut entries)?;
        for entry in &entries {
            if chances < CHANCES && random.below(CHANCES) >= chances {
                continue;
            }
            found.correlation.add(found.sampled as f64, entry.record.0 as f64);
            found.sampled += 1;
            let own = own_key(index, key, entry)?;
            match &mut run {
                Some(run) if run.key == own => run.count += 1,
                _ => {
                    found.end(run.take());
                    run = Some(Run { key: own, count: 1, record: entry.record });
                }
            }
        }
    }
    found.end(run);
    Ok(found)
}

/// Returns the bytes of the fields of the shard key, which does not tell a missing field from null.
fn own_key(index: &Index, key: &ShardKey, entry: &IndexEntry) -> Result<Vec<u8>> {
    // A key that is too long to be stored whole begins with the fields, as far as it goes.
    let Some(decoded) = entry.decode(&index.keys)? else { return Ok(entry.values.to_vec()) };
    let mut bytes = Vec::new();
    for (at, value) in decoded.values.iter().take(key.paths.len()).enumerate() {
        let value = value.as_ref().map(|value| value.as_value());
        index.keys.append_bound(at, value.unwrap_or(Value::Null), &mut bytes);
    }
    Ok(bytes)
}

impl Found {
    /// Counts a run of equal keys.
    fn end(&mut self, run: Option<Run>) {
        let Some(Run { count, record, .. }) = run else { return };
        self.distinct += 1;
        let least = self.common.last().map_or(0, |(count, _)| *count);
        if self.common.len() < COMMON_VALUES || count > least {
            self.common.push((count, record));
            self.common.sort_by_key(|(count, _)| Reverse(*count));
            self.common.truncate(COMMON_VALUES);
        }
    }
}

/// Appends the most common values with their frequency.
fn write_common(
    cx: &Context<'_>,
    collection: &Collection,
    key: &ShardKey,
    common: &[(u64, RecordId)],
    out: &mut DocWriter<'_>,
) -> Result<()> {
    let ids: Vec<RecordId> = common.iter().map(|(_, record)| *record).collect();
    let mut documents = Vec::with_capacity(ids.len());
    cx.service.store.read_view()?.view().get_many(collection, &ids, &mut documents)?;
    let mut list = out.array("mostCommonValues");
    for ((count, _), document) in common.iter().zip(&documents) {
        // A document that was deleted in the meantime has no value to show.
        let Some(document) = document else { continue };
        let mut one = list.document();
        key.write_values(document.as_doc(), &mut one.document("value"))?;
        one.append("frequency", i64::try_from(*count).unwrap_or(i64::MAX));
    }
    Ok(())
}

/// The correlation of two sequences in one pass (Welford, 1962).
#[derive(Default)]
struct Correlation {
    count: f64,
    mean: (f64, f64),
    squares: (f64, f64),
    products: f64,
}

impl Correlation {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let (dx, dy) = (x - self.mean.0, y - self.mean.1);
        self.mean.0 += dx / self.count;
        self.mean.1 += dy / self.count;
        self.squares.0 += dx * (x - self.mean.0);
        self.squares.1 += dy * (y - self.mean.1);
        self.products += dx * (y - self.mean.1);
    }

    /// Returns Pearson's coefficient; `None` for fewer than two pairs.
    fn coefficient(&self) -> Option<f64> {
        let root = (self.squares.0 * self.squares.1).sqrt();
        (root > 0.0).then(|| (self.products / root).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_is_that_of_the_textbook() {
        let of = |pairs: &[(f64, f64)]| {
            let mut correlation = Correlation::default();
            pairs.iter().for_each(|(x, y)| correlation.add(*x, *y));
            correlation.coefficient()
        };
        assert_eq!(of(&[(1.0, 1.0)]), None);
        assert!((of(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]).unwrap() - 1.0).abs() < 1e-12);
        assert!((of(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]).unwrap() + 1.0).abs() < 1e-12);
        let mixed = of(&[(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0)]).unwrap();
        assert!((mixed - 0.6).abs() < 1e-12, "{mixed}");
    }
}
