//! MongoDB's language as pure functions: filters, expressions, projections, updates, accumulators.

pub mod accumulator;
pub mod checked_sort;
pub mod collation;
pub mod column;
pub mod context;
pub mod expression;
pub mod filter;
pub mod fulltext;
mod names;
mod options;
pub mod projection;
pub mod regex;
pub mod rollup;
pub mod schema;
pub mod shape;
pub mod sort;
pub mod stage;
mod text;
pub mod time_series;
mod too_large;
mod totals;
pub mod type_set;
pub mod update;
pub mod window;

pub use collation::Collation;
pub use context::{Collator, EvalContext, Known, ParseContext, Shared, UserVariable};
pub use expression::Expression;
pub use filter::Filter;
pub use options::whole;
pub use stage::Stage;
pub use too_large::too_large;
pub use update::{Outcome, Update, UpdateSpec};

#[cfg(test)]
mod chaos;
