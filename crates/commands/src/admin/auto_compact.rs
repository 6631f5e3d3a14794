//! `autoCompact`: turns compaction in the background on or off.

use crate::frame::args::{arguments, missing};
use crate::frame::auto_compact::CompactOptions;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};

/// The megabytes that a compaction must free to run, if the command does not say.
const TARGET_MB: i64 = 20;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let name = cx.command.name;
    let on = match body.first().map(|first| first.value()) {
        Some(Value::Bool(on)) => on,
        Some(value) if value.is_nullish() => return Err(missing(name, name)),
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            let text = format!(
                "BSON field '{name}.{name}' is the wrong type '{found}', expected type 'bool'"
            );
            return Err(Error::type_mismatch(text));
        }
    };
    let (mut target_mb, mut once) = (TARGET_MB, false);
    for arg in arguments(name, body) {
        match arg.name() {
            "freeSpaceTargetMB" | "runOnce" if arg.is_null() => {}
            "freeSpaceTargetMB" => target_mb = arg.integer_from(1)?,
            "runOnce" => once = arg.bool()?,
            _ => return Err(arg.unknown()),
        }
    }
    let options = match on {
        false => None,
        true => {
            let bytes = target_mb.checked_mul(1 << 20).and_then(|bytes| u64::try_from(bytes).ok());
            let target_bytes = bytes.ok_or_else(|| {
                Error::bad_value(format!("freeSpaceTargetMB is too large: {target_mb}"))
            })?;
            Some(CompactOptions { target_bytes, once })
        }
    };
    cx.service.auto_compact.set(options)?;
    cx.service.store.job_bell().ring();
    Ok(())
}
