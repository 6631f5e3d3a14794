//! The option `storageEngine` of collections and of indexes.

use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

/// The settings that a table of WiredTiger can be created with (WiredTiger's reference,
/// `WT_SESSION::create`).
const SETTINGS: &[&str] = &[
    "access_pattern_hint",
    "allocation_size",
    "app_metadata",
    "assert",
    "block_allocation",
    "block_compressor",
    "block_manager",
    "cache_resident",
    "checksum",
    "colgroups",
    "collator",
    "columns",
    "dictionary",
    "encryption",
    "exclusive",
    "extractor",
    "format",
    "huffman_key",
    "huffman_value",
    "ignore_in_memory_cache_size",
    "immutable",
    "import",
    "in_memory",
    "internal_item_max",
    "internal_key_max",
    "internal_key_truncate",
    "internal_page_max",
    "key_format",
    "key_gap",
    "leaf_item_max",
    "leaf_key_max",
    "leaf_page_max",
    "leaf_value_max",
    "log",
    "lsm",
    "memory_page_image_max",
    "memory_page_max",
    "os_cache_dirty_max",
    "os_cache_max",
    "prefix_compression",
    "prefix_compression_min",
    "source",
    "split_deepen_min_child",
    "split_deepen_per_child",
    "split_pct",
    "tiered_storage",
    "type",
    "value_format",
    "verbose",
    "write_timestamp_usage",
];

/// Checks the names of the settings in a `configString`: `name=value` and `name=(...)`, separated by
/// commas.
fn check_config(config: &str) -> Result<()> {
    if config.contains('\0') {
        return Err(Error::failed_to_parse("'configString' may not contain null bytes."));
    }
    let mut depth = 0;
    let settings = config.split(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    for setting in settings.map(str::trim).filter(|setting| !setting.is_empty()) {
        let name = setting.split(['=', ':']).next().unwrap_or_default().trim();
        if !SETTINGS.contains(&name) {
            return Err(Error::bad_value(format!("unknown configuration key: '{name}'")));
        }
    }
    Ok(())
}

/// Checks the options of storage engines, by name. They tune engines that this server does not
/// have, so they have no effect and are only shown, as mongod shows them (COMPATIBILITY.md says
/// so).
pub(crate) fn check_storage_engine(doc: Doc<'_>) -> Result<()> {
    for (name, value) in doc.fields() {
        let Value::Document(options) = value else {
            return Err(Error::bad_value(format!(
                "'storageEngine.{name}' has to be an embedded document."
            )));
        };
        if name != "wiredTiger" {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                format!("{name} is not a registered storage engine for this server"),
            ));
        }
        for (option, value) in options.fields() {
            match (option, value) {
                ("configString", Value::String(config)) => check_config(config)?,
                ("configString", _) => {
                    return Err(Error::type_mismatch("'configString' must be a string."));
                }
                _ => {
                    return Err(Error::new(
                        ErrorCode::InvalidOptions,
                        format!("'{option}' is not a supported option."),
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quire_document::doc;

    #[test]
    fn the_names_of_settings_are_checked() {
        let code = |config: &str| {
            let engine = doc! { "wiredTiger": { "configString": config } };
            check_storage_engine(engine.as_doc()).map_or_else(|e| e.code().number(), |()| 0)
        };
        assert_eq!(code(""), 0);
        assert_eq!(code("leaf_page_max=16KB, block_compressor = zstd,"), 0);
        assert_eq!(code("encryption=(name=none,keyid=x),checksum=on"), 0);
        assert_eq!(code("invalid=bad"), 2);
        assert_eq!(code("checksum=on,invalid"), 2);
        assert_eq!(code("checksum\0"), 9);
    }
}
