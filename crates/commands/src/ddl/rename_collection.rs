//! `renameCollection`: renames a collection, in the same database or, by copying, to another one.

use crate::frame::args::{Arg, arguments, missing};
use crate::frame::context::Context;
use crate::frame::query_args::uuid;
use quire_catalog::Namespace;
use quire_collections::Rename;
use quire_document::limits::NAMESPACE_BYTES_MAX;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_session::Changed;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut to, mut drop_target) = (None, false);
    let (mut from_uuid, mut target_uuid) = (None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "to" if !arg.is_null() => to = Some(arg.string()?),
            "dropTarget" => match arg.value() {
                Value::Bool(flag) => drop_target = flag,
                Value::Binary(_) => {
                    target_uuid = Some(uuid(&arg)?);
                    drop_target = true;
                }
                _ => return Err(arg.wrong_type("'bool' or 'binData'")),
            },
            "collectionUUID" if !arg.is_null() => match arg.value() {
                Value::Binary(binary) if binary.subtype == 4 => from_uuid = Some(uuid(&arg)?),
                _ => return Err(arg.wrong_type("UUID")),
            },
            "stayTemp" if !arg.is_null() => {
                arg.bool()?;
            }
            "to" | "collectionUUID" | "stayTemp" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let from = match body.first() {
        Some(first) if !first.value().is_nullish() => Arg::new(cx.command.name, first).string()?,
        _ => return Err(missing(cx.command.name, cx.command.name)),
    };
    let to = to.ok_or_else(|| missing(cx.command.name, "to"))?;
    let (from, to) = (namespace(from)?, namespace(to)?);
    if to.collection().contains(".system.") {
        to.check_creatable()?;
    }
    let rename = Rename { from, to, drop_target, from_uuid, target_uuid };
    let names = [&rename.from, &rename.to].map(|name| name.as_str().to_owned());
    let _change = cx.await_transactions(Changed::Collections(names.to_vec()))?;
    cx.change_catalog(|store, commit| store.rename_collection(&rename, &cx.interrupt, commit))
}

/// Returns a namespace. A name that is too long is an IllegalOperation here.
fn namespace(text: &str) -> Result<Namespace> {
    Namespace::parse(text).map_err(|error| match text.split_once('.') {
        Some((db, _)) if text.len() > NAMESPACE_BYTES_MAX && Namespace::new(db, "c").is_ok() => {
            Error::new(ErrorCode::IllegalOperation, error.message())
        }
        _ => error,
    })
}
