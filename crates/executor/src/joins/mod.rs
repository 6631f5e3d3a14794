//! Stages that read other collections, or their input several times.
//!
//! Reading order: `rows.rs` (running a pipeline inside of a stage), `keys.rs` (the join keys of
//! documents), `keyed_rows.rs` (documents in memory), `foreign.rs` (finding foreign documents by
//! their keys), then one file for each stage.

pub(crate) mod facet;
pub(crate) mod facet_heads;
mod foreign;
pub(crate) mod graph_lookup;
mod keyed_rows;
pub(crate) mod keys;
pub(crate) mod lookup;
pub(crate) mod rows;
pub(crate) mod union_with;
