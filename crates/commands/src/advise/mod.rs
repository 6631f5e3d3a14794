//! Commands that give advice about what is stored and how it is used.

pub mod advise_indexes;
pub mod advise_schema;
mod server_laboratory;
mod workload;
