//! `cloneCollectionAsCapped`: a new capped collection with the newest documents of another one.

use crate::ddl::convert_to_capped::capped_size;
use crate::frame::context::Context;
use quire_catalog::Namespace;
use quire_document::limits::NAMESPACE_BYTES_MAX;
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, _reply: &mut DocWriter<'_>) -> Result<()> {
    let from = name(body, cx.command.name, "source")?;
    let to = name(body, "toCollection", "target")?;
    if to.starts_with("system.buckets.") {
        let text = format!("{to} is no time-series collection");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let from = source(cx, from)?;
    if cx.service.store.catalog().series_of(&from).is_some() {
        let text = format!("cannot clone {from}, the buckets of a time-series collection");
        return Err(Error::new(ErrorCode::IllegalOperation, text));
    }
    let to = Namespace::new(cx.db, to)?;
    let bytes_max = capped_size(cx.command.name, body)?;
    cx.change_catalog(|store, commit| {
        store.clone_as_capped((&from, &to), bytes_max, &cx.interrupt, commit)
    })
}

/// Returns the namespace of the source. No collection has a name that is too long.
fn source(cx: &Context<'_>, name: &str) -> Result<Namespace> {
    if cx.db.len() + 1 + name.len() > NAMESPACE_BYTES_MAX {
        let text = format!("source collection {}.{name} does not exist", cx.db);
        return Err(Error::new(ErrorCode::NamespaceNotFound, text));
    }
    Namespace::new(cx.db, name)
}

/// Returns the name of a collection in a field of the command.
fn name<'d>(body: Doc<'d>, field: &str, what: &str) -> Result<&'d str> {
    let Some(Value::String(name)) = body.get(field) else {
        return Err(Error::type_mismatch(format!("'{field}' must be of type String")));
    };
    if name.contains('$') {
        let text = format!("Invalid {what} collection name: {name}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(name)
}
