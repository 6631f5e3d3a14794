//! MongoDB's language as pure functions: filters, expressions, projections, updates, accumulators.

pub mod regex;
