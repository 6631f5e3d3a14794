//! The documents of the oplog, with MongoDB's fields in MongoDB's order. A commit with one change of
//! a document is one entry; one with several is one `applyOps`, as a transaction is. Changes of the
//! catalog outside of transactions are entries of their own. All entries of a commit have its time.

use super::diff;
use quire_catalog::split_namespace;
use quire_collections::{ChangeEntry, ChangeWhat, EntryCollection, LogBeginning, Origin};
use quire_document::{Binary, Doc, DocBuf, DocWriter, Timestamp, Value};
use quire_storage::ClusterTime;
use std::collections::VecDeque;

/// The bytes of changes after which an `applyOps` ends. The rest of the commit is another one.
const APPLY_OPS_BYTES: usize = 8 << 20;
/// The term of a set whose only member was elected once.
const TERM: i64 = 1;

/// Makes entries of changes, which come in the order of the log.
#[derive(Default)]
pub(super) struct Entries {
    /// The changes of a commit that are no entry yet.
    commit: Option<Commit>,
    /// The finished entries, in order.
    pub ready: VecDeque<DocBuf>,
}

struct Commit {
    version: u64,
    stamp: Stamp,
    origin: Option<Origin>,
    operations: Vec<DocBuf>,
    bytes: usize,
}

/// What all entries of a commit end with.
#[derive(Clone, Copy)]
struct Stamp {
    time: ClusterTime,
    wall_ms: u64,
}

impl Entries {
    /// Adds a change.
    pub fn add(&mut self, entry: &ChangeEntry) {
        let version = entry.place.version;
        if self.commit.as_ref().is_some_and(|commit| commit.version != version) {
            self.end_commit();
        }
        let stamp = Stamp { time: entry.time, wall_ms: entry.wall_ms };
        let operations = operations(entry);
        if entry.catalog().is_some() && entry.origin.is_none() {
            self.end_commit();
            self.ready.extend(operations.iter().map(|operation| plain(operation, stamp)));
            return;
        }
        let commit = self.commit.get_or_insert_with(|| Commit {
            version,
            stamp,
            origin: entry.origin.clone(),
            operations: Vec::new(),
            bytes: 0,
        });
        commit.bytes += operations.iter().map(|doc| doc.as_bytes().len()).sum::<usize>();
        commit.operations.extend(operations);
        if commit.bytes >= APPLY_OPS_BYTES {
            self.end_commit();
        }
    }

    /// Makes an entry of the changes that were added last. Called at the end of what the log has.
    pub fn end_commit(&mut self) {
        let Some(Commit { stamp, origin, operations, .. }) = self.commit.take() else { return };
        match (&operations[..], &origin) {
            ([], _) => {}
            ([one], None) => self.ready.push_back(plain(one, stamp)),
            (all, _) => self.ready.push_back(apply_ops(all, origin.as_ref(), stamp)),
        }
    }
}

/// Returns the entry before all others, so that the log is never empty: it says that the log begins.
pub(super) fn beginning(beginning: &LogBeginning) -> DocBuf {
    let text = if beginning.whole { "initiating set" } else { "the log begins here" };
    let seconds = Timestamp::from_u64(beginning.time.0).seconds;
    let stamp = Stamp { time: beginning.time, wall_ms: u64::from(seconds) * 1000 };
    let operation = DocBuf::build(|entry| {
        entry.append("op", "n").append("ns", "");
        entry.document("o").append("msg", text);
    });
    plain(&operation, stamp)
}

fn plain(operation: &DocBuf, stamp: Stamp) -> DocBuf {
    DocBuf::build(|entry| {
        entry.append_all(operation.as_doc());
        stamp.write(entry);
    })
}

fn apply_ops(operations: &[DocBuf], origin: Option<&Origin>, stamp: Stamp) -> DocBuf {
    DocBuf::build(|entry| {
        if let Some(Origin { number, session }) = origin {
            entry.append("lsid", Doc::from_valid_bytes(session)).append("txnNumber", *number);
        }
        entry.append("op", "c").append("ns", "admin.$cmd");
        let mut command = entry.document("o");
        let mut list = command.array("applyOps");
        for operation in operations {
            list.push(operation);
        }
        list.finish();
        command.finish();
        stamp.write(entry);
    })
}

impl Stamp {
    fn write(self, entry: &mut DocWriter<'_>) {
        entry.append("ts", Timestamp::from_u64(self.time.0));
        entry.append("t", TERM).append("v", 2_i64);
        entry.append("wall", Value::Date(i64::try_from(self.wall_ms).unwrap_or(i64::MAX)));
    }
}

/// Returns the operations of a change, without their time.
fn operations(entry: &ChangeEntry) -> Vec<DocBuf> {
    match &entry.what {
        ChangeWhat::Insert { collection, doc } => {
            let doc = Doc::from_valid_bytes(doc);
            vec![of_document("i", collection, doc, Some(doc))]
        }
        ChangeWhat::Update { collection, key, description, .. } => {
            let update = diff::of_update(Doc::from_valid_bytes(description));
            let key = Doc::from_valid_bytes(key);
            vec![of_document("u", collection, update.as_doc(), Some(key))]
        }
        ChangeWhat::Replace { collection, after, .. } => {
            let doc = Doc::from_valid_bytes(after);
            vec![of_document("u", collection, doc, Some(doc))]
        }
        ChangeWhat::Delete { collection, key, .. } => {
            vec![of_document("d", collection, Doc::from_valid_bytes(key), None)]
        }
        ChangeWhat::Catalog(change) => of_catalog(Doc::from_valid_bytes(change)),
    }
}

/// Returns the operation on a document; `keyed` is a document with its `_id`.
fn of_document(
    op: &str,
    collection: &EntryCollection,
    o: Doc<'_>,
    keyed: Option<Doc<'_>>,
) -> DocBuf {
    DocBuf::build(|entry| {
        entry.append("op", op).append("ns", collection.namespace.as_str());
        entry.append("ui", Value::Binary(Binary { subtype: 4, bytes: &collection.uuid.0 }));
        entry.append("o", o);
        if let Some(keyed) = keyed {
            entry.document("o2").append_some("_id", keyed.get("_id"));
        }
    })
}

/// Returns the commands that a change of the catalog is.
fn of_catalog(change: Doc<'_>) -> Vec<DocBuf> {
    let text = |name: &str| change.get(name).and_then(|value| value.as_str());
    let (Some(op), Some(namespace)) = (text("op"), text("ns")) else { return Vec::new() };
    let (db, collection) = split_namespace(namespace).unwrap_or((namespace, ""));
    let details = match change.get("o") {
        Some(Value::Document(details)) => details,
        _ => Doc::empty(),
    };
    let command = |write: &mut dyn FnMut(&mut DocWriter<'_>)| {
        DocBuf::build(|entry| {
            entry.append("op", "c").append("ns", format!("{db}.$cmd").as_str());
            entry.append_some("ui", change.get("uuid"));
            write(&mut entry.document("o"));
        })
    };
    let indexes = || {
        let indexes = details.get("indexes").and_then(|indexes| indexes.as_array());
        indexes.into_iter().flat_map(|indexes| indexes.iter()).filter_map(|one| one.as_document())
    };
    match op {
        "create" => vec![command(&mut |o| {
            o.append("create", collection).append_all(details);
        })],
        "drop" => vec![command(&mut |o| {
            o.append("drop", collection);
        })],
        "dropDatabase" => vec![command(&mut |o| {
            o.append("dropDatabase", 1);
        })],
        "rename" => vec![command(&mut |o| {
            o.append("renameCollection", namespace).append_some("to", change.get("to"));
            o.append("stayTemp", false).append_some("dropTarget", change.get("dropTarget"));
        })],
        "modify" => vec![command(&mut |o| {
            o.append("collMod", collection);
            write_modification(details, o);
        })],
        "createIndexes" => {
            let each = indexes().map(|index| {
                command(&mut |o| {
                    o.append("createIndexes", collection).append_all(index);
                })
            });
            each.collect()
        }
        "dropIndexes" => {
            let each = indexes().map(|index| {
                command(&mut |o| {
                    o.append("dropIndexes", collection).append_some("index", index.get("name"));
                })
            });
            each.collect()
        }
        _ => Vec::new(),
    }
}

/// Writes the details of a `collMod`. As in MongoDB the seconds of an index are 64 bits here, and 32 in
/// the index.
fn write_modification(details: Doc<'_>, o: &mut DocWriter<'_>) {
    for (name, value) in details.fields() {
        let Some(index) = value.as_document().filter(|_| name == "index") else {
            o.append(name, value);
            continue;
        };
        let mut written = o.document(name);
        for (name, value) in index.fields() {
            match value.exact_i64().filter(|_| name == "expireAfterSeconds") {
                Some(seconds) => written.append(name, seconds),
                None => written.append(name, value),
            };
        }
    }
}
