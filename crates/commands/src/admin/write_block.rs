//! `setUserWriteBlockMode`: refuses the writes of users, or ends that.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use crate::frame::write_block::REASONS;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut global, mut reason) = (None, REASONS[0]);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "global" | "reason" if arg.is_null() => {}
            "global" => global = Some(arg.bool()?),
            "reason" => {
                let given = arg.string()?;
                let known = REASONS.into_iter().find(|known| *known == given);
                reason = known.ok_or_else(|| {
                    Error::bad_value(format!(
                        "Enumeration value '{given}' for field 'setUserWriteBlockMode.reason' is not a valid value."
                    ))
                })?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let global = global.ok_or_else(|| missing(cx.command.name, "global"))?;
    cx.check_member()?;
    cx.set_write_block(global, reason)
}
