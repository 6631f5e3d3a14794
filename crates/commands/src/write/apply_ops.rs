//! `applyOps`: applies entries of MongoDB's oplog, as `mongorestore --oplogReplay` does. Writes of
//! documents are one commit unless `allowAtomic` is false; commands run one after the other. A collection
//! gets the UUID that its entry has (`ui`).

use super::oplog_entry::Change;
use super::{oplog_buckets, oplog_diff};
use crate::frame::args::{Arg, fields};
use crate::frame::context::Context;
use crate::frame::in_process::Call;
use crate::frame::query_args::write_policy;
use crate::frame::service::now_ms;
use quire_catalog::buckets::{
    OPTIONS_OF_BUCKETS, are_options_of_buckets, series_of_buckets, validation_of_buckets,
};
use quire_catalog::capped::Capped;
use quire_catalog::clustered::check_beside;
use quire_catalog::time_series::BUCKETS;
use quire_catalog::{Collection, CollectionOptions, Namespace, Uuid, Validation};
use quire_collections::{Attempt, WritePolicy, Writer, prepare_insert};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Value, doc};
use quire_error::{Error, ErrorCode, Result};
use quire_executor::UnitOfWork;
use std::sync::Arc;

/// The commands that an entry may run.
const COMMANDS: &[&str] = &[
    "create",
    "drop",
    "dropDatabase",
    "renameCollection",
    "createIndexes",
    "dropIndexes",
    "deleteIndexes",
    "collMod",
];

/// An entry of the oplog.
enum Entry<'a> {
    /// Does nothing at all.
    Noop,
    /// Writes a document.
    Write(Namespace, Change<'a>),
    /// Runs a command against a database.
    Command(&'a str, DocBuf),
    /// Creates a collection with the UUID that it had.
    Create(Namespace, CollectionOptions, Uuid),
}

pub fn run(cx: &mut Context<'_>, body: Doc<'_>, reply: &mut DocWriter<'_>) -> Result<()> {
    let first = body.first().map(|first| Arg::new(cx.command.name, first));
    let Some(Value::Array(entries)) = first.map(|first| first.value()) else {
        let found = first.map_or("missing", |first| first.value().type_name());
        let text = format!(
            "BSON field 'applyOps.applyOps' is the wrong type '{found}', expected type 'array'"
        );
        return Err(Error::type_mismatch(text));
    };
    let policy = check_options(body)?;
    // Refuses an empty list and one of commands, too.
    drop(cx.enter_unblocked()?);
    let entries: Vec<Entry<'_>> = entries.iter().map(parse).collect::<Result<_>>()?;
    let only_writes = entries.iter().all(|entry| matches!(entry, Entry::Write(..) | Entry::Noop));
    let atomic = body.get("allowAtomic").and_then(|flag| flag.as_bool()) != Some(false);
    let count = entries.iter().filter(|entry| !matches!(entry, Entry::Noop)).count();
    if only_writes && atomic {
        let writes = entries.iter().filter_map(|entry| match entry {
            Entry::Write(namespace, change) => Some((namespace, *change)),
            Entry::Noop | Entry::Command(..) | Entry::Create(..) => None,
        });
        let writes: Vec<_> = writes.collect();
        write(cx, policy, &writes).map_err(|error| with_results(error, 0, count))?;
    } else {
        let rest = entries.iter().filter(|entry| !matches!(entry, Entry::Noop));
        for (at, entry) in rest.enumerate() {
            let applied = match entry {
                Entry::Write(namespace, change) => write(cx, policy, &[(namespace, *change)]),
                Entry::Command(db, command) => run_command(cx, db, command.clone()),
                Entry::Create(namespace, options, uuid) => cx.change_catalog(|store, commit| {
                    let new = (options.clone(), Some(*uuid));
                    store.create_collection_as(namespace, new, commit).map(drop)
                }),
                Entry::Noop => Ok(()),
            };
            applied.map_err(|error| with_results(error, at, at + 1))?;
        }
    }
    reply.append("applied", count as i32);
    let mut results = reply.array("results");
    (0..count).for_each(|_| {
        results.push(true);
    });
    Ok(())
}

/// Checks the other fields, and returns for whom the entries write. Like mongod it accepts unknown
/// fields.
fn check_options(body: Doc<'_>) -> Result<WritePolicy> {
    let mut policy = WritePolicy::Client;
    for arg in fields("applyOps", body).skip(1) {
        match arg.name() {
            "prepare" => {
                return Err(Error::bad_value("applyOps command can't have 'prepare' field"));
            }
            "partialTxn" => {
                let text = "applyOps command can't have 'partialTxn' field.";
                return Err(Error::location(31056, text));
            }
            "count" => {
                return Err(Error::type_mismatch("applyOps command can't have 'count' field"));
            }
            "bypassDocumentValidation" => policy = write_policy(&arg)?,
            "alwaysUpsert" if arg.is_null() => {}
            "alwaysUpsert" if arg.bool()? => {
                return Err(Error::location(6711601, "alwaysUpsert is no longer supported"));
            }
            "preCondition" => {
                return Err(Error::location(6711600, "preCondition is no longer supported"));
            }
            _ => {}
        }
    }
    Ok(policy)
}

/// Returns the collection of an entry that writes a document. Collections of the server have
/// commands of their own, which keep the state in memory, the audit log and the rights.
///
/// # Errors
/// 73 InvalidNamespace.
fn writable(namespace: &str) -> Result<Namespace> {
    let namespace = Namespace::parse(namespace)?;
    let is_of_server = matches!(namespace.db(), "admin" | "config" | "local");
    let name = namespace.collection();
    let is_system = name.starts_with("system.") && !name.starts_with(BUCKETS);
    if is_of_server || is_system {
        let text = format!("applyOps does not write to {namespace}");
        return Err(Error::new(ErrorCode::InvalidNamespace, text));
    }
    Ok(namespace)
}

fn parse<'a>(entry: Value<'a>) -> Result<Entry<'a>> {
    let Value::Document(entry) = entry else {
        let text = format!("an entry of applyOps is a document, not {}", entry.type_name());
        return Err(Error::type_mismatch(text));
    };
    let illegal = |text: &str| Err(Error::new(ErrorCode::IllegalOperation, text));
    let op = match entry.get("op") {
        None => return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"op\"")),
        Some(Value::String("")) => return illegal("the field op of an entry is empty"),
        Some(Value::String(op)) => op,
        Some(other) => {
            let found = other.type_name();
            let text = format!("\"op\" had the wrong type. Expected string, found {found}");
            return Err(Error::type_mismatch(text));
        }
    };
    let namespace = match entry.get("ns") {
        Some(Value::String(namespace)) if !namespace.is_empty() => namespace,
        _ if op == "n" => return Ok(Entry::Noop),
        _ => return illegal("the field ns of an entry is the name of a collection"),
    };
    let Some(Value::Document(object)) = entry.get("o") else {
        return Err(crate::frame::args::missing("OplogEntryBase", "o"));
    };
    let write = |change: Change<'a>| -> Result<Entry<'a>> {
        Ok(Entry::Write(writable(namespace)?, change))
    };
    match op {
        "n" => Ok(Entry::Noop),
        "i" => {
            id_of(object)?;
            write(Change::Insert(object))
        }
        "u" => {
            let query = entry.get("o2").and_then(|query| query.as_document()).unwrap_or_default();
            let upsert = entry.get("b").and_then(|flag| flag.as_bool()) == Some(true);
            write(Change::Update(id_of(query)?, object, upsert))
        }
        "d" => write(Change::Delete(id_of(object)?)),
        "c" => {
            let db = namespace.split_once('.').map_or(namespace, |(db, _)| db);
            let name = object.first().map_or("", |first| first.key());
            match name {
                // The oplog has a rename under its database; the command runs in `admin`.
                "renameCollection" => Ok(Entry::Command("admin", object.to_owned())),
                "create" if entry.contains("ui") && !object.contains("viewOn") => {
                    create(db, object, uuid_of(entry)?)
                }
                "createIndexes" if !object.contains("indexes") => {
                    Ok(Entry::Command(db, create_index(object)))
                }
                _ if COMMANDS.contains(&name) => Ok(Entry::Command(db, object.to_owned())),
                _ => Err(Error::bad_value(format!("applyOps does not run the command '{name}'"))),
            }
        }
        other => Err(Error::bad_value(format!("'{other}' is no type of an entry of the oplog"))),
    }
}

/// Returns the entry for a collection that has had this UUID.
fn create<'a>(db: &str, object: Doc<'_>, uuid: Uuid) -> Result<Entry<'a>> {
    let name = object.first().and_then(|first| first.value().as_str()).unwrap_or_default();
    let namespace = writable(&format!("{db}.{name}"))?;
    check_beside(object)?;
    Capped::parse(object)?;
    // The buckets of a time-series collection stand for it, and have options of their own.
    let (namespace, left_out): (_, &[&str]) = match series_of_buckets(&namespace) {
        Some(series) if are_options_of_buckets(object) => (series, OPTIONS_OF_BUCKETS),
        _ => (namespace, &[]),
    };
    let options = DocBuf::build(|options| {
        let own = object.iter().skip(1).filter(|option| !left_out.contains(&option.key()));
        own.for_each(|option| {
            options.append_element(option);
        });
    });
    let options = CollectionOptions::parse(options.as_doc(), now_ms())?;
    Ok(Entry::Create(namespace, options, uuid))
}

/// Returns the UUID in the field `ui`.
fn uuid_of(entry: Doc<'_>) -> Result<Uuid> {
    match entry.get("ui") {
        Some(Value::Binary(Binary { subtype: 4, bytes })) => bytes.try_into().map(Uuid).ok(),
        _ => None,
    }
    .ok_or_else(|| Error::bad_value("the field ui of an entry is a UUID"))
}

/// Returns the command for an index as the oplog has it: its fields follow the name of the collection.
fn create_index(object: Doc<'_>) -> DocBuf {
    let collection = object.first().map_or(Value::Null, |first| first.value());
    let index = DocBuf::build(|index| {
        object.fields().skip(1).for_each(|(name, value)| {
            index.append(name, value);
        });
    });
    doc! { "createIndexes": collection, "indexes": [&index] }
}

fn id_of(doc: Doc<'_>) -> Result<Value<'_>> {
    let missing = || Error::new(ErrorCode::NoSuchKey, "Missing expected field \"_id\"");
    doc.get("_id").ok_or_else(missing)
}

/// The collection that an entry writes.
struct Written {
    /// The collection; `None` if it does not exist.
    collection: Option<Arc<Collection>>,
    /// For buckets of a time-series collection, which is `collection` then: what validates them.
    of_buckets: Option<Validation>,
}

impl Written {
    fn new(cx: &Context<'_>, unit: &dyn UnitOfWork, namespace: &Namespace) -> Result<Self> {
        let store = &cx.service.store;
        match store.catalog().series_of(namespace) {
            Some(series) => {
                store.number_buckets(series)?;
                let collection = unit.collection(&series.namespace)?;
                let of_buckets = Some(validation_of_buckets(series)?);
                Ok(Written { collection, of_buckets })
            }
            None => Ok(Written { collection: unit.collection(namespace)?, of_buckets: None }),
        }
    }
}

/// Does writes in one commit.
fn write(cx: &Context<'_>, policy: WritePolicy, writes: &[(&Namespace, Change<'_>)]) -> Result<()> {
    let _writing = cx.enter_unblocked()?;
    let mut unit = cx.writing_unit(policy)?;
    let mut targets = Vec::with_capacity(writes.len());
    for (namespace, change) in writes {
        let target = Written::new(cx, &unit, namespace)?;
        if target.collection.is_none() && !matches!(change, Change::Delete(_)) {
            let text = format!("Failed to apply operation: {namespace} does not exist");
            return Err(Error::new(ErrorCode::NamespaceNotFound, text));
        }
        targets.push(target);
    }
    unit.write_durably(&cx.interrupt, |writer| {
        for ((_, change), target) in writes.iter().zip(&targets) {
            let Some(found) = &target.collection else { continue };
            let now = writer.collection(&found.namespace);
            let collection = now.as_ref().unwrap_or(found);
            match &target.of_buckets {
                Some(validation) => oplog_buckets::apply(writer, collection, validation, *change)?,
                None => apply(writer, collection, *change)?,
            }
        }
        Ok(())
    })
}

fn apply(writer: &mut Writer, collection: &Arc<Collection>, change: Change<'_>) -> Attempt<()> {
    let id = match change {
        Change::Insert(doc) => doc.get("_id").unwrap_or(Value::Null),
        Change::Update(id, ..) | Change::Delete(id) => id,
    };
    let found = writer.view().get_by_id(collection, id)?;
    let before = found.as_ref().map(|found| found.doc.as_doc());
    let after = match change {
        Change::Delete(_) => None,
        Change::Insert(doc) => Some(doc.to_owned()),
        Change::Update(id, object, upsert) => Some(updated(before, (id, object, upsert))?),
    };
    match (found, after) {
        (Some(found), None) => writer.delete(collection, found.id, found.doc.as_doc()),
        (None, None) => Ok(()),
        (found, Some(after)) => {
            let store = Arc::clone(writer.store());
            let mut buffer = Vec::new();
            let after = prepare_insert(&store, after.as_doc(), &mut buffer)?;
            match found {
                Some(found) => writer.replace(collection, found.id, found.doc.as_doc(), after),
                None => writer.insert(collection, after).map(drop),
            }
        }
    }
}

/// Returns the document after an update.
fn updated(
    before: Option<Doc<'_>>,
    (id, object, upsert): (Value<'_>, Doc<'_>, bool),
) -> Result<DocBuf> {
    let Some(before) = before.or(upsert.then(Doc::empty)) else {
        let text = "Failed to apply operation: no document has the _id of its field o2";
        return Err(Error::new(ErrorCode::UnknownError, text));
    };
    let after = match (object.get("$v").and_then(|version| version.exact_i64()), object.get("diff"))
    {
        (Some(2), Some(Value::Document(diff))) => oplog_diff::apply(before, diff)?,
        _ if object.first().is_some_and(|first| first.key().starts_with('$')) => {
            let text = "an update of the oplog is a whole document, or has $v: 2 and diff";
            return Err(Error::location(4772600, text));
        }
        _ => object.to_owned(),
    };
    let is_other = |own: Value<'_>| !quire_document::equal(own, id, None);
    match after.get("_id") {
        Some(own) if is_other(own) => {
            let text = "an update of the oplog cannot change the _id";
            Err(Error::new(ErrorCode::ImmutableField, text))
        }
        Some(_) => Ok(after),
        None => Ok(DocBuf::build(|doc| {
            doc.append("_id", id).append_all(after.as_doc());
        })),
    }
}

/// Runs a command as the client itself would: its rights are checked.
fn run_command(cx: &mut Context<'_>, db: &str, mut command: DocBuf) -> Result<()> {
    command.append("$db", db);
    let call = Call::new(command.as_bytes())?;
    let interrupt = Arc::clone(&cx.interrupt);
    let (reply, _) = cx.connection.call(&call, interrupt);
    match reply.get("code") {
        None => Ok(()),
        Some(code) => {
            let code = code.exact_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or(1);
            let text = reply.get("errmsg").and_then(|text| text.as_str()).unwrap_or_default();
            Err(Error::location(code, text))
        }
    }
}

/// Adds the results of the entries to an error: those before it were applied.
fn with_results(error: Error, applied: usize, tried: usize) -> Error {
    let details = DocBuf::build(|details| {
        details.append("applied", tried as i32);
        let mut results = details.array("results");
        (0..tried).for_each(|at| {
            results.push(at < applied);
        });
    });
    error.with_details(details.into_bytes())
}
