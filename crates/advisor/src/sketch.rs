//! Summaries of very many values in bounded memory, with a stated error. All of them merge.

use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use datasketches::hll::{HllSketch, HllType, HllUnion};
use datasketches::tdigest::TDigestMut;
use quire_document::{Value, ValueBuf, ValueKey, compare, hash_of};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// The logarithm of the registers of a count of distinct values: a standard error of 1.6 %.
const REGISTERS_LOG2: u8 = 12;

/// The number of distinct values that a sample keeps.
pub(crate) const SAMPLE_VALUES: usize = 256;

/// The counters of [`TopValues`]. A count is too small by at most 3.5 / 64 of all values.
const COUNTERS: usize = 64;

/// The compression of quantiles: about 200 centroids, an error of at most 1 % of the ranks in the
/// middle and far less at the ends.
const CENTROIDS: u16 = 200;

/// Longer values are summarised by type and size only.
pub(crate) const VALUE_BYTES_MAX: usize = 128;

/// An estimate of the number of distinct values (HyperLogLog; Flajolet and others, 2007).
pub(crate) struct Distinct(HllSketch);

impl Distinct {
    pub(crate) fn new() -> Distinct {
        Distinct(HllSketch::new(REGISTERS_LOG2, HllType::Hll8).expect("the size is valid"))
    }

    /// Counts a value by its hash.
    pub(crate) fn add(&mut self, hash: u64) {
        self.0.update(hash);
    }

    pub(crate) fn merge(&mut self, other: &Distinct) {
        let mut union = HllUnion::new(REGISTERS_LOG2).expect("the size is valid");
        union.update(&self.0);
        union.update(&other.0);
        self.0 = union.to_sketch(HllType::Hll8);
    }

    /// Returns the estimate.
    pub(crate) fn estimate(&self) -> u64 {
        self.0.estimate().round() as u64
    }
}

/// Quantiles of numbers (t-digest; Dunning and Ertl, 2019), with exact extremes and sum.
pub(crate) struct Quantiles {
    digest: TDigestMut,
    sum: f64,
}

impl Quantiles {
    pub(crate) fn new() -> Quantiles {
        Quantiles { digest: TDigestMut::new(CENTROIDS).expect("the size is valid"), sum: 0.0 }
    }

    pub(crate) fn add(&mut self, number: f64) {
        self.digest.update(number);
        self.sum += number;
    }

    pub(crate) fn merge(&mut self, other: &Quantiles) {
        self.digest.merge(&other.digest);
        self.sum += other.sum;
    }

    /// Returns how many numbers were added.
    pub(crate) fn count(&self) -> u64 {
        self.digest.total_weight()
    }

    /// Returns the sum of the numbers.
    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the number at a rank between 0 and 1; 0 if there is none.
    pub(crate) fn at(&self, rank: f64) -> f64 {
        let exact = match rank {
            0.0 => self.digest.min_value(),
            1.0 => self.digest.max_value(),
            _ => self.digest.clone().quantile(rank).ok().flatten(),
        };
        exact.unwrap_or(0.0)
    }
}

/// The most frequent values (Misra and Gries, in the form of Anderson and others, 2017).
pub(crate) struct TopValues(FrequentItemsSketch<ValueKey>);

impl TopValues {
    pub(crate) fn new() -> TopValues {
        TopValues(FrequentItemsSketch::new(COUNTERS).expect("the size is valid"))
    }

    pub(crate) fn add(&mut self, value: Value<'_>) {
        self.0.update(ValueKey::new(value));
    }

    pub(crate) fn merge(&mut self, other: &TopValues) {
        self.0.merge(&other.0);
    }

    /// Returns at most `count` values with the least and the greatest number of times that they can
    /// have occurred, the most frequent first. Values that may be no more frequent than others are
    /// left out.
    pub(crate) fn top(&self, count: usize) -> Vec<(ValueBuf, u64, u64)> {
        let mut rows: Vec<_> = self
            .0
            .frequent_items(ErrorType::NoFalsePositives)
            .into_iter()
            .map(|row| (row.item().clone(), row.lower_bound(), row.upper_bound()))
            .collect();
        rows.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        rows.truncate(count);
        rows.into_iter().map(|(key, least, most)| (key.0, least, most)).collect()
    }
}

/// A uniform sample of the distinct values, each with the exact number of times that it occurred:
/// the values with the smallest hashes (bottom-k; Cohen, 1997). A value that is in the sample at the
/// end has been in it since it first occurred, because the bound only falls.
pub(crate) struct ValueSample {
    values: BTreeMap<u64, (ValueBuf, u64)>,
    /// The hashes in `values`, the greatest first.
    hashes: BinaryHeap<u64>,
}

impl ValueSample {
    pub(crate) fn new() -> ValueSample {
        ValueSample { values: BTreeMap::new(), hashes: BinaryHeap::new() }
    }

    /// Adds a value with its hash, `count` times.
    pub(crate) fn add(&mut self, hash: u64, value: Value<'_>, count: u64) {
        // The order of the hashes of `hash_of` is not uniform enough for small numbers.
        let hash = spread(hash);
        if let Some((_, seen)) = self.values.get_mut(&hash) {
            *seen += count;
            return;
        }
        if self.values.len() == SAMPLE_VALUES {
            if self.hashes.peek().is_some_and(|greatest| hash > *greatest) {
                return;
            }
            if let Some(greatest) = self.hashes.pop() {
                self.values.remove(&greatest);
            }
        }
        self.values.insert(hash, (ValueBuf::new(value), count));
        self.hashes.push(hash);
    }

    /// Returns true if the sample has every distinct value.
    pub(crate) fn is_whole(&self) -> bool {
        self.values.len() < SAMPLE_VALUES
    }

    /// Returns the values with the number of times that each occurred.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ValueBuf, u64)> {
        self.values.values().map(|(value, count)| (value, *count))
    }

    pub(crate) fn merge(&mut self, other: &ValueSample) {
        for (value, count) in other.iter() {
            self.add(hash_of(value.as_value(), None), value.as_value(), count);
        }
    }
}

/// The finalizer of SplitMix64, a bijection of 64 bits.
pub(crate) fn spread(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

/// The smallest and the greatest value in MongoDB's order.
#[derive(Default)]
pub(crate) struct Extremes(Option<(ValueBuf, ValueBuf)>);

impl Extremes {
    pub(crate) fn add(&mut self, value: Value<'_>) {
        let Some((least, greatest)) = &mut self.0 else {
            self.0 = Some((ValueBuf::new(value), ValueBuf::new(value)));
            return;
        };
        if compare(value, least.as_value(), None) == Ordering::Less {
            *least = ValueBuf::new(value);
        }
        if compare(value, greatest.as_value(), None) == Ordering::Greater {
            *greatest = ValueBuf::new(value);
        }
    }

    pub(crate) fn merge(&mut self, other: &Extremes) {
        if let Some((least, greatest)) = &other.0 {
            self.add(least.as_value());
            self.add(greatest.as_value());
        }
    }

    pub(crate) fn get(&self) -> Option<(&ValueBuf, &ValueBuf)> {
        self.0.as_ref().map(|(least, greatest)| (least, greatest))
    }
}

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Default)]
pub(crate) struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Line {
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.merge(&Line { count: 1.0, x, y, xx: x * x, xy: x * y, yy: y * y });
    }

    pub(crate) fn merge(&mut self, other: &Line) {
        self.count += other.count;
        self.x += other.x;
        self.y += other.y;
        self.xx += other.xx;
        self.xy += other.xy;
        self.yy += other.yy;
    }

    /// Returns the slope and the correlation; `None` with fewer than ten points, or if all have one
    /// `x`.
    pub(crate) fn fit(&self) -> Option<(f64, f64)> {
        let spread_x = self.count * self.xx - self.x * self.x;
        let spread_y = self.count * self.yy - self.y * self.y;
        let both = self.count * self.xy - self.x * self.y;
        if self.count < 10.0 || spread_x <= self.xx * 1e-9 {
            return None;
        }
        let correlation = if spread_y <= 0.0 { 0.0 } else { both / (spread_x * spread_y).sqrt() };
        Some((both / spread_x, correlation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sketches_are_near_the_truth() {
        let (mut distinct, mut quantiles) = (Distinct::new(), Quantiles::new());
        let (mut top, mut sample) = (TopValues::new(), ValueSample::new());
        for at in 0..100_000_i32 {
            let number = if at % 10 == 0 { -1 } else { at / 2 };
            let value = Value::Int32(number);
            let hash = hash_of(value, None);
            distinct.add(hash);
            quantiles.add(f64::from(at));
            top.add(value);
            sample.add(hash, value, 1);
        }
        // 50,000 numbers, of which each tenth pair lost one: all occur, and -1.
        let truth = 50_001.0;
        assert!((distinct.estimate() as f64 / truth - 1.0).abs() < 0.05, "{}", distinct.estimate());
        assert!((quantiles.at(0.5) - 50_000.0).abs() < 1000.0, "{}", quantiles.at(0.5));
        assert_eq!((quantiles.at(0.0), quantiles.at(1.0)), (0.0, 99_999.0));
        let found = top.top(3);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].1 <= 10_000 && found[0].2 >= 10_000, "{found:?}");
        assert_eq!(sample.iter().count(), SAMPLE_VALUES);
        assert!(!sample.is_whole());
        for (value, count) in sample.iter() {
            let expected = match value.as_value() {
                Value::Int32(-1) => 10_000,
                Value::Int32(number) if number % 5 == 0 => 1,
                _ => 2,
            };
            assert_eq!(count, expected, "{value:?}");
        }
    }

    #[test]
    fn a_line_needs_points_at_several_places() {
        let mut line = Line::default();
        (0..100).for_each(|x| line.add(f64::from(x), 3.0 * f64::from(x) + 1.0));
        let (slope, correlation) = line.fit().unwrap_or_default();
        assert!((slope - 3.0).abs() < 1e-6 && correlation > 0.999);
        let mut point = Line::default();
        (0..100).for_each(|y| point.add(7.0, f64::from(y)));
        assert!(point.fit().is_none());
    }
}
