//! `create`: makes a collection.

use crate::frame::args::{is_generic, missing};
use crate::frame::context::Context;
use quire_catalog::CollectionOptions;
use quire_document::{Doc, DocBuf, DocWriter};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let namespace = cx.target(body)?;
    if body.is_empty() {
        return Err(missing(cx.command.name, "create"));
    }
    let fields = DocBuf::build(|writer| {
        let own = body.iter().skip(1).filter(|element| !is_generic(element.key_bytes()));
        own.for_each(|element| {
            writer.append_element(element);
        });
    });
    if cx.in_transaction() {
        cx.join_transaction()?;
        refuse_kinds(body)?;
    }
    let options = CollectionOptions::parse(fields.as_doc())?;
    if cx.in_transaction() {
        return cx.transaction_unit()?.create_collection(&namespace, options);
    }
    cx.service.store.create_collection(&namespace, options, &cx.commit_options())?;
    Ok(())
}

/// Refuses the kinds of collections that no transaction makes.
fn refuse_kinds(body: Doc<'_>) -> Result<()> {
    let kinds = [("viewOn", "view"), ("timeseries", "time-series collection")];
    match kinds.iter().find(|(field, _)| body.contains(field)) {
        None => Ok(()),
        Some((_, kind)) => {
            let text = format!("Cannot create a {kind} in a multi-document transaction.");
            Err(Error::new(ErrorCode::OperationNotSupportedInTransaction, text))
        }
    }
}
