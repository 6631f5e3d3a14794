//! `$listCatalog`: the catalog's data of one collection, or of all of them if the stage runs on
//! `admin` without a collection.

use crate::ddl::list_collections::kind;
use crate::frame::context::Context;
use quire_catalog::buckets::{name_of_buckets, options_of_buckets};
use quire_catalog::{
    Catalog, Collection, Index, IndexState, MultikeyPaths, Namespace, ViewDefinition,
};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::AggregateRequest;

/// Returns one row for each collection, one for the buckets of each time-series collection, then one for each view, all by
/// name.
///
/// # Errors
/// 6200600 unless the operand is an empty object, 73 InvalidNamespace for a database other than
/// `admin` without a collection, 182 InvalidViewDefinition for a broken view.
pub fn stage(
    cx: &Context<'_>,
    request: &AggregateRequest,
    operand: Value<'_>,
) -> Result<Vec<DocBuf>> {
    if !operand.as_document().is_some_and(Doc::is_empty) {
        let text = "The $listCatalog stage specification must be an empty object";
        return Err(Error::location(6200600, text));
    }
    let catalog = cx.service.store.catalog();
    if !request.namespace.ends_with(".$cmd.aggregate") {
        let namespace = Namespace::parse(&request.namespace)?;
        let found = catalog.lookup(&namespace).into_iter().map(|collection| row(collection));
        let buckets = catalog.series_of(&namespace).into_iter().map(|series| buckets_row(series));
        return Ok(found.chain(buckets).collect());
    }
    if cx.db != "admin" {
        let text = "Collectionless $listCatalog must be run against the 'admin' database with {aggregate: 1}";
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    all(&catalog)
}

fn all(catalog: &Catalog) -> Result<Vec<DocBuf>> {
    let databases = || catalog.databases();
    databases().try_for_each(|database| database.check_views())?;
    let mut collections: Vec<&Collection> =
        databases().flat_map(|database| database.collections()).map(|found| &**found).collect();
    collections.sort_by(|a, b| a.namespace.as_str().cmp(b.namespace.as_str()));
    let mut views: Vec<&ViewDefinition> =
        databases().flat_map(|database| database.views()).map(|found| &**found).collect();
    views.sort_by(|a, b| a.namespace.as_str().cmp(b.namespace.as_str()));
    let series = collections.iter().filter(|found| found.is_time_series());
    let buckets: Vec<DocBuf> = series.map(|series| buckets_row(series)).collect();
    let collections = collections.into_iter().map(row);
    Ok(collections.chain(buckets).chain(views.into_iter().map(view_row)).collect())
}

fn names(namespace: &Namespace, kind: &str, row: &mut DocWriter<'_>) {
    row.append("db", namespace.db()).append("name", namespace.collection()).append("type", kind);
}

fn view_row(view: &ViewDefinition) -> DocBuf {
    DocBuf::build(|row| {
        names(&view.namespace, "view", row);
        row.append("ns", view.namespace.as_str()).append_all(view.document().as_doc());
    })
}

/// Returns the row of the buckets of a time-series collection, which are stored with it.
fn buckets_row(series: &Collection) -> DocBuf {
    let name = name_of_buckets(series);
    let full = format!("{}.{name}", series.namespace.db());
    DocBuf::build(|row| {
        row.append("db", series.namespace.db()).append("name", name.as_str());
        row.append("type", "collection");
        {
            let mut stored = row.document("md");
            stored.append("ns", full.as_str());
            {
                let mut options = stored.document("options");
                let bytes = &series.uuid.0;
                options.append("uuid", Value::Binary(Binary { subtype: 4, bytes }));
                options.append_all(options_of_buckets(series).as_doc());
            }
            stored.append("timeseriesBucketsMayHaveMixedSchemaData", true);
        }
        row.append("ns", full.as_str());
    })
}

/// Returns the row of a collection. The names that MongoDB gives to its files here name ranges of
/// keys.
fn row(collection: &Collection) -> DocBuf {
    let namespace = &collection.namespace;
    DocBuf::build(|row| {
        names(namespace, kind(collection), row);
        {
            let mut stored = row.document("md");
            stored.append("ns", namespace.as_str());
            {
                let mut options = stored.document("options");
                let bytes = &collection.uuid.0;
                options.append("uuid", Value::Binary(Binary { subtype: 4, bytes }));
                options.append_all(collection.options.document());
            }
            let mut indexes = stored.array("indexes");
            own_indexes(collection).for_each(|index| describe(index, &mut indexes.document()));
        }
        {
            let mut files = row.document("idxIdent");
            own_indexes(collection).for_each(|index| {
                files.append(&index.name, format!("index-{}", index.id.0).as_str());
            });
        }
        row.append("ns", namespace.as_str());
        row.append("ident", format!("collection-{}", collection.id.0).as_str());
    })
}

fn own_indexes(collection: &Collection) -> impl Iterator<Item = &Index> {
    let listed = collection.listed_indexes().map(|index| &**index);
    listed.filter(|index| !index.is_clustered())
}

fn describe(index: &Index, out: &mut DocWriter<'_>) {
    let paths = index.multikey.paths();
    out.append("spec", &index.to_document());
    out.append("ready", index.state != IndexState::WriteOnly);
    out.append("multikey", paths.any());
    if index.keys.kind().tracks_arrays {
        let mut shown = out.document("multikeyPaths");
        for (at, field) in index.keys.fields().iter().enumerate() {
            let bits = paths.0.get(at).copied().unwrap_or(0);
            let components = 0..field.path.split('.').count();
            let bytes: Vec<u8> = components
                .map(|component| u8::from(bits & MultikeyPaths::bit(component) != 0))
                .collect();
            shown.append(&field.path, Value::Binary(Binary { subtype: 0, bytes: &bytes }));
        }
    }
    out.append("head", 0_i64).append("backgroundSecondary", false);
}
