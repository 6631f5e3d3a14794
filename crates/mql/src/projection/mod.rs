//! Projections: what of a document is kept, dropped, cut and computed, applied over bytes.
//!
//! One tree serves `find`'s projections and the stages `$project`, `$addFields`, `$set` and
//! `$unset`. Reading order: `tree`, `parse` (find and `$project`), `add_fields`, `unset`, `apply`,
//! `edits` (several in a row), `print` (as explain shows it),
//! then `slice`, `elem_match` and `positional`, which only find knows, and `needs` (what of a
//! document is read).

mod add_fields;
mod apply;
mod edits;
mod elem_match;
mod needs;
mod parse;
mod path;
mod positional;
mod print;
mod slice;
mod tree;
mod unset;

pub(crate) use edits::Edits;
pub use needs::Needs;
pub use parse::Policy;
pub use print::flag;
pub use tree::{Kind, Projection};

#[cfg(test)]
mod tests;
