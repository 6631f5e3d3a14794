//! `$sum`: the sum, in the widest type of its numbers. Other values are ignored.

use super::registry::Accumulator;
use super::table::States;
use super::{StringOrder, Table};
use crate::totals::Sum;

pub(super) const SUM: Accumulator =
    Accumulator::unary("$sum", "1.0", "The sum of the numbers, in their widest type.", |_| {
        Box::new(Sum::default())
    })
    .with_table(table);

/// Returns a table of sums.
pub(super) fn table(_: StringOrder) -> Box<dyn Table> {
    Box::new(States::new(|_| Sum::default()))
}
