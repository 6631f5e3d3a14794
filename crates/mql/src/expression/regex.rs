//! Regular-expression operators.

use super::operator::Operator;

/// This family's rows of the registry.
pub(super) const OPERATORS: &[Operator] = &[];
