//! Runs a `count`.

use std::sync::Arc;

use quire_document::Value;
use quire_error::Result;
use quire_planner::{COUNT_FIELD, ReadRequest};

use crate::examined::Examined;
use crate::opening::open::open;
use crate::params::ExecParams;
use crate::views::Views;

/// Counts the matching documents. The request is a `count`, or the pipeline of a `count` on a view.
///
/// # Errors
/// The errors of `mql` about the filter, of the planner about the hint, and of the execution.
pub fn count<'r>(
    request: impl Into<ReadRequest<'r>>,
    views: &mut dyn Views,
    params: ExecParams,
) -> Result<(u64, Examined)> {
    let interrupt = Arc::clone(&params.interrupt);
    let mut execution = open(request, views, params)?;
    if !execution.plan.of_pipeline {
        execution.drain(views, &interrupt)?;
        return Ok((execution.root.stats().counted, execution.examined()));
    }
    // An empty result means 0.
    let mut found = 0;
    execution.rows(views, &interrupt, usize::MAX, |row| {
        found = match row.doc().get(COUNT_FIELD) {
            Some(Value::Int32(number)) => u64::try_from(number).unwrap_or(0),
            Some(Value::Int64(number)) => u64::try_from(number).unwrap_or(0),
            _ => 0,
        };
        true
    })?;
    Ok((found, execution.examined()))
}
