//! From a request to an operator tree that is ready to run, one file a kind of request; how a plan's
//! nodes become operators (`build`); what the planner asks of the data (`statistics`).

pub(crate) mod aggregate;
pub(crate) mod build;
pub(crate) mod count;
pub(crate) mod distinct;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod statistics;
