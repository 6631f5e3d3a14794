//! What a run costs: the unit in which indexes are compared, and the growth of the cost from a copy to
//! the whole collection.

use crate::indexes::measured::Measured;
use crate::scaled::SampleSize;

/// The cost of a document that is examined is 1; these are those of other work.
pub const KEY_COST: f64 = 0.25;
/// The cost of a row that is sorted in memory.
pub const SORTED_COST: f64 = 0.5;
/// The cost of an index entry that is written or removed.
pub const ENTRY_COST: f64 = 2.0;
/// The cost that every run has.
const RUN_COST: f64 = 1.0;
/// An index serves a request if it leaves at most this share of its cost.
pub const COST_LEFT_MAX: f64 = 0.5;
/// The bytes of an entry, by which the entries of a document are estimated.
pub const ENTRY_BYTES: u64 = 40;
/// Without an index that seems superfluous, no request may cost more than this.
const SAME_COST: f64 = 1.02;

/// Returns the cost of a run: the documents that it examines, and other work in the same unit.
pub fn cost_of(run: &Measured) -> f64 {
    let sorted = if run.sorts > 0 { run.documents.max(run.returned) as f64 } else { 0.0 };
    RUN_COST
        + run.documents as f64
        + run.keys as f64 * KEY_COST
        + run.joined as f64
        + sorted * SORTED_COST
}

/// Returns the cost of a run on the whole collection, and how it grows, from the runs on copies of two
/// sizes.
pub fn extrapolated(
    small: Option<&Measured>,
    large: &Measured,
    (small_size, large_size): (SampleSize, SampleSize),
) -> (f64, f64) {
    let cost = cost_of(large);
    let times = large_size.sampled as f64 / small_size.sampled.max(1) as f64;
    let growth = match small {
        Some(small) if times > 1.5 => (cost / cost_of(small)).ln() / times.ln(),
        // A request that ends early examines about as much of more documents.
        _ if large.is_limited => 0.0,
        _ => 1.0,
    };
    let growth = growth.clamp(0.0, 1.2);
    (cost * large_size.documents_per_sampled().powf(growth), growth)
}

/// Returns true if a run without an index costs no more than the one with it.
pub fn is_same_cost(with: &Measured, without: &Measured) -> bool {
    cost_of(without) <= cost_of(with) * SAME_COST
}
