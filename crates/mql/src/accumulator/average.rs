//! `$avg`: the mean of the numbers; null if there are none.

use super::registry::Accumulator;
use super::table::States;
use crate::totals::Average;

pub(super) const AVG: Accumulator = Accumulator::unary(
    "$avg",
    "1.0",
    "The mean of the numbers: a decimal if there is one among them, otherwise a double; null if there are none.",
    |_| Box::new(Average::exact()),
)
.with_table(|_| Box::new(States::new(|_| Average::exact())));
