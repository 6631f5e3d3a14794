//! Databases, collections, indexes and their options: an immutable, versioned snapshot, and the
//! records in which it is stored.
//!
//! A [`Catalog`] is immutable: a DDL statement builds the next one and publishes it together with
//! its commit. Its only mutable part is [`Multikey`]. Multikey bits are never cleared, and they are
//! set before the commit that makes them true, so that a reader with an older snapshot can rely on
//! them. This crate does no I/O; `collections` reads and writes the records.

pub mod buckets;
pub mod capped;
mod catalog;
pub mod clustered;
mod collection;
mod ids;
mod index;
mod index_filter;
mod index_match;
mod index_parse;
mod index_pattern;
mod index_spec;
pub mod key;
mod multikey;
mod names;
mod options;
mod partial;
pub mod patterns;
mod plan_cache;
mod query_settings;
mod record;
mod search_binding;
mod storage_engine;
mod text;
pub mod time_series;
mod validator;
mod view;
mod view_graph;
mod view_reading;

pub use catalog::{Catalog, Database};
pub use collection::{Collection, RulesSlot};
pub use ids::{CollectionId, IndexId, Uuid};
pub use index::{Index, IndexState};
pub use index_filter::{
    AllowedIndex, INDEX_FILTERS_BYTES_MAX, INDEX_FILTERS_MAX, IndexFilter, IndexFilters,
};
pub use index_match::SpecMatch;
pub use index_spec::IndexSpec;
pub use multikey::{ARRAY_PATHS_MAX, Facts, FactsBuf, Multikey, MultikeyPaths};
pub use names::{Namespace, OPLOG, split as split_namespace, validate_db_name};
pub use options::{CollectionOptions, parse_images};
pub use partial::PartialFilter;
pub use plan_cache::{CACHED_PLANS_MAX, CACHED_QUERY_BYTES_MAX, CacheKey, CachedPlan, PlanCache};
pub use query_settings::{QuerySettings, is_allowed};
pub use record::{
    CATALOG_FORMAT, FormatRecord, collection_key, decode_collection, dropped_key,
    encode_collection, format_key, is_low_water_key, log_key, low_water_key, multikey_key,
    number_in_key, parse_collection_key, prefix_of_collections, prefix_of_dropped,
    prefixes_of_numbers,
};
pub use search_binding::bind_searches;
pub use text::{debug_doc, debug_value};
pub use validator::{
    Validation, ValidationAction, ValidationLevel, ValidationOptions, Validator, WriteTime,
    validation_error,
};
pub use view::{SYSTEM_VIEWS, ViewDefinition};
pub use view_reading::ResolvedView;

/// The longest database name in bytes. MongoDB: 63 (73 InvalidNamespace).
pub const DB_NAME_BYTES_MAX: usize = 63;
