//! `dropDatabase`: removes all collections of a database.

use crate::frame::args::{Arg, arguments, missing, whole};
use crate::frame::context::Context;
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    if let Some(arg) = arguments(cx.command.name, body).next() {
        return Err(arg.unknown());
    }
    if let Some(first) = body.first() {
        let arg = Arg::new(cx.command.name, first);
        match whole(first.value()) {
            Some(1) => {}
            Some(_) => {
                let text = "Have to pass 1 as 'drop' parameter";
                return Err(Error::location(5255100, text));
            }
            None if arg.is_null() => return Err(missing(cx.command.name, cx.command.name)),
            None => return Err(arg.wrong_type("long, int, decimal, double")),
        }
    }
    if matches!(cx.db, "admin" | "config") {
        let text = format!("Dropping the '{}' database is prohibited.", cx.db);
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let _change = cx.await_transactions(Changed::Database(cx.db.to_owned()))?;
    cx.change_catalog(|store, commit| store.drop_database(cx.db, commit))?;
    cx.service.profiler.forget(cx.db);
    // MongoDB waits for the replication of its drops first, and fails if that is impossible.
    match cx.write_concern().unsatisfied("clientSupplied") {
        Some(error) => {
            let text = format!("dropDatabase {} failed waiting for its collection drops", cx.db);
            Err(Error::new(error.code(), text))
        }
        None => Ok(()),
    }
}
