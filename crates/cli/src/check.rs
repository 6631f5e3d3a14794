//! `quire check [--repair] DIR`: compares every document with its index entries.

use crate::Call;
use crate::exit::Failure;

/// Checks a stopped directory.
pub(crate) fn run(call: &Call) -> Result<(), Failure> {
    let _ = call;
    Err(Failure::options("quire check is not built yet"))
}
