//! `top`: the number and the duration of operations on each collection and view, and on names that no
//! collection has.

use crate::frame::context::Context;
use crate::frame::usage::{Class, Timed};
use quire_document::{Doc, DocWriter};
use quire_error::Result;

/// Like mongod it accepts any field.
pub fn run(cx: &mut Context<'_>, _body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let catalog = cx.service.store.catalog();
    let usage = &cx.service.usage;
    let mut used = usage.names(&catalog);
    used.extend(catalog.collections().filter_map(|collection| {
        Some((collection.namespace.as_str().into(), usage.get(collection.id)?))
    }));
    used.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut totals = reply.document("totals");
    totals.append("note", "all times in microseconds");
    for (namespace, usage) in used {
        let mut entry = totals.document(&namespace);
        write(&mut entry, "total", &usage.total);
        write(&mut entry, "readLock", &usage.reading);
        write(&mut entry, "writeLock", &usage.writing);
        write(&mut entry, "queries", usage.class(Class::Query));
        write(&mut entry, "getmore", usage.class(Class::GetMore));
        write(&mut entry, "insert", usage.class(Class::Insert));
        write(&mut entry, "update", usage.class(Class::Update));
        write(&mut entry, "remove", usage.class(Class::Remove));
        write(&mut entry, "commands", usage.class(Class::Command));
    }
    Ok(())
}

fn write(entry: &mut DocWriter<'_>, name: &str, timed: &Timed) {
    let mut figures = entry.document(name);
    figures.append("time", timed.micros.get() as i64).append("count", timed.count.get() as i64);
}
