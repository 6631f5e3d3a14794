//! The rows of `$statusHistory`: samples of `serverStatus` that the server has kept. `quire status
//! --since` reads them.

use crate::frame::args::fields;
use crate::frame::context::Context;
use crate::frame::history;
use quire_document::{DocBuf, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;
use std::io::ErrorKind;

/// Returns the samples from `since` to `until`, at most 1,000 evenly spaced ones, about 6 MB.
///
/// # Errors
/// The errors of the operand; 20 IllegalOperation if the server keeps no history, 96 OperationFailed if it
/// cannot be read.
pub fn stage(cx: &Context<'_>, _: &AggregateRequest, operand: Value<'_>) -> Result<Vec<DocBuf>> {
    let Value::Document(options) = operand else {
        let text = format!("$statusHistory takes a document, not {}", operand.type_name());
        return Err(Error::failed_to_parse(text));
    };
    let (mut since_ms, mut until_ms) = (i64::MIN, i64::MAX);
    for arg in fields("$statusHistory", options) {
        let place = match arg.name() {
            "since" => &mut since_ms,
            "until" => &mut until_ms,
            _ => return Err(arg.unknown()),
        };
        let Value::Date(millis) = arg.value() else { return Err(arg.wrong_type("date")) };
        *place = millis;
    }
    let Some(folder) = &cx.service.options.status_history else {
        let text = "this server keeps no history: its data are in memory, or it is embedded";
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    };
    match history::read(folder, since_ms, until_ms) {
        Ok(samples) => Ok(samples),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            let text = format!("the history cannot be read: {error}");
            Err(Error::new(ErrorCode::OperationFailed, text))
        }
    }
}
