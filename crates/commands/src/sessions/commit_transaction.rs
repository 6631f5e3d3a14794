//! `commitTransaction`: ends a transaction with its writes. It may be repeated, also after a
//! restart, with the same reply.

use super::{note_concern, outside_transaction};
use crate::frame::args::arguments;
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let mut timestamp = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "commitTimestamp" if !arg.is_null() => timestamp = true,
            // Sharded clusters use it to find the transaction's coordinator.
            "recoveryToken" if !arg.is_null() => {
                arg.document()?;
            }
            "commitTimestamp" | "recoveryToken" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let (Some(session), Some(number), true) =
        (&cx.session, cx.generic.txn_number, cx.in_transaction())
    else {
        return Err(outside_transaction(cx));
    };
    if timestamp {
        cx.join_transaction()?;
        let text = "commitTransaction cannot provide commitTimestamp to unprepared transaction.";
        return Err(Error::new(ErrorCode::InvalidOptions, text));
    }
    if let Err(error) = cx.authorize_commit(session, number) {
        // A command that fails after it has joined aborts the transaction.
        cx.join_transaction()?;
        return Err(error);
    }
    let options = cx.commit_options();
    let ended = session.commit_transaction(&cx.service.store, number, options, &cx.interrupt);
    note_concern(cx, &ended);
    cx.committed.set(ended?);
    Ok(())
}
