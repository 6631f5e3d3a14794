//! From a request to operators that are ready to run. `open` opens every plan. `count`, `distinct` and
//! `explain` open a plan and run it.

pub(crate) mod count;
pub(crate) mod distinct;
pub(crate) mod explain;
pub(crate) mod open;
