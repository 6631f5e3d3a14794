//! `abortTransaction`: ends a transaction without its writes.

use super::{note_concern, outside_transaction};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "recoveryToken" if arg.is_null() => {}
            "recoveryToken" => {
                arg.document()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let (Some(session), Some(number), true) =
        (&cx.session, cx.generic.txn_number, cx.in_transaction())
    else {
        return Err(outside_transaction(cx));
    };
    let ended = session.abort_transaction(&cx.service.store, number, &cx.interrupt);
    note_concern(cx, &ended);
    ended
}
