//! `$group`: what it takes of each document (`columns`), the groups in memory (`table`) and on disk
//! (`runs`), and the operator (`group`).

pub(crate) mod columns;
pub(crate) mod group;
pub(crate) mod runs;
pub(crate) mod table;
