//! `listCollections`: the collections of a database with their options.

use crate::frame::args::arguments;
use crate::frame::context::Context;
use crate::frame::matching::filter_documents;
use crate::frame::query_args::{batch_size, owned};
use quire_access::{Action, Target};
use quire_catalog::buckets::{name_of_buckets, options_of_buckets};
use quire_catalog::{Collection, ViewDefinition};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value};
use quire_error::Result;

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let (mut filter, mut name_only, mut batch) = (DocBuf::new(), false, None);
    let mut own_only = false;
    for arg in arguments(cx.command.name, body) {
        match arg.name() {
            "filter" => filter = owned(&arg)?,
            "nameOnly" if !arg.is_null() => name_only = arg.bool()?,
            "cursor" if !arg.is_null() => {
                batch = batch_size("listCollections.cursor", arg.document()?)?
            }
            "authorizedCollections" if !arg.is_null() => own_only = arg.bool()?,
            "includePendingDrops" if !arg.is_null() => {
                arg.bool()?;
            }
            "nameOnly" | "cursor" | "authorizedCollections" | "includePendingDrops" => {}
            _ => return Err(arg.unknown()),
        }
    }
    let catalog = cx.service.store.catalog();
    let mut rows: Vec<DocBuf> = match catalog.database(cx.db) {
        Some(database) => {
            database.check_views()?;
            let is_own = |name: &str| !own_only || cx.may_use(name);
            let shown = database
                .collections()
                .filter(|collection| is_own(collection.namespace.collection()));
            let views = database.views().filter(|view| is_own(view.namespace.collection()));
            let views = views.map(|view| view_row(view, name_only));
            let series = database.collections().filter(|found| found.is_time_series());
            let buckets = series.filter(|series| is_own(&name_of_buckets(series)));
            let buckets = buckets.map(|series| buckets_row(series, name_only));
            shown.map(|collection| row(collection, name_only)).chain(views).chain(buckets).collect()
        }
        None => Vec::new(),
    };
    rows.sort_by(|a, b| name_of(a).cmp(name_of(b)));
    let kept = filter_documents(cx, filter.as_doc(), &rows)?;
    let kept: Vec<DocBuf> = kept.into_iter().cloned().collect();
    let namespace = format!("{}.$cmd.listCollections", cx.db);
    cx.list_reply(reply, &namespace, kept, batch, body)
}

impl Context<'_> {
    /// Returns true if the client has a privilege on a collection of the command's database.
    fn may_use(&self, collection: &str) -> bool {
        let target = Target::Collection(self.db, collection);
        Action::ALL.iter().any(|action| self.may(target, *action))
    }
}

fn name_of(row: &DocBuf) -> &str {
    row.get("name").and_then(|name| name.as_str()).unwrap_or_default()
}

fn row(collection: &Collection, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", collection.namespace.collection()).append("type", kind(collection));
        if !name_only {
            describe_collection(collection, writer);
        }
    })
}

fn view_row(view: &ViewDefinition, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", view.namespace.collection()).append("type", "view");
        if !name_only {
            describe_view(view, writer);
        }
    })
}

/// Returns the row of the buckets of a time-series collection.
fn buckets_row(series: &Collection, name_only: bool) -> DocBuf {
    DocBuf::build(|writer| {
        writer.append("name", name_of_buckets(series).as_str()).append("type", "collection");
        if !name_only {
            writer.append("options", &options_of_buckets(series));
            let mut info = writer.document("info");
            let uuid = Value::Binary(Binary { subtype: 4, bytes: &series.uuid.0 });
            info.append("readOnly", false).append("uuid", uuid);
        }
    })
}

/// Returns the `type` of a collection.
pub fn kind(collection: &Collection) -> &'static str {
    if collection.is_time_series() { "timeseries" } else { "collection" }
}

/// Writes `options`, `info` and `idIndex` of a collection. A time-series collection shows no UUID, as
/// in MongoDB.
pub fn describe_collection(collection: &Collection, writer: &mut DocWriter<'_>) {
    writer.append("options", collection.options.document());
    {
        let uuid = Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 });
        let mut info = writer.document("info");
        info.append("readOnly", false);
        if !collection.is_time_series() {
            info.append("uuid", uuid);
        }
        // Not in `options`, which a dump passes on to `create` of another server.
        let declared = &collection.patterns.declared;
        if !declared.is_empty() {
            let mut patterns = info.array("patterns");
            for pattern in declared {
                patterns.push(&pattern.shown());
            }
        }
    }
    if let Some(index) = collection.id_index().filter(|index| !index.is_clustered()) {
        writer.append("idIndex", &index.to_document());
    }
}

/// Writes `options` and `info` of a view.
pub fn describe_view(view: &ViewDefinition, writer: &mut DocWriter<'_>) {
    writer.append("options", &view.options());
    writer.document("info").append("readOnly", true);
}
