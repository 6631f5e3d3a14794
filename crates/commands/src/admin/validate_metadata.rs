//! `validateDBMetadata`: finds the parts of the catalog that a declared API version does not allow.
//! For version 1 these are text indexes and sparse indexes.

use crate::frame::args::{arguments, fields, missing};
use crate::frame::context::Context;
use quire_catalog::{Collection, Index};
use quire_document::{Doc, DocWriter};
use quire_error::{Error, ErrorCode, Result};
use std::sync::Arc;

/// The number of errors in a reply; `hasMoreErrors` says that there are more.
const ERRORS_MAX: usize = 1000;
const DB_NAME_BYTES_MAX: usize = 63;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut checks, mut db, mut name) = (None, None, None);
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "apiParameters" | "db" | "collection" if arg.is_null() => {}
            "apiParameters" => checks = Some(checks_anything(arg.document()?)?),
            "db" => db = Some(db_name(arg.string()?)?),
            "collection" => name = Some(collection_name(arg.string()?)?),
            _ => return Err(arg.unknown()),
        }
    }
    let checks = checks.ok_or_else(|| missing(cx.command.name, "apiParameters"))?;
    let catalog = cx.service.store.catalog();
    let mut collections: Vec<&Arc<Collection>> = catalog
        .collections()
        .filter(|_| checks)
        .filter(|found| db.is_none_or(|db| found.namespace.db() == db))
        .filter(|found| name.is_none_or(|name| found.namespace.collection() == name))
        .collect();
    collections.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    let offending = collections.iter().flat_map(|collection| {
        collection
            .indexes
            .iter()
            .filter(|index| !in_version_1(index))
            .map(move |index| (collection, index))
    });
    let mut more = false;
    {
        let mut errors = reply.array("apiVersionErrors");
        for (collection, index) in offending {
            if errors.count() as usize == ERRORS_MAX {
                more = true;
                break;
            }
            let name = &index.name;
            let text = format!("The index with name {name} is not allowed in API version 1.");
            let mut error = errors.document();
            error.append("ns", collection.namespace.as_str());
            error.append("code", ErrorCode::APIStrictError.number());
            error.append("codeName", &*ErrorCode::APIStrictError.name());
            error.append("errmsg", text.as_str());
        }
    }
    if more {
        reply.append("hasMoreErrors", true);
    }
    Ok(())
}

/// Returns true if these parameters restrict anything.
fn checks_anything(parameters: Doc<'_>) -> Result<bool> {
    const OWNER: &str = "validateDBMetadata.apiParameters";
    let (mut version, mut strict) = (None, false);
    for arg in fields(OWNER, parameters) {
        match arg.name() {
            "version" if arg.is_null() => {}
            "version" => version = Some(arg.string()?),
            "strict" => strict = arg.bool()?,
            // Nothing in version 1 is deprecated.
            "deprecationErrors" => drop(arg.bool()?),
            _ => return Err(arg.unknown()),
        }
    }
    let version = version.ok_or_else(|| missing(OWNER, "version"))?;
    Ok(strict && version == "1")
}

fn in_version_1(index: &Index) -> bool {
    !index.keys.is_sparse() && !index.key().fields().any(|(_, kind)| kind.as_str() == Some("text"))
}

fn db_name(name: &str) -> Result<&str> {
    if name.is_empty() {
        return Err(Error::location(28539, "the name of a database must not be empty"));
    }
    if name.contains(['.', '\0']) || name.len() > DB_NAME_BYTES_MAX {
        let text = format!("Invalid database name: '{name}'");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    match name.contains(['/', '\\', ' ', '"']) {
        true => Err(Error::location(13280, format!("invalid db name: {name}"))),
        false => Ok(name),
    }
}

fn collection_name(name: &str) -> Result<&str> {
    if name.is_empty() || name.starts_with('.') || name.contains('\0') {
        let text = format!("Invalid collection name: '{name}'");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(name)
}
