//! The option `storageEngine` of collections and of indexes.

use quire_document::{Doc, Value};
use quire_error::{Error, ErrorCode, Result};

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
                ("configString", Value::String(_)) => {}
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
