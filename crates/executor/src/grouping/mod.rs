//! `$group`: the groups in memory (`table`) and on disk (`runs`), and the operator (`group`). The
//! values that it needs of each document are in `columns.rs`, because the scans compute them.

pub(crate) mod group;
pub(crate) mod runs;
pub(crate) mod table;
