//! Runs a `distinct`.

use std::sync::Arc;

use quire_document::ArrayBuf;
use quire_error::{Error, Result};
use quire_planner::ReadRequest;

use crate::distinct_values::{DistinctTaker, DistinctValues};
use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::views::Views;

/// The largest reply in bytes. MongoDB: 16 MiB (17217).
const REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Returns the distinct values at the path `key`, with the elements of arrays, in MongoDB's order
/// of values. The request is a `distinct`, or the pipeline of a `distinct` on a view.
///
/// # Errors
/// The errors of `mql` about the filter and of the planner about the hint; 17217 if the values do
/// not fit into a reply.
pub fn distinct<'r>(
    key: &str,
    request: impl Into<ReadRequest<'r>>,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(ArrayBuf, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    let mut execution = open(request, views, params)?;
    let taker = DistinctTaker::new(key, execution.plan.collation.clone());
    let mut values = DistinctValues::default();
    execution.all(views, &interrupt, &taker, &mut |given| {
        values.add_given(given, &taker)?;
        if values.bytes() > REPLY_BYTES_MAX {
            return Err(Error::location(17217, "distinct too big, 16mb cap"));
        }
        Ok(())
    })?;
    Ok((values.sorted(), execution.examined()))
}
