//! `killCursors`: closes cursors, and replies which of them existed.

use crate::frame::args::{arguments, missing};
use crate::frame::context::Context;
use quire_access::{Action, Target};
use quire_catalog::split_namespace;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let mut ids = None;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "cursors" if arg.is_null() => {}
            "cursors" => ids = Some(arg.array()?),
            _ => return Err(arg.unknown()),
        }
    }
    let collection = match body.first().map(|first| first.value()) {
        Some(Value::String(collection)) => collection,
        other => {
            let found = other.map_or("missing", |value| value.type_name());
            let text = format!("collection name has invalid type {found}");
            return Err(Error::new(ErrorCode::InvalidNamespace, text));
        }
    };
    if collection.is_empty() {
        let text = format!("Invalid namespace specified '{}.'", cx.db);
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    let ids = ids.ok_or_else(|| missing(cx.command.name, "cursors"))?;
    let mut wanted = Vec::new();
    for (at, id) in ids.iter().enumerate() {
        if id.is_nullish() {
            continue;
        }
        let Value::Int64(id) = id else {
            let found = id.type_name();
            return Err(Error::type_mismatch(format!(
                "BSON field 'killCursors.cursors.{at}' is the wrong type '{found}', expected type 'long'"
            )));
        };
        wanted.push(id);
    }
    for id in &wanted {
        check_owner(cx, *id)?;
    }
    let (killed, unknown): (Vec<i64>, Vec<i64>) =
        wanted.into_iter().partition(|id| cx.service.cursors.kill(*id));
    let mut list = |name: &str, ids: &[i64]| {
        let mut array = reply.array(name);
        ids.iter().for_each(|id| {
            array.push(*id);
        });
    };
    list("cursorsKilled", &killed);
    list("cursorsNotFound", &unknown);
    list("cursorsAlive", &[]);
    list("cursorsUnknown", &[]);
    Ok(())
}

/// Checks the right to close a cursor: a client may close its own, and with a privilege those of
/// other users on the cursor's collection, whichever collection the command names.
fn check_owner(cx: &Context<'_>, id: i64) -> Result<()> {
    match cx.service.cursors.owner(id) {
        Some((owner, namespace)) if owner != cx.owner() => {
            if cx.may(Target::Cluster, Action::KillAnyCursor) {
                return Ok(());
            }
            let (db, collection) = split_namespace(&namespace).unwrap_or((&namespace, ""));
            cx.require(Target::Collection(db, collection), Action::KillCursors)
        }
        _ => Ok(()),
    }
}
