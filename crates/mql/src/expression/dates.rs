//! Date operators (being written with the modules of `dates/`).

use super::operator::Operator;

/// This family's rows of the registry.
pub(super) const OPERATORS: &[Operator] = &[];
