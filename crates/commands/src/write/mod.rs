//! Commands that write documents: one file for each command, and their common parts.

pub mod apply_ops;
mod bucket_deletes;
pub mod bulk_write;
pub mod delete;
pub mod delete_statement;
pub mod explain;
pub mod find_and_modify;
pub mod find_and_modify_arguments;
pub mod insert;
mod oplog_buckets;
pub(crate) mod oplog_diff;
mod oplog_entry;
pub mod projecting;
pub mod repeated;
pub mod statement_ids;
pub mod update;
pub mod write_reply;
pub mod writes;
