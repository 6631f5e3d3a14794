//! From a request to operators that are ready to run: `open` is the one way, `build` makes the
//! operators of a plan's nodes, `statistics` answers what the planner asks of the data. `count`,
//! `distinct` and `explain` run what they opened.

pub(crate) mod build;
pub(crate) mod count;
pub(crate) mod distinct;
pub(crate) mod explain;
pub(crate) mod open;
pub(crate) mod statistics;
