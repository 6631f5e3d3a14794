//! Numbers of a whole collection, from a random sample of it: an estimate, and an interval that
//! contains the true number with a probability of at least 95 %.
//!
//! The interval is Chernoff's bound in the form of Hoeffding ("Probability inequalities for sums of
//! bounded random variables", 1963, theorem 1). It assumes only that a document contributes a number
//! between 0 and a known maximum, and it holds for a sample without replacement too (section 6 of the
//! same paper). So it needs no distribution, and it is wider than an interval that knows one.

/// A random sample of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSize {
    /// The documents in the sample.
    pub sampled: u64,
    /// The documents in the collection.
    pub total: u64,
}

/// A number of the whole collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scaled {
    /// The most plausible number.
    pub estimate: u64,
    /// The lower end of the interval.
    pub low: u64,
    /// The upper end of the interval.
    pub high: u64,
}

/// `ln(2 / 0.05)`: each end of the interval is missed with a probability of at most 2.5 %.
const DOUBT: f64 = 3.688_879_454_113_936;
/// The number of halvings that find an end of the interval.
const HALVINGS: usize = 60;

impl SampleSize {
    /// Returns true if the sample is the whole collection.
    pub fn is_whole(self) -> bool {
        self.sampled >= self.total
    }

    /// Returns the number of documents for which one document of the sample stands.
    pub fn documents_per_sampled(self) -> f64 {
        match self.sampled {
            0 => 1.0,
            _ if self.is_whole() => 1.0,
            sampled => self.total as f64 / sampled as f64,
        }
    }

    /// Returns the sum over the whole collection of a number that each document has, from its sum over
    /// the sample. No document contributes more than `most`.
    pub fn sum(self, sum: u64, most: u64) -> Scaled {
        if self.is_whole() {
            return Scaled::exact(sum);
        }
        let most = most.max(1) as f64;
        let all = self.total as f64 * most;
        if self.sampled == 0 {
            return Scaled { estimate: 0, low: 0, high: all as u64 };
        }
        let draws = self.sampled as f64;
        let mean = (sum as f64 / (draws * most)).min(1.0);
        let (low, high) = (least_mean(mean, draws), greatest_mean(mean, draws));
        let estimate = (sum as f64 * self.documents_per_sampled()).round() as u64;
        // The sample is a part of the collection.
        let low = ((low * all).floor() as u64).max(sum.min(estimate));
        Scaled { estimate, low, high: ((high * all).ceil() as u64).max(estimate) }
    }
}

impl Scaled {
    /// Returns a number that is known.
    pub fn exact(number: u64) -> Scaled {
        Scaled { estimate: number, low: number, high: number }
    }

    /// Returns true if the interval contains the number.
    pub fn contains(&self, number: u64) -> bool {
        (self.low..=self.high).contains(&number)
    }
}

/// Returns the smallest mean for which a sample's mean of at least `mean` is not too improbable.
fn least_mean(mean: f64, draws: f64) -> f64 {
    bisect(0.0, mean, |p| draws * divergence(mean, p) > DOUBT)
}

/// Returns the greatest mean for which a sample's mean of at most `mean` is not too improbable.
fn greatest_mean(mean: f64, draws: f64) -> f64 {
    1.0 - bisect(0.0, 1.0 - mean, |q| draws * divergence(mean, 1.0 - q) > DOUBT)
}

/// Returns the boundary between the values from `low` on that `excluded` and those up to `high` that
/// it does not.
fn bisect(mut low: f64, mut high: f64, excluded: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if excluded(middle) { low = middle } else { high = middle }
    }
    low
}

/// Returns the divergence of Kullback and Leibler between two coins.
fn divergence(mean: f64, p: f64) -> f64 {
    let term = |of: f64, over: f64| match of {
        0.0 => 0.0,
        _ if over <= 0.0 => f64::INFINITY,
        of => of * (of / over).ln(),
    };
    term(mean, p) + term(1.0 - mean, 1.0 - p)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: SampleSize = SampleSize { sampled: 1000, total: 100_000 };

    #[test]
    fn a_whole_copy_is_exact_and_an_empty_sample_says_nothing() {
        let whole = SampleSize { sampled: 7, total: 7 };
        assert_eq!(whole.sum(5, 1), Scaled::exact(5));
        let none = SampleSize { sampled: 0, total: 50 };
        assert_eq!(none.sum(0, 2), Scaled { estimate: 0, low: 0, high: 100 });
    }

    #[test]
    fn nothing_in_the_sample_is_little_in_the_collection() {
        // The rule of three, with 2.5 % on this side: 3.69 of 1000.
        let scaled = SAMPLE.sum(0, 1);
        assert_eq!((scaled.estimate, scaled.low), (0, 0));
        assert!((368..=370).contains(&scaled.high), "{scaled:?}");
        let scaled = SAMPLE.sum(1000, 1);
        assert_eq!((scaled.estimate, scaled.high), (100_000, 100_000));
        assert!((99_630..=99_633).contains(&scaled.low), "{scaled:?}");
    }

    #[test]
    fn the_interval_is_about_two_and_a_half_deviations_on_each_side() {
        let scaled = SAMPLE.sum(500, 1);
        assert_eq!(scaled.estimate, 50_000);
        // The deviation of the estimate is 1581.
        assert!((45_500..=46_000).contains(&scaled.low), "{scaled:?}");
        assert!((54_000..=54_500).contains(&scaled.high), "{scaled:?}");
        let wider = SAMPLE.sum(500, 10);
        assert!(wider.low < scaled.low && wider.high > scaled.high, "{wider:?}");
        assert_eq!(wider.estimate, 50_000);
    }

    #[test]
    fn intervals_contain_the_truth_of_random_collections() {
        let mut state = 7_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let mut missed = 0;
        for round in 0..400 {
            let total = 2000;
            let matching = [0, 3, 40, 700, 1999][round % 5];
            let sample = SampleSize { sampled: 100, total };
            let mut left = (total, matching);
            let mut found = 0;
            for _ in 0..sample.sampled {
                let is_matching = next() % left.0 < left.1;
                found += u64::from(is_matching);
                left = (left.0 - 1, left.1 - u64::from(is_matching));
            }
            missed += u64::from(!sample.sum(found, 1).contains(matching));
        }
        assert!(missed <= 20, "{missed} of 400");
    }
}
