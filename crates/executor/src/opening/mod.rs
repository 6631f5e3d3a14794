//! From a request to operators that are ready to run. `open` opens every plan; `build` builds the
//! operators of a plan's nodes, and `statistics` answers the planner's questions about the data.
//! `count`, `distinct` and `explain` open a plan and run it.

pub(crate) mod build;
pub(crate) mod count;
pub(crate) mod distinct;
pub(crate) mod explain;
pub(crate) mod open;
pub(crate) mod statistics;
