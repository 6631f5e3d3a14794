//! The version of the replica set's configuration, which `replSetReconfig` raises.

use crate::frame::service::Service;
use quire_collections::Store;
use quire_document::doc;
use quire_error::Result;
use quire_storage::CommitOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// The name of the stored setting.
const SETTING: &str = "replicaSetConfig";

/// The version in memory, as it is stored.
pub struct ConfigVersion(AtomicI32);

impl ConfigVersion {
    /// Reads the stored version; it is 1 before the first change.
    ///
    /// # Errors
    /// The errors of the storage.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let stored = store.setting(SETTING)?;
        let version = stored.and_then(|stored| stored.get("version")?.exact_i64());
        let version = version.and_then(|version| i32::try_from(version).ok());
        Ok(ConfigVersion(AtomicI32::new(version.unwrap_or(1))))
    }

    /// Returns the version.
    pub fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the version, durably.
    ///
    /// # Errors
    /// The errors of the commit.
    pub fn set(&self, service: &Service, version: i32) -> Result<()> {
        let stored = doc! { "version": version };
        service.store.put_setting(SETTING, stored.as_doc(), CommitOptions::synced())?;
        self.0.store(version, Ordering::Relaxed);
        Ok(())
    }
}
