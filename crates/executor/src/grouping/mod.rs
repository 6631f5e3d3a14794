//! `$group`: the groups in memory (`table`) and on disk (`runs`), and the operator (`group`). What it
//! takes of each document is in `columns.rs`, because scans compute it where they read.

pub(crate) mod group;
pub(crate) mod runs;
pub(crate) mod table;
