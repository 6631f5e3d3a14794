//! The entries of the change log for changes of the catalog, made by comparing the catalog before
//! and after a statement.

use std::collections::HashMap;
use std::sync::Arc;

use quire_catalog::{
    Catalog, Collection, CollectionId, Database, Index, IndexState, ViewDefinition,
};
use quire_document::{Binary, DocBuf, DocWriter, Value, doc};

/// Two catalogs, and what their difference does not say.
pub(crate) struct CatalogLog<'c> {
    pub before: &'c Catalog,
    pub after: &'c Catalog,
    /// The database that the statement drops. A database also disappears with its last collection.
    pub dropped_database: Option<&'c str>,
}

/// The collections of the changed databases, by their ids.
type ById = HashMap<CollectionId, Arc<Collection>>;

/// Returns the entries: renames first, then drops, new collections, changes of collections, views.
pub(crate) fn entries(changed: &CatalogLog<'_>) -> Vec<DocBuf> {
    let names = touched(changed);
    let (old, new) = (by_id(changed.before, &names), by_id(changed.after, &names));
    let mut entries = Vec::new();
    let mut replaced: Vec<CollectionId> = Vec::new();
    let mut both: Vec<_> = new.iter().filter_map(|(id, is)| Some((old.get(id)?, is))).collect();
    both.sort_unstable_by_key(|(_, is)| is.id);
    for (was, is) in &both {
        if was.namespace != is.namespace {
            let target = old.values().find(|target| target.namespace == is.namespace);
            let target = target.filter(|target| !new.contains_key(&target.id));
            replaced.extend(target.map(|target| target.id));
            entries.push(renamed(was, is, target.map(|target| &**target)));
        }
    }
    let mut gone: Vec<_> = old.values().filter(|was| !new.contains_key(&was.id)).collect();
    gone.sort_unstable_by(|one, other| one.namespace.cmp(&other.namespace));
    for was in gone.into_iter().filter(|was| !replaced.contains(&was.id)) {
        entries.push(dropped(was));
    }
    if let Some(db) = changed.dropped_database {
        entries.push(DocBuf::build(|entry| {
            entry.append("op", "dropDatabase").append("ns", db);
        }));
    }
    let mut made: Vec<_> = new.values().filter(|is| !old.contains_key(&is.id)).collect();
    made.sort_unstable_by_key(|is| is.id);
    for is in made {
        entries.push(created(is));
        let ready = is.ready_indexes().filter(|index| !index.is_id() && !index.is_clustered());
        of_indexes("createIndexes", is, ready, &mut entries);
    }
    for (was, is) in both.iter().filter(|(was, is)| !Arc::ptr_eq(was, is)) {
        modified(was, is, &mut entries);
    }
    views(changed, &names, &mut entries);
    entries.retain(is_logged);
    entries
}

/// Returns false for an entry of the database `local`.
fn is_logged(entry: &DocBuf) -> bool {
    let namespace = entry.get("ns").and_then(|ns| ns.as_str()).unwrap_or_default();
    crate::log_record::is_logged(namespace.split('.').next().unwrap_or_default())
}

/// Returns the names of the databases that differ.
fn touched<'c>(changed: &CatalogLog<'c>) -> Vec<&'c str> {
    let mut names: Vec<&str> = Vec::new();
    for database in changed.after.databases() {
        let same = |old: &&Arc<Database>| Arc::ptr_eq(*old, database);
        if changed.before.database(database.name()).filter(same).is_none() {
            names.push(database.name());
        }
    }
    let gone = changed.before.databases().map(|old| old.name());
    names.extend(gone.filter(|name| changed.after.database(name).is_none()));
    names
}

fn by_id(catalog: &Catalog, names: &[&str]) -> ById {
    let found = names.iter().filter_map(|name| catalog.database(name));
    let all = found.flat_map(|database| database.collections());
    all.map(|collection| (collection.id, Arc::clone(collection))).collect()
}

fn uuid(collection: &Collection) -> Value<'_> {
    Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 })
}

fn begin(entry: &mut DocWriter<'_>, op: &str, collection: &Collection) {
    entry.append("op", op).append("ns", collection.namespace.as_str());
    entry.append("uuid", uuid(collection));
}

fn renamed(was: &Collection, is: &Collection, target: Option<&Collection>) -> DocBuf {
    DocBuf::build(|entry| {
        begin(entry, "rename", was);
        entry.append("to", is.namespace.as_str());
        if let Some(target) = target {
            entry.append("dropTarget", uuid(target));
            entry.array("gone").push(i64::from(target.id.0));
        }
    })
}

fn dropped(was: &Collection) -> DocBuf {
    DocBuf::build(|entry| {
        begin(entry, "drop", was);
        entry.array("gone").push(i64::from(was.id.0));
    })
}

fn created(is: &Collection) -> DocBuf {
    DocBuf::build(|entry| {
        begin(entry, "create", is);
        let mut o = entry.document("o");
        if let Some(index) = is.indexes.first().filter(|index| !index.is_clustered()) {
            o.append("idIndex", &index.to_document());
        }
        o.append_all(is.options.document());
    })
}

fn of_indexes<'i>(
    op: &str,
    collection: &Collection,
    indexes: impl Iterator<Item = &'i Arc<Index>>,
    entries: &mut Vec<DocBuf>,
) {
    let indexes: Vec<_> = indexes.collect();
    if indexes.is_empty() {
        return;
    }
    entries.push(DocBuf::build(|entry| {
        begin(entry, op, collection);
        let mut o = entry.document("o");
        let mut specs = o.array("indexes");
        for index in indexes {
            specs.push(&index.to_document());
        }
    }));
}

/// Adds the entries for the indexes and the options of a collection.
fn modified(was: &Collection, is: &Collection, entries: &mut Vec<DocBuf>) {
    let is_ready = |index: &&Arc<Index>| index.state == IndexState::Ready;
    let find = |collection: &Collection, name: &str| -> Option<Arc<Index>> {
        let mut ready = collection.indexes.iter().filter(is_ready);
        ready.find(|index| index.name == name).cloned()
    };
    let gone = was.indexes.iter().filter(is_ready);
    let gone = gone.filter(|index| find(is, &index.name).is_none());
    of_indexes("dropIndexes", was, gone, entries);
    let made = is.indexes.iter().filter(is_ready);
    let made = made.filter(|index| find(was, &index.name).is_none());
    of_indexes("createIndexes", is, made, entries);
    for index in is.indexes.iter().filter(is_ready) {
        let Some(old) = find(was, &index.name) else { continue };
        let (old, new) = (old.to_document(), index.to_document());
        if old != new {
            entries.push(modified_index(is, (&old, &new)));
        }
    }
    if !was.options.same_as(&is.options) {
        entries.push(modified_options(was, is));
    }
}

/// Appends the fields of `now` that `before` has not, or has with another value.
fn differences(writer: &mut DocWriter<'_>, before: &DocBuf, now: &DocBuf) {
    for (name, value) in now.as_doc().fields() {
        let same = before.get(name).is_some_and(|old| {
            let (old, value) = (doc! { "": old }, doc! { "": value });
            old.as_bytes() == value.as_bytes()
        });
        if !same {
            writer.append(name, value);
        }
    }
}

fn modified_index(is: &Collection, (old, new): (&DocBuf, &DocBuf)) -> DocBuf {
    DocBuf::build(|entry| {
        begin(entry, "modify", is);
        let mut o = entry.document("o");
        let mut index = o.document("index");
        index.append_some("name", new.get("name"));
        differences(&mut index, old, new);
        index.finish();
        o.finish();
        let mut before = entry.document("before");
        let mut options = before.document("collectionOptions");
        options.append("uuid", uuid(is)).append_all(is.options.document());
        options.finish();
        let mut index = before.document("indexOptions");
        differences(&mut index, new, old);
    })
}

fn modified_options(was: &Collection, is: &Collection) -> DocBuf {
    let (old, new) = (was.options.document().to_owned(), is.options.document().to_owned());
    DocBuf::build(|entry| {
        begin(entry, "modify", is);
        let mut o = entry.document("o");
        differences(&mut o, &old, &new);
        o.finish();
        let mut before = entry.document("before");
        let mut options = before.document("collectionOptions");
        options.append("uuid", uuid(was)).append_all(old.as_doc());
    })
}

/// Adds the entries for views. Views have no UUID.
fn views(changed: &CatalogLog<'_>, touched: &[&str], entries: &mut Vec<DocBuf>) {
    let all = |catalog: &Catalog| -> HashMap<String, Arc<ViewDefinition>> {
        let databases = touched.iter().filter_map(|name| catalog.database(name));
        let views = databases.flat_map(|database| database.views());
        views.map(|view| (view.namespace.as_str().to_owned(), Arc::clone(view))).collect()
    };
    let (old, new) = (all(changed.before), all(changed.after));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (was, is) = (old.get(name), new.get(name));
        let op = match (was, is) {
            (None, Some(_)) => "create",
            (Some(_), None) => "drop",
            (Some(was), Some(is)) if was.document() != is.document() => "modify",
            _ => continue,
        };
        entries.push(DocBuf::build(|entry| {
            entry.append("op", op).append("ns", name.as_str()).append("view", true);
            if let Some(is) = is {
                let mut o = entry.document("o");
                let definition = is.document();
                let shown = definition.as_doc().fields().filter(|(field, _)| *field != "_id");
                shown.for_each(|(field, value)| {
                    o.append(field, value);
                });
            }
        }));
    }
}
