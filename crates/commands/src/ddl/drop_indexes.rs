//! `dropIndexes`: by name, by key, several by name, or all except `_id`.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use quire_collections::DropIndexes;
use quire_document::{Doc, DocWriter, Value};
use quire_error::Result;
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut which = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "index" => which = Some(target(&arg)?),
            "isTimeseriesNamespace" => {
                arg.bool()?;
            }
            _ => return Err(arg.unknown()),
        }
    }
    let namespace = cx.service.store.catalog().stored_name(cx.target(body)?);
    let which = which.ok_or_else(|| missing(cx.command.name, "index"))?;
    let _change =
        cx.await_transactions(Changed::Collections(vec![namespace.as_str().to_owned()]))?;
    let dropped =
        cx.change_catalog(|store, commit| store.drop_indexes(&namespace, &which, commit))?;
    reply.append("nIndexesWas", dropped.before as i32);
    if matches!(which, DropIndexes::All) {
        reply.append("msg", "non-_id indexes dropped for collection");
    }
    Ok(())
}

fn target(arg: &Arg<'_>) -> Result<DropIndexes> {
    match arg.value() {
        Value::String("*") => Ok(DropIndexes::All),
        Value::String(name) => Ok(DropIndexes::Name(name.to_owned())),
        Value::Document(key) => Ok(DropIndexes::Key(key.to_owned())),
        Value::Array(names) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            let names: Option<Vec<String>> = names.collect();
            names.map(DropIndexes::Names).ok_or_else(|| arg.wrong_type("string, object"))
        }
        _ => Err(arg.wrong_type("string, object")),
    }
}
