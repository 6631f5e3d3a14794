//! `planCacheSetFilter`, `planCacheListFilters` and `planCacheClearFilters`: the indexes that the
//! planner may use for requests of one shape. `planCacheClear` removes cached plans.

use crate::frame::context::Context;
use quire_catalog::{AllowedIndex, Collection, IndexFilter};
use quire_document::{Doc, DocWriter, Value};
use quire_error::{Error, Result};
use quire_mql::collation::AskedCollation;
use quire_planner::{FindRequest, shape_of_request};
use std::sync::Arc;

/// Runs `planCacheSetFilter`: sets the filter of a shape.
pub fn set(cx: &mut Context<'_>, body: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    let Some(collection) = collection(cx, body)? else {
        return Err(Error::bad_value("no such collection"));
    };
    let indexes = allowed_indexes(body)?;
    let request = request(body, &collection)?
        .ok_or_else(|| Error::bad_value("required field query missing"))?;
    let shape = shape_of_request(&request, &cx.parse_context(), &collection)?.0;
    let collation = collation(body)?.unwrap_or_default().to_owned();
    let FindRequest { filter: query, sort, projection, .. } = request;
    let filter = IndexFilter { shape, query, sort, projection, collation, indexes };
    collection.index_filters.set(filter)?;
    collection.plan_cache.clear(Some(shape));
    Ok(())
}

/// Runs `planCacheListFilters`: lists all filters.
pub fn list(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let collection = collection(cx, body)?;
    let mut filters = reply.array("filters");
    for filter in collection.iter().flat_map(|collection| collection.index_filters.all()) {
        filter.write(&mut filters.document());
    }
    Ok(())
}

/// Runs `planCacheClearFilters`: removes one filter or all.
pub fn clear(cx: &mut Context<'_>, body: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    if let Some(collection) = collection(cx, body)? {
        let shape = shape(cx, body, &collection)?;
        collection.index_filters.clear(shape);
        collection.plan_cache.clear(shape);
    }
    Ok(())
}

/// Runs `planCacheClear`: removes the cached plans of one shape or all.
pub fn clear_plans(cx: &mut Context<'_>, body: Doc<'_>, _: &mut DocWriter<'_>) -> Result<()> {
    if let Some(collection) = collection(cx, body)? {
        collection.plan_cache.clear(shape(cx, body, &collection)?);
    }
    Ok(())
}

/// Returns the collection that the first field names; `None` if it does not exist.
fn collection(cx: &Context<'_>, body: Doc<'_>) -> Result<Option<Arc<Collection>>> {
    let namespace = cx.target(body)?;
    let catalog = cx.service.store.catalog();
    catalog.refuse_view_like(&namespace)?;
    Ok(catalog.lookup(&namespace).cloned())
}

/// Returns the shape that a command names; `None` without a query.
fn shape(cx: &Context<'_>, body: Doc<'_>, collection: &Collection) -> Result<Option<u64>> {
    match request(body, collection)? {
        Some(request) => {
            let shape = shape_of_request(&request, &cx.parse_context(), collection)?;
            Ok(Some(shape.0))
        }
        None if ["sort", "projection", "collation"].iter().any(|name| body.contains(name)) => {
            Err(Error::bad_value("sort, projection, or collation provided without query"))
        }
        None => Ok(None),
    }
}

/// Returns the request with the shape that a command names; `None` without a query.
fn request(body: Doc<'_>, collection: &Collection) -> Result<Option<FindRequest>> {
    let Some(filter) = object(body, "required", "query")? else { return Ok(None) };
    Ok(Some(FindRequest {
        namespace: collection.namespace.as_str().to_owned(),
        filter: filter.to_owned(),
        sort: object(body, "optional", "sort")?.unwrap_or_default().to_owned(),
        projection: object(body, "optional", "projection")?.unwrap_or_default().to_owned(),
        collation: match collation(body)? {
            Some(collation) => AskedCollation::parse(collation)?,
            None => AskedCollation::Default,
        },
        ..FindRequest::default()
    }))
}

/// Returns the collation, which must not be empty or an array.
fn collation(body: Doc<'_>) -> Result<Option<Doc<'_>>> {
    match body.get("collation") {
        None => Ok(None),
        Some(Value::Document(collation)) if !collation.is_empty() => Ok(Some(collation)),
        Some(_) => Err(Error::bad_value("optional field collation must be an object")),
    }
}

/// Returns an object argument. As in MongoDB an array counts as one, whose names are its positions.
fn object<'b>(body: Doc<'b>, kind: &str, name: &str) -> Result<Option<Doc<'b>>> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::Document(doc)) => Ok(Some(doc)),
        Some(Value::Array(array)) => Ok(Some(array.as_doc())),
        Some(_) => Err(Error::bad_value(format!("{kind} field {name} must be an object"))),
    }
}

/// Reads the indexes that a filter allows.
fn allowed_indexes(body: Doc<'_>) -> Result<Vec<AllowedIndex>> {
    let indexes = match body.get("indexes") {
        None => return Err(Error::bad_value("required field indexes missing")),
        Some(Value::Array(indexes)) => indexes,
        Some(_) => return Err(Error::bad_value("required field indexes must be an array")),
    };
    if indexes.count() == 0 {
        let text = "required field indexes must contain at least one index";
        return Err(Error::bad_value(text));
    }
    let allowed = indexes.iter().map(|index| match index {
        Value::String(name) => Ok(AllowedIndex::Name(name.to_owned())),
        Value::Document(pattern) if pattern.is_empty() => {
            Err(Error::bad_value("index specification cannot be empty"))
        }
        Value::Document(pattern) => Ok(AllowedIndex::Pattern(pattern.to_owned())),
        _ => Err(Error::bad_value("each item in indexes must be an object or string")),
    });
    allowed.collect()
}
