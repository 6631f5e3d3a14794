//! Accumulators that also work as expressions over arrays and argument lists.

use super::operator::Operator;

/// This family's rows of the registry.
pub(super) const OPERATORS: &[Operator] = &[];
