//! `replSetResizeOplog`: changes how much of the past the change log keeps.

use crate::frame::args::{Arg, arguments};
use crate::frame::change_log::LogSize;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

/// The smallest size in megabytes. MongoDB: 990.
const MEGABYTES_MIN: f64 = 990.0;
/// The largest size in megabytes. MongoDB: one pebibyte.
const MEGABYTES_MAX: f64 = 1_073_741_824.0;

/// Sets `size`, in megabytes, and `minRetentionHours`. What is not given stays. The change holds
/// also after a restart.
///
/// # Errors
/// 76 without a change log; 72 InvalidOptions if neither is given; 2 for a number out of range.
pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut megabytes, mut hours) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "size" if !arg.is_null() => {
                megabytes = Some(number(&arg, MEGABYTES_MIN, MEGABYTES_MAX)?);
            }
            "minRetentionHours" if !arg.is_null() => {
                hours = Some(number(&arg, 0.0, 1_000_000.0)?);
            }
            "size" | "minRetentionHours" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let service = cx.service;
    if service.set_name().is_none() || !service.store.logs_changes() {
        let text = "replSetResizeOplog needs a replica set with a change log";
        return Err(Error::new(ErrorCode::NoReplicationEnabled, text));
    }
    if megabytes.is_none() && hours.is_none() {
        let text = "replSetResizeOplog needs the field size, minRetentionHours, or both";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    let LogSize { bytes_max, age_min_ms } = service.change_log_size.get();
    let size = LogSize {
        bytes_max: megabytes.map_or(bytes_max, |megabytes| (megabytes * 1_048_576.0) as u64),
        age_min_ms: hours.map_or(age_min_ms, |hours| (hours * 3_600_000.0) as u64),
    };
    service.change_log_size.set(&service.store, size)?;
    service.keep_oplog()
}

/// Returns a number from `least` to `most`.
fn number(arg: &Arg<'_>, least: f64, most: f64) -> Result<f64> {
    let expected = "double, int, long, decimal";
    let number = arg.value().to_f64().ok_or_else(|| arg.wrong_type(expected))?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let (name, bound) = (arg.name(), if number > most { most } else { least });
    let sign = if number > most { "<=" } else { ">=" };
    let text = format!("BSON field '{name}' value must be {sign} {bound}, actual value '{number}'");
    Err(Error::bad_value(text))
}
