//! Running a `count`.

use std::sync::Arc;

use quire_error::Result;
use quire_planner::CountRequest;

use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::views::Views;

/// Counts the documents that match.
///
/// # Errors
/// What `mql` says about the filter, the planner about the hint, and what running it meets.
pub fn count(
    request: &CountRequest,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(u64, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    let mut execution = open(request, views, params)?;
    execution.drain(views, &interrupt)?;
    Ok((execution.root.stats().counted, execution.examined()))
}
