//! Commands that give advice about what is stored and how it is used.

pub mod advise_indexes;
mod server_laboratory;
mod workload;
