//! Makes a plan from a request and metadata. Does no I/O: a caller answers questions about the data
//! through [`Statistics`].
//!
//! Read in this order: `request.rs` (the requests), [`mod@plan`] (the nodes of a plan), `indexes`
//! (which indexes can serve a request, and which does; `quire_catalog::key` makes the intervals of
//! a predicate), `shape.rs` (the shapes of requests and plans), `find.rs` (with the plan cache in `find/caching.rs`), `count.rs` and `distinct.rs` (how these are planned), `first_of_each.rs` (scans that read the first documents of each group), `pipeline.rs` and
//! its folder (how a pipeline is), `planning.rs` (any request), [`explain`] (how a plan is
//! printed).

mod count;
mod distinct;
pub mod explain;
mod find;
mod first_of_each;
mod indexes;
mod natural;
mod node_stats;
mod on_view;
mod pipeline;
pub mod plan;
mod planning;
mod request;
mod shape;

pub use find::{FindQuery, compares_ids, id_of_write, id_to_look_up, plan_find, planned};
pub use indexes::cached::shape_hashes;
pub use indexes::choose::Statistics;
pub use indexes::intersection::add_intersection;
pub use indexes::keys::Keys;
pub use on_view::{COUNT_FIELD, check_find_options, on_view};
pub use pipeline::target::running_merge_index;
pub use plan::{
    BranchHead, BucketScan, Foreign, ForeignKey, IdLookups, IndexScan, Inner, Kept, KeyRange,
    KeyedField, LookedUp, MetadataRead, Node, Plan, PointOrder, ProjectionKind, Reshape, RowNeeds,
    SearchNode,
};
pub use planning::{plan, shape_of_request};
pub use quire_catalog::key::{Interval, Intervals};
pub use request::{
    AggregateRequest, CountRequest, DistinctRequest, FindRequest, Hint, ReadRequest, Verbosity,
    WriteKind, collation_of,
};
pub use shape::{PlanShape, RequestShape, ShapeHash, WriteParts, digits as shape_digits};
