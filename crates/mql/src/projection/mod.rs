//! Projections: which fields of a document are kept, dropped, sliced and computed.
//!
//! The projections of `find` and the stages `$project`, `$addFields`, `$set` and `$unset` share one
//! kind of tree. Read in this order: `tree`, `parse` (find and `$project`), `add_fields`, `unset`,
//! `apply`, `edits` (consecutive projections), `print` (for explain), then `slice`, `elem_match`
//! and `positional` (find only), and `needs` (the fields that a projection reads).

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
pub use needs::ProjectionNeeds;
pub use parse::Policy;
pub use print::flag;
pub use tree::{Kind, Projection};

#[cfg(test)]
mod tests;
