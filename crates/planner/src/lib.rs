//! From a request and metadata to a plan. Does no I/O: what it must know of the data comes in
//! through [`Statistics`].
//!
//! Read in this order: [`request`] (what is asked), [`predicate`] and [`bounds`] (a filter and
//! the index intervals it gives), [`plan`] (the stages), [`find`] (how they are put together),
//! [`explain`] (how they are printed).

mod access;
mod bounds;
mod choose;
mod count;
mod covering;
mod distinct;
pub mod explain;
mod expr_rewrite;
mod find;
mod hint;
mod intersection;
mod interval;
mod min_max;
mod partial;
mod pipeline;
pub mod plan;
pub mod predicate;
mod predicate_parse;
mod predicate_print;
mod regex_prefix;
mod request;
mod shape;
mod sort_order;

pub use choose::{NoStatistics, Statistics};
pub use count::plan_count;
pub use distinct::plan_distinct;
pub use find::{id_equality, plan_find};
pub use intersection::add_intersection;
pub use interval::{Interval, Intervals};
pub use pipeline::{PipelineParts, print_projection, split_pipeline};
pub use plan::{IndexScan, KeyRange, Node, Plan, ProjectionKind};
pub use predicate::{Filter, Predicate};
pub use predicate_parse::parse as parse_filter;
pub use predicate_print::{Style, print as print_filter};
pub use request::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint, Verbosity, WriteKind,
};
pub use shape::{aggregate_shape, find_shape};
