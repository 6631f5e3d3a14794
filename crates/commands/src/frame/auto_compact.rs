//! What `autoCompact` has asked for. The thread in `jobs/compaction.rs` does it.

use quire_error::{Error, ErrorCode, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The options of `autoCompact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactOptions {
    /// A compaction runs if it would free this many bytes of a collection.
    pub target_bytes: u64,
    /// True to look at each collection once, and then to stop.
    pub once: bool,
}

/// The options, and the number of the `autoCompact` that turned it on with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The options with which it is on.
    pub options: CompactOptions,
    /// The number of times that it was turned on.
    pub number: u64,
}

/// Whether compaction in the background is on. It does not outlive the process.
#[derive(Default)]
pub struct AutoCompact(Mutex<State>);

#[derive(Default)]
struct State {
    current: Option<CompactOptions>,
    /// The number of times that it was turned on.
    number: u64,
}

impl AutoCompact {
    /// Turns it on or off.
    ///
    /// # Errors
    /// `AlreadyInitialized` if it is on with other options.
    pub fn set(&self, options: Option<CompactOptions>) -> Result<()> {
        let mut state = self.lock();
        if let (Some(current), Some(options)) = (state.current, options)
            && current != options
        {
            let text = "autoCompact is on with other options; turn it off first";
            return Err(Error::new(ErrorCode::AlreadyInitialized, text));
        }
        state.number += u64::from(state.current.is_none() && options.is_some());
        state.current = options;
        Ok(())
    }

    /// Returns what was asked for if it is on.
    pub fn get(&self) -> Option<Asked> {
        let state = self.lock();
        state.current.map(|options| Asked { options, number: state.number })
    }

    /// Turns it off after the pass for `asked`, if that was for one pass.
    pub fn passed(&self, asked: Asked) {
        let mut state = self.lock();
        if asked.options.once && asked.number == state.number {
            state.current = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
