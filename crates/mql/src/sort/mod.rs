//! Sorts: a pattern parsed once, a key for each document, and the order of keys.
//!
//! Reading order: `pattern` (what a sort is made of), `parse`, `key` (what a document sorts by).

mod key;
mod parse;
mod pattern;

pub use key::{SortKey, SortValues};
pub use parse::natural;
pub use pattern::{Direction, MetaKind, SORT_KEYS_MAX, SortBy, SortPart, SortPattern};

#[cfg(test)]
mod tests;
