//! What dump and restore tools send: collections made again from the options that `listCollections`
//! shows, with the indexes of `listIndexes`, and documents inserted past the validator.

use crate::{Client, Server, at};
use quire_document::{ArrayBuf, Doc, DocBuf, Value, doc};

/// Creates a collection of each kind in the database `src`, with documents and indexes.
fn fill(client: &mut Client) {
    let schema = doc! { "$jsonSchema": { "required": ["a"] } };
    let commands = [
        doc! { "create": "strict", "validator": &schema },
        doc! { "create": "warned", "validator": { "$expr": { "$lt": ["$a", "$b"] } },
        "validationLevel": "moderate", "validationAction": "warn" },
        doc! { "create": "logged", "validator": { "a": { "$gt": 5 } }, "validationAction": "errorAndLog" },
        doc! { "create": "capped", "capped": true, "size": 100_001, "max": 7 },
        doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "mine" },
        "expireAfterSeconds": 3600 },
        doc! { "create": "images", "changeStreamPreAndPostImages": { "enabled": true } },
        doc! { "create": "german", "collation": { "locale": "de", "strength": 1 },
        "storageEngine": { "wiredTiger": {} } },
        doc! { "create": "view", "viewOn": "capped", "pipeline": [{ "$match": { "_id": { "$gt": 15 } } }],
        "collation": { "locale": "fr" } },
        doc! { "collMod": "capped", "cappedSize": 200_000 },
        doc! { "insert": "strict", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2 }],
        "bypassDocumentValidation": true },
        doc! { "insert": "clustered", "documents": [{ "_id": 5 }, { "_id": 1 }] },
        doc! { "insert": "images", "documents": [{ "_id": 1 }] },
        doc! { "createIndexes": "strict", "indexes": [
            { "key": { "a": 1 }, "name": "a", "unique": true, "partialFilterExpression": { "a": { "$gt": 1 } } },
            { "key": { "$**": 1 }, "name": "all" },
        ] },
        doc! { "createIndexes": "german", "indexes": [
            { "key": { "b": -1 }, "name": "b", "expireAfterSeconds": 5, "hidden": true },
        ] },
        doc! { "createIndexes": "capped", "indexes": [
            { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 50 },
        ] },
    ];
    for mut command in commands {
        client.works(command.append("$db", "src").clone());
    }
    let numbers: Vec<DocBuf> = (0..20).map(|id| doc! { "_id": id }).collect();
    let numbers: ArrayBuf = numbers.iter().collect();
    client.works(doc! { "insert": "capped", "documents": &numbers, "$db": "src" });
}

/// Returns the first batch of a command's cursor.
fn batch(client: &mut Client, mut command: DocBuf, db: &str) -> Vec<DocBuf> {
    let reply = client.works(command.append("$db", db).clone());
    let batch = at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap();
    batch.iter().map(|row| row.as_document().unwrap().to_owned()).collect()
}

/// Everything about a collection that a dump holds.
#[derive(Debug, PartialEq)]
struct Dumped {
    options: DocBuf,
    id_index: Option<DocBuf>,
    indexes: Vec<DocBuf>,
    documents: Vec<DocBuf>,
}

/// Returns the names of the collections of a database, views last, and what they hold.
fn dump(client: &mut Client, db: &str) -> Vec<(String, Dumped)> {
    let mut found = Vec::new();
    for info in batch(client, doc! { "listCollections": 1 }, db) {
        let text = |name| info.get(name).and_then(|value| value.as_str()).unwrap();
        let (name, is_view) = (text("name"), text("type") == "view");
        if name.starts_with("system.") {
            continue;
        }
        let document = |name| info.get(name).and_then(|value| value.as_document());
        let mut read = |command: DocBuf| match is_view {
            true => Vec::new(),
            false => batch(client, command, db),
        };
        let dumped = Dumped {
            options: document("options").unwrap().to_owned(),
            id_index: document("idIndex").map(Doc::to_owned),
            indexes: read(doc! { "listIndexes": name }),
            documents: read(doc! { "find": name, "sort": { "$natural": 1 } }),
        };
        found.push((is_view, name.to_owned(), dumped));
    }
    found.sort_by(|(a, x, _), (b, y, _)| (a, x).cmp(&(b, y)));
    found.into_iter().map(|(_, name, dumped)| (name, dumped)).collect()
}

fn restore(client: &mut Client, db: &str, name: &str, dumped: &Dumped) {
    let mut create = doc! { "create": name };
    create.extend(|create| {
        create.append_all(dumped.options.as_doc());
    });
    if let Some(index) = &dumped.id_index {
        create.append("idIndex", index);
    }
    client.works(create.append("$db", db).clone());
    if !dumped.documents.is_empty() {
        let documents: ArrayBuf = dumped.documents.iter().collect();
        let reply = client.works(doc! {
            "insert": name, "documents": &documents, "ordered": false,
            "bypassDocumentValidation": true, "writeConcern": { "w": "majority" }, "$db": db,
        });
        assert!(reply.get("writeErrors").is_none(), "{reply:?}");
    }
    let is_other = |index: &&DocBuf| {
        index.get("key").and_then(|key| key.as_document()).is_none_or(|key| !key.contains("_id"))
    };
    let indexes: ArrayBuf = dumped.indexes.iter().filter(is_other).collect();
    if !indexes.as_array().is_empty() {
        client.works(doc! {
            "createIndexes": name, "indexes": &indexes, "ignoreUnknownIndexOptions": true,
            "$db": db,
        });
    }
}

#[test]
fn a_database_that_is_dumped_and_restored_is_the_same() {
    let server = Server::new();
    let mut client = server.client(1);
    fill(&mut client);
    let dumped = dump(&mut client, "src");
    assert_eq!(dumped.len(), 8);
    let capped = dumped.iter().find(|(name, _)| name == "capped").unwrap();
    assert_eq!(capped.1.documents.len(), 7);
    for (name, dumped) in &dumped {
        restore(&mut client, "dst", name, dumped);
    }
    assert_eq!(dump(&mut client, "dst"), dumped);
    // The rules hold again.
    let wrong = doc! { "insert": "strict", "documents": [{ "_id": 9 }], "$db": "dst" };
    let refused = client.works(wrong);
    assert!(matches!(at(&refused, "writeErrors.0.code"), Some(Value::Int32(121))));
}
