//! Commands that read documents: one file for each command, and their common parts.

pub mod aggregate;
pub mod analyze_schema;
pub mod change_stream;
pub mod count;
pub mod distinct;
pub mod explain;
pub mod explained;
mod fed_view;
pub mod file_md5;
pub mod find;
pub mod find_request;
pub mod on_view;
mod oplog;
pub mod pipeline_sources;
pub mod query_settings;
pub mod query_stats;
pub mod run_pipeline;
mod series_buckets;
mod transformed_shape;
pub mod what_if;
