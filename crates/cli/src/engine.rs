//! Opens the engine on disk, with messages for people if it fails.

use crate::exit::{FAILED, Failure};
use quire_storage::StorageError;
use quire_storage_lsm::{LsmOptions, Opened};
use std::path::Path;

/// Opens a database directory; creates it if it is missing.
pub(crate) fn open(path: &Path, options: LsmOptions) -> Result<Opened, Failure> {
    let repair = options.repair;
    quire_storage_lsm::open(path, options).map_err(|error| {
        let shown = path.display();
        let advice = match &error {
            StorageError::Corruption { .. } if repair => {
                "; this cannot be repaired, and nothing was changed; restore a backup".to_owned()
            }
            StorageError::Corruption { .. } => {
                format!("; 'quire check --repair {shown}' repairs what can be repaired")
            }
            _ => String::new(),
        };
        let why = match &error {
            StorageError::Unavailable(why) => why.clone(),
            error => error.to_string(),
        };
        let text = format!("cannot open the data directory {shown}: {why}{advice}");
        Failure::new(FAILED, text)
    })
}
