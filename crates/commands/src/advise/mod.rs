//! Commands that give advice about what is stored and how it is used.

pub mod advise_indexes;
pub mod advise_schema;
pub mod analyze_shard_key;
mod server_laboratory;
mod workload;
