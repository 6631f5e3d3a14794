//! `$stdDevPop`, `$stdDevSamp`: standard deviations, by Welford's method.

use super::registry::Accumulator;
use super::table::States;
use crate::totals::Deviation;

pub(super) const STD_DEV_POP: Accumulator = Accumulator::unary(
    "$stdDevPop",
    "3.2",
    "The standard deviation of the numbers as a whole population; null if there are none.",
    |_| Box::new(Deviation::new(false)),
)
.with_table(|_| Box::new(States::new(|_| Deviation::new(false))));

pub(super) const STD_DEV_SAMP: Accumulator = Accumulator::unary(
    "$stdDevSamp",
    "3.2",
    "The standard deviation of the numbers as a sample; null if there are fewer than two.",
    |_| Box::new(Deviation::new(true)),
)
.with_table(|_| Box::new(States::new(|_| Deviation::new(true))));
