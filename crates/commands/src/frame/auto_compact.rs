//! What `autoCompact` has asked for. The thread in `jobs/compaction.rs` does it.

use quire_error::{Error, ErrorCode, Result};
use std::sync::{Mutex, PoisonError};

/// The options of `autoCompact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactOptions {
    /// A compaction runs if it would free this many bytes of a collection.
    pub target_bytes: u64,
    /// True to look at each collection once, and then to stop.
    pub once: bool,
}

/// Whether compaction in the background is on. It does not outlive the process.
#[derive(Default)]
pub struct AutoCompact(Mutex<Option<CompactOptions>>);

impl AutoCompact {
    /// Turns it on or off.
    ///
    /// # Errors
    /// `AlreadyInitialized` if it is on with other options.
    pub fn set(&self, options: Option<CompactOptions>) -> Result<()> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(current), Some(options)) = (*current, options)
            && current != options
        {
            let text = "autoCompact is on with other options; turn it off first";
            return Err(Error::new(ErrorCode::AlreadyInitialized, text));
        }
        *current = options;
        Ok(())
    }

    /// Returns the options if it is on.
    pub fn get(&self) -> Option<CompactOptions> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns it off after a pass, if it is on for one pass.
    pub fn passed(&self) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *current = current.filter(|options| !options.once);
    }
}
