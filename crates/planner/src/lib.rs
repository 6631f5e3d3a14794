//! Makes a plan from a request and metadata. Does no I/O: a caller answers questions about the data
//! through [`Statistics`].
//!
//! Read in this order: `request.rs` (the requests), `access.rs` (the indexes that can serve a filter;
//! `quire_catalog::key` makes the intervals of a predicate), [`mod@plan`] (the nodes of a plan), `find.rs`
//! (how a find is planned), [`explain`] (how a plan is printed).

mod access;
mod barrier;
mod choose;
mod count;
mod covering;
mod distinct;
pub mod explain;
mod find;
mod group_keys;
mod hint;
mod inner;
mod intersection;
mod joined_fields;
mod joins;
mod min_max;
mod needed;
mod node_stats;
mod on_view;
mod partial;
mod pipeline;
pub mod plan;
mod planning;
mod pushing;
mod request;
mod resolve;
mod rewrite;
mod shape;
mod sort_order;
mod target;
mod windows;

pub use choose::Statistics;
pub use find::{FindQuery, id_of_condition, id_to_look_up, plan_find, planned};
pub use intersection::add_intersection;
pub use on_view::{COUNT_FIELD, on_view};
pub use plan::{
    Foreign, ForeignKey, IndexScan, Inner, KeyRange, Node, Plan, ProjectionKind, Reshape,
};
pub use planning::{plan, shape_of_request};
pub use quire_catalog::key::{Interval, Intervals};
pub use request::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint, ReadRequest, Verbosity,
    WriteKind, collation_of,
};
pub use shape::{aggregate_shape, find_shape};
pub use target::{no_merge_index, running_merge_index};
