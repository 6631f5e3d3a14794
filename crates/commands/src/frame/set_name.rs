//! The name of the replica set, which a directory keeps: a client that knows the set by its name must
//! not find another one behind the same address.

use super::service::{ServiceOptions, Topology};
use quire_collections::Store;
use quire_document::{Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_storage::CommitOptions;
use std::sync::Arc;

/// The setting that keeps the name.
const SETTING: &str = "replicaSet";

/// Compares the name in `options` with the directory's, or takes it from there if the user gave
/// none. A directory that has no name gets this one.
///
/// # Errors
/// `BadValue` if the user gave another name than the directory has.
pub(super) fn settle(options: &mut ServiceOptions, store: &Arc<Store>) -> Result<()> {
    let Topology::ReplicaSet(asked) = &mut options.topology else { return Ok(()) };
    if options.data_directory.is_none() {
        return Ok(());
    }
    let stored = store.setting(SETTING)?;
    let kept = match stored.as_ref().and_then(|setting| setting.get("name")) {
        Some(Value::String(name)) => name,
        _ => {
            let setting = doc! { "name": asked.as_str() };
            // A full disk does not stop a server that reads; the next start tries again.
            let _ = store.put_setting(SETTING, setting.as_doc(), CommitOptions::buffered());
            return Ok(());
        }
    };
    if options.set_name_given && kept != asked.as_str() {
        let text = format!(
            "the directory belongs to the replica set '{kept}', not to '{asked}'; start it with --replSet {kept}, or \
             without --replSet"
        );
        return Err(Error::new(ErrorCode::BadValue, text));
    }
    *asked = kept.to_owned();
    Ok(())
}
