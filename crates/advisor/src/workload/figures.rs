//! Sums and histograms that merge exactly: what is counted in two places and added is what one
//! place would have counted.

/// A number of each statement: its sum, its extremes, and the sum of its squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The sum of the numbers.
    pub sum: u64,
    /// The least; `u64::MAX` before the first.
    pub min: u64,
    /// The greatest of the numbers.
    pub max: u64,
    /// The sum of the squares.
    pub squares: u128,
}

impl Default for Figure {
    fn default() -> Self {
        Figure { sum: 0, min: u64::MAX, max: 0, squares: 0 }
    }
}

impl Figure {
    /// Counts a number.
    #[inline]
    pub fn note(&mut self, number: u64) {
        self.sum = self.sum.wrapping_add(number);
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.squares = self.squares.wrapping_add(u128::from(number) * u128::from(number));
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Figure) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.squares = self.squares.wrapping_add(other.squares);
    }

    /// Returns the mean over `count` numbers; 0 of none.
    pub fn mean(&self, count: u64) -> f64 {
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }
}

/// The buckets of an octave: a bucket is at most a quarter as wide as its least number.
const PER_OCTAVE: u64 = 4;
/// The number of buckets: numbers from 2^40 on are in the last one.
const BUCKETS: usize = bucket(1 << 40) + 1;

/// How often numbers came, in buckets of four an octave: a number is known within a fourth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The counts, up to the last that is not 0.
    counts: Vec<u64>,
}

impl Histogram {
    /// Counts a number.
    #[inline]
    pub fn note(&mut self, number: u64) {
        self.add(bucket(number.min(1 << 40)), 1);
    }

    /// Adds to the count of a bucket. A bucket beyond the last counts in the last.
    pub(crate) fn add(&mut self, bucket: usize, count: u64) {
        let bucket = bucket.min(BUCKETS - 1);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(counted) = self.counts.get_mut(bucket) {
            *counted = counted.wrapping_add(count);
        }
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.buckets() {
            self.add(bucket, count);
        }
    }

    /// Returns how many numbers were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the numbers of the buckets with their counts, without empty ones.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0)
    }

    /// Returns the greatest number of the bucket in which a quantile is, such as 0.99: at most a
    /// fourth more than the quantile itself. `None` if nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.buckets().find_map(|(bucket, count)| {
            seen += count;
            (seen >= rank).then(|| greatest(bucket))
        })
    }

    /// Returns the bytes that the counts take in memory.
    pub fn held_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

/// Returns the bucket of a number.
const fn bucket(number: u64) -> usize {
    if number < PER_OCTAVE {
        return number as usize;
    }
    let octave = number.ilog2() as u64;
    ((octave - 1) * PER_OCTAVE + ((number >> (octave - 2)) & (PER_OCTAVE - 1))) as usize
}

/// Returns the least number of a bucket.
pub fn least(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PER_OCTAVE {
        return bucket;
    }
    let octave = bucket / PER_OCTAVE + 1;
    (PER_OCTAVE + bucket % PER_OCTAVE) << (octave - 2)
}

/// Returns the greatest number of a bucket.
pub fn greatest(bucket: usize) -> u64 {
    least(bucket + 1) - 1
}
