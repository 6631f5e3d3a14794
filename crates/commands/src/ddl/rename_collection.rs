//! `renameCollection`: another name, in the same database or (by copying) in another one.

use crate::args::{Arg, arguments, missing};
use crate::dispatch::Context;
use quire_catalog::Namespace;
use quire_collections::Rename;
use quire_document::{Doc, DocWriter};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut to, mut drop_target) = (None, false);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "to" => to = Some(arg.string()?),
            "dropTarget" if !arg.is_null() => drop_target = arg.safe_bool()?,
            "stayTemp" if !arg.is_null() => {
                arg.bool()?;
            }
            "dropTarget" | "stayTemp" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let from = match body.first() {
        Some(first) => Arg::new(cx.command.name, first).string()?,
        None => return Err(missing(cx.command.name, cx.command.name)),
    };
    let to = to.ok_or_else(|| missing(cx.command.name, "to"))?;
    let rename = Rename { from: Namespace::parse(from)?, to: Namespace::parse(to)?, drop_target };
    cx.service.store.rename_collection(&rename, &cx.interrupt, &cx.commit_options())
}
