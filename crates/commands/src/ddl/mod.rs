//! Commands that change or list the catalog: one file for each command.

pub mod clone_collection_as_capped;
pub mod coll_mod;
pub mod convert_to_capped;
pub mod create;
pub mod create_indexes;
pub mod drop;
pub mod drop_database;
pub mod drop_indexes;
pub mod list_catalog;
pub mod list_cluster_catalog;
pub mod list_collections;
pub mod list_databases;
pub mod list_indexes;
pub mod patterns;
pub mod re_index;
pub mod rename_collection;
pub mod search_indexes;
pub mod set_index_commit_quorum;
mod view_definition;
