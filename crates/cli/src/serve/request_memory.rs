//! The memory that all requests of the server may hold together.

use crate::serve::machine;

/// The memory that is assumed if the system does not report it.
const FALLBACK_BYTES: u64 = 1 << 30;

/// The smallest budget: two requests at their own limits.
const BUDGET_BYTES_MIN: u64 = 256 << 20;

/// Returns half of the memory that the process may use. The rest is for the engine, whose cache has
/// its own limit.
pub(super) fn budget_bytes() -> usize {
    let memory = machine::memory_bytes().unwrap_or(FALLBACK_BYTES);
    usize::try_from((memory / 2).max(BUDGET_BYTES_MIN)).unwrap_or(usize::MAX)
}
