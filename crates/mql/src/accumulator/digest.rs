//! Approximate quantiles of a stream of numbers in bounded memory: a t-digest that merges its input
//! in batches (Dunning and Ertl, "Computing extremely accurate quantiles using t-digests", 2019).

use quire_document::{DocBuf, Value, array, doc};
use std::f64::consts::PI;

/// The resolution of ranks: the approximate number of clusters.
const CLUSTERS: f64 = 1000.0;
/// The most numbers that wait to be merged into the clusters.
const WAITING_MAX: usize = 8 * 1024;

/// Clusters of adjacent numbers. The clusters at both ends are small.
#[derive(Clone, Debug, Default)]
pub(super) struct Digest {
    /// In ascending order: the mean of each cluster, and the count of its numbers.
    clusters: Vec<(f64, f64)>,
    waiting: Vec<(f64, f64)>,
    /// The counts of -Infinity and Infinity, which are not in clusters, because a mean with them is
    /// infinite.
    below: f64,
    above: f64,
    least: Option<f64>,
    greatest: Option<f64>,
}

impl Digest {
    /// Adds a number that is not NaN.
    pub(super) fn add(&mut self, number: f64) {
        self.add_cluster(number, 1.0);
    }

    fn add_cluster(&mut self, mean: f64, weight: f64) {
        if mean.is_infinite() {
            *(if mean > 0.0 { &mut self.above } else { &mut self.below }) += weight;
            return;
        }
        self.least = Some(self.least.map_or(mean, |least| least.min(mean)));
        self.greatest = Some(self.greatest.map_or(mean, |greatest| greatest.max(mean)));
        self.waiting.push((mean, weight));
        if self.waiting.len() >= WAITING_MAX {
            self.compress();
        }
    }

    /// Merges the waiting numbers. Adjacent clusters become one if the result spans at most one
    /// step of the scale function, which is steep at both ends.
    fn compress(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.clusters);
        all.append(&mut self.waiting);
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        let mut done = 0.0;
        let mut limit = total * step_end(0.0);
        for (mean, weight) in all {
            match self.clusters.last_mut() {
                Some(last) if done + last.1 + weight <= limit => {
                    last.1 += weight;
                    last.0 += (mean - last.0) * weight / last.1;
                }
                last => {
                    done += last.map_or(0.0, |last| last.1);
                    limit = total * step_end(done / total);
                    self.clusters.push((mean, weight));
                }
            }
        }
    }

    /// Returns the number at the quantile `share`; `None` if there are no numbers.
    pub(super) fn quantile(&mut self, share: f64) -> Option<f64> {
        self.compress();
        let finite: f64 = self.clusters.iter().map(|(_, weight)| weight).sum();
        let total = self.below + finite + self.above;
        if total == 0.0 {
            return None;
        }
        // The rank of the exact answer, counted from 1.
        let rank = (share * total).ceil().max(1.0) - self.below;
        if rank <= 0.0 {
            return Some(f64::NEG_INFINITY);
        }
        if rank > finite {
            return Some(f64::INFINITY);
        }
        Some(self.at_rank(rank, finite))
    }

    /// Returns the number at a rank. The mean of a cluster is at the rank in its middle; between
    /// two clusters it interpolates linearly.
    fn at_rank(&self, rank: f64, finite: f64) -> f64 {
        let (least, greatest) = (self.least.unwrap_or(0.0), self.greatest.unwrap_or(0.0));
        let mut before = (1.0, least);
        let mut done = 0.0;
        for (mean, weight) in &self.clusters {
            let middle = done + (weight + 1.0) / 2.0;
            if rank <= middle {
                return between(before, (middle, *mean), rank);
            }
            before = (middle, *mean);
            done += weight;
        }
        between(before, (finite, greatest), rank)
    }

    /// Returns the memory on the heap in bytes.
    pub(super) fn bytes(&self) -> usize {
        (self.clusters.capacity() + self.waiting.capacity()) * 16
    }

    /// Returns the document that `merge` reads.
    pub(super) fn save(&self) -> DocBuf {
        let mut merged = self.clone();
        merged.compress();
        let clusters = merged.clusters.iter().map(|(mean, weight)| array![*mean, *weight]);
        let clusters: Vec<_> = clusters.collect();
        let clusters = clusters.iter().collect::<quire_document::ArrayBuf>();
        let ends = [self.least, self.greatest].map(|end| end.map_or(Value::Null, Value::Double));
        doc! {
            "clusters": &clusters, "below": self.below, "above": self.above,
            "least": ends[0], "greatest": ends[1],
        }
    }

    /// Adds the numbers of another digest, as saved by `save`.
    pub(super) fn merge(&mut self, saved: quire_document::Doc<'_>) {
        let double = |name: &str| match saved.get(name) {
            Some(Value::Double(number)) => Some(number),
            _ => None,
        };
        for cluster in super::elements(saved.get("clusters").unwrap_or(Value::Null)) {
            let parts: Vec<Value<'_>> = super::elements(cluster).collect();
            if let [Value::Double(mean), Value::Double(weight)] = parts[..] {
                self.add_cluster(mean, weight);
            }
        }
        self.below += double("below").unwrap_or(0.0);
        self.above += double("above").unwrap_or(0.0);
        for end in [double("least"), double("greatest")].into_iter().flatten() {
            self.least = Some(self.least.map_or(end, |least| least.min(end)));
            self.greatest = Some(self.greatest.map_or(end, |greatest| greatest.max(end)));
        }
    }
}

/// Returns the share at which a cluster that begins at `share` must end: one step further on the
/// scale `CLUSTERS / 2 pi * asin(2 share - 1)`.
fn step_end(share: f64) -> f64 {
    let at = (2.0 * share - 1.0).clamp(-1.0, 1.0).asin() + 2.0 * PI / CLUSTERS;
    if at >= PI / 2.0 { 1.0 } else { (at.sin() + 1.0) / 2.0 }
}

fn between(left: (f64, f64), right: (f64, f64), rank: f64) -> f64 {
    let width = right.0 - left.0;
    if width <= 0.0 {
        return right.1;
    }
    left.1 + (right.1 - left.1) * ((rank - left.0) / width)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that ranks are wrong by less than a thousandth, and at the ends by less than a
    /// ten-thousandth.
    fn check(mut digest: Digest, count: f64) {
        for share in [0.0, 0.0001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.9999, 1.0] {
            let found = digest.quantile(share).unwrap();
            let exact = (share * count).ceil().max(1.0) - 1.0;
            let allowed = count * (0.0001 + 0.002 * share * (1.0 - share));
            assert!((found - exact).abs() <= allowed, "{share}: {found}, not {exact}");
        }
    }

    /// Returns the numbers from 0 to below `count`, in a scattered order.
    fn numbers(count: u64) -> impl Iterator<Item = f64> {
        (0..count).map(move |number| (number * 48_271 % count) as f64)
    }

    #[test]
    fn quantiles_of_many_numbers() {
        let mut digest = Digest::default();
        numbers(300_007).for_each(|number| digest.add(number));
        assert!(digest.bytes() < 1 << 19, "{} bytes", digest.bytes());
        check(digest, 300_007.0);
        let mut rising = Digest::default();
        (0..100_000).for_each(|number| rising.add(f64::from(number)));
        check(rising, 100_000.0);
    }

    #[test]
    fn parts_merge() {
        let mut merged = Digest::default();
        let all: Vec<f64> = numbers(200_003).collect();
        for part in all.chunks(30_000) {
            let mut digest = Digest::default();
            part.iter().for_each(|number| digest.add(*number));
            merged.merge(digest.save().as_doc());
        }
        check(merged, 200_003.0);
    }

    #[test]
    fn few_numbers_and_infinities() {
        let mut digest = Digest::default();
        assert_eq!(digest.quantile(0.5), None);
        digest.add(7.0);
        assert_eq!(digest.quantile(0.5), Some(7.0));
        digest.add(f64::INFINITY);
        digest.add(f64::NEG_INFINITY);
        let found = [0.0, 0.3, 0.5, 1.0].map(|share| digest.quantile(share).unwrap());
        assert_eq!(found, [f64::NEG_INFINITY, f64::NEG_INFINITY, 7.0, f64::INFINITY]);
    }
}
