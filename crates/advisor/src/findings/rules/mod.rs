//! The registry of the rules: one file for each.

mod archive;
mod attributes;
mod bloated_documents;
mod bucket;
mod case_insensitive;
mod computed;
mod counters;
mod data_in_names;
mod dates_as_text;
mod dead_index_key;
mod deep_skip;
mod drifting_copies;
mod graph_lookup;
mod growing_arrays;
mod hot_and_cold;
mod link_table;
mod many_collections;
pub(super) mod missing_index;
mod mixed_types;
mod natural_key;
mod negations;
mod orphans;
mod outliers;
mod redundant_index;
mod schema_versions;
mod separated_data;
mod similar_collections;
mod subset;
mod unindexed_reference;
mod unknown_path;
mod unused_index;
mod validator;

use super::Rule;

/// Every rule, in the order of docs/rules.md.
pub const RULES: &[Rule] = &[
    growing_arrays::RULE,
    many_collections::RULE,
    unused_index::RULE,
    redundant_index::RULE,
    bloated_documents::RULE,
    separated_data::RULE,
    case_insensitive::RULE,
    deep_skip::RULE,
    data_in_names::RULE,
    mixed_types::RULE,
    dates_as_text::RULE,
    dead_index_key::RULE,
    unknown_path::RULE,
    orphans::RULE,
    drifting_copies::RULE,
    unindexed_reference::RULE,
    missing_index::RULE,
    negations::RULE,
    link_table::RULE,
    validator::RULE,
    subset::RULE,
    hot_and_cold::RULE,
    computed::RULE,
    counters::RULE,
    bucket::RULE,
    outliers::RULE,
    attributes::RULE,
    similar_collections::RULE,
    schema_versions::RULE,
    graph_lookup::RULE,
    archive::RULE,
    natural_key::RULE,
];
