//! The laboratory: a database in memory with copies of collections, or with random samples of them,
//! in which hypothetical indexes are really built and requests really run. Nothing of it reaches the
//! data of the server (docs/adr/0039-executed-what-if.md).
//!
//! Read in this order: `bounded_store` (the database in memory with its limits), `copying` (how
//! documents get there), `workbench` (copies and indexes), `joined` (the collections that a pipeline reads).

pub mod bounded_store;
pub mod copying;
pub mod joined;
pub mod workbench;
