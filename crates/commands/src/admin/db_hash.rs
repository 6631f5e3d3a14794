//! `dbHash`: an MD5 of each collection's documents in the order of `_id`, so that two servers
//! can be compared.

use crate::frame::context::Context;
use crate::frame::host::host_name;
use md5::{Digest, Md5};
use quire_catalog::Collection;
use quire_catalog::buckets::name_of_buckets;
use quire_collections::{IndexCursor, IndexEntry, IndexRange};
use quire_document::{Array, Binary, Doc, DocWriter, Value};
use quire_error::{Error, Result};
use quire_executor::{UnitOfWork, open};
use quire_planner::FindRequest;
use quire_storage::Direction;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

/// The number of documents that are read on one view.
const PAGE: usize = 500;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let began = Instant::now();
    // A value that is not an array selects all collections, and so does an empty array.
    let wanted = match body.get("collections") {
        Some(Value::Array(names)) => names,
        _ => Array::empty(),
    };
    if let Some(other) = wanted.iter().find(|name| name.as_str().is_none()) {
        let found = other.type_name();
        let text = format!("collections entries have to be strings, not {found}");
        return Err(Error::bad_value(text));
    }
    let named = |name: &str| wanted.iter().any(|wanted| wanted.as_str() == Some(name));
    let catalog = cx.service.store.catalog();
    let mut collections: Vec<Arc<Collection>> = match catalog.database(cx.db) {
        Some(database) => database.collections().cloned().collect(),
        None => Vec::new(),
    };
    collections.retain(|collection| {
        is_replicated(collection) && (wanted.count() == 0 || named(&shown_name(collection)))
    });
    collections.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    reply.append("host", host_name().as_str());
    let mut whole = Md5::new();
    {
        let mut hashes = reply.document("collections");
        for collection in &collections {
            let hash = hash(cx, collection)?;
            whole.update(hash.as_bytes());
            hashes.append(&shown_name(collection), hash.as_str());
        }
    }
    {
        let mut capped = reply.array("capped");
        let found = collections.iter().filter(|found| found.options.capped().is_some());
        found.for_each(|found| {
            capped.push(found.namespace.collection());
        });
    }
    {
        let mut uuids = reply.document("uuids");
        for collection in &collections {
            let uuid = Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 });
            uuids.append(&shown_name(collection), uuid);
        }
    }
    reply.append("md5", hex(whole).as_str());
    reply.append("timeMillis", began.elapsed().as_millis() as i32);
    Ok(())
}

/// Returns the name of a collection; for a time-series collection that of its buckets, as MongoDB does.
fn shown_name(collection: &Collection) -> Cow<'_, str> {
    match collection.is_time_series() {
        true => name_of_buckets(collection).into(),
        false => collection.namespace.collection().into(),
    }
}

/// Returns true if other members of a replica set would have the collection too.
fn is_replicated(collection: &Collection) -> bool {
    let name = collection.namespace.collection();
    collection.namespace.db() != "local"
        && (!collection.namespace.is_system()
            || matches!(name, "system.js" | "system.views" | "system.users" | "system.roles"))
}

fn hash(cx: &Context<'_>, collection: &Collection) -> Result<String> {
    let mut hash = Md5::new();
    if collection.is_time_series() {
        return hash_points(cx, collection);
    }
    let order = collection.clustered_index().or_else(|| collection.id_index());
    let Some(index) = order else { return Ok(hex(hash)) };
    let mut cursor = IndexCursor::new(index, IndexRange::whole(index), Direction::Forward);
    let mut entries: Vec<IndexEntry> = Vec::new();
    let mut found = Vec::new();
    let mut more = true;
    while more {
        cx.check_interrupt()?;
        entries.clear();
        found.clear();
        let view = cx.service.store.read_view()?;
        more = cursor.next_page(&view.view(), PAGE, &mut entries)?;
        let ids: Vec<_> = entries.iter().map(|entry| entry.record).collect();
        view.view().get_many(collection, &ids, &mut found)?;
        found.iter().flatten().for_each(|doc| hash.update(doc.as_bytes()));
    }
    Ok(hex(hash))
}

/// Hashes the points of a time-series collection in the order of their time.
fn hash_points(cx: &Context<'_>, collection: &Collection) -> Result<String> {
    let mut hash = Md5::new();
    let namespace = collection.namespace.as_str().to_owned();
    let request = FindRequest { namespace, ..FindRequest::default() };
    let unit = cx.unit()?;
    let mut views = unit.views()?;
    let mut execution = open(&request, &views, cx.exec_params())?;
    while let Some(point) = execution.next_document(&mut views, &cx.interrupt)? {
        hash.update(point.as_bytes());
    }
    Ok(hex(hash))
}

fn hex(hash: Md5) -> String {
    hash.finalize().iter().fold(String::with_capacity(32), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
