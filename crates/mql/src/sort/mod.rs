//! Sorts: a pattern that is parsed once, the sort key of each document, and the order of keys.
//!
//! Read in this order: `pattern` (the parts of a sort), `parse`, `key` (the sort key of a
//! document).

mod key;
mod parse;
mod pattern;

pub use key::{SortKey, SortValues};
pub use parse::natural;
pub use pattern::{Direction, MetaKind, SortBy, SortPart, SortPattern};

#[cfg(test)]
mod tests;
