//! `local.oplog.rs`: what tools read of it, and that its entries are the data.

use super::change_streams::{act, array, document, open, stored};
use super::*;
use quire_document::doc;
use quire_storage::rng::Rng;
use quire_storage::{Faults, SimulatedDisk};

fn started(disk: &SimulatedDisk) -> Server {
    let server = open(disk);
    server.0.note_start();
    server
}

/// Returns the entries that a find returns, of all batches.
fn entries(client: &mut Client, find: &DocBuf) -> Vec<DocBuf> {
    let mut reply = client.works(find.clone());
    let mut found: Vec<DocBuf> =
        array(&reply, "cursor.firstBatch").iter().map(|entry| document(Some(entry))).collect();
    loop {
        let id = number(&reply, "cursor.id").unwrap();
        if id == 0 {
            return found;
        }
        reply = client.works(doc! { "getMore": id, "collection": "oplog.rs", "$db": "local" });
        let batch = array(&reply, "cursor.nextBatch");
        found.extend(batch.iter().map(|entry| document(Some(entry))));
    }
}

fn all(client: &mut Client) -> Vec<DocBuf> {
    entries(client, &doc! { "find": "oplog.rs", "$db": "local" })
}

fn op(entry: &DocBuf) -> &str {
    text(entry, "op").unwrap()
}

/// Returns a command whose target is known by its name, as mongorestore applies it: the UUIDs are
/// others there.
fn without_uuid(o: Doc<'_>) -> DocBuf {
    let mut applied = DocBuf::new();
    for (name, value) in o.fields() {
        let is_target = name == "dropTarget";
        applied.append(name, if is_target { Value::Bool(true) } else { value });
    }
    applied
}

#[test]
fn the_entries_applied_elsewhere_give_the_same_documents() {
    let disk = SimulatedDisk::new(Faults::none(44));
    let server = started(&disk);
    let mut client = server.client(1);
    let (mut rng, mut next_id) = (Rng::new(44), 0);
    for _ in 0..150 {
        act(&mut client, &mut rng, &mut next_id);
    }
    let copy = Server::new();
    let mut other = copy.client(1);
    for entry in all(&mut client) {
        let o = document(entry.get("o"));
        match o.get("applyOps") {
            Some(operations) => drop(other.works(doc! { "applyOps": operations, "$db": "admin" })),
            None if op(&entry) == "n" => {}
            None => {
                let operation = doc! { "op": "c", "ns": (text(&entry, "ns").unwrap()),
                "o": &without_uuid(o.as_doc()) };
                let operation = if op(&entry) == "c" { operation } else { entry };
                other.works(doc! { "applyOps": [&operation], "$db": "admin" });
            }
        }
    }
    assert_eq!(stored(&mut other), stored(&mut client));
}

/// mongorestore reads the seconds as a number of 64 bits.
#[test]
fn a_changed_expiry_has_64_bits() {
    let server = started(&SimulatedDisk::new(Faults::none(45)));
    let mut client = server.client(1);
    let index = doc! { "name": "a_1", "key": { "a": 1 }, "expireAfterSeconds": 500 };
    client.works(doc! { "createIndexes": "t", "indexes": [&index], "$db": "d" });
    let change = doc! { "name": "a_1", "expireAfterSeconds": 1000 };
    client.works(doc! { "collMod": "t", "index": &change, "$db": "d" });
    let entry = all(&mut client).pop().unwrap();
    let expected = doc! { "name": "a_1", "expireAfterSeconds": 1000_i64 };
    let o = document(entry.get("o"));
    assert_eq!(document(o.get("index")), expected);
}

#[test]
fn tools_find_the_first_and_the_last_entry_and_the_size() {
    let disk = SimulatedDisk::new(Faults::none(44));
    let server = started(&disk);
    let mut client = server.client(1);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "d" });
    client.works(doc! { "insert": "t", "documents": [{ "_id": 2 }, { "_id": 3 }], "$db": "d" });
    let whole = all(&mut client);
    let shown: Vec<_> = whole.iter().map(|entry| (op(entry), text(entry, "ns").unwrap())).collect();
    assert_eq!(shown, [("n", ""), ("c", "d.$cmd"), ("i", "d.t"), ("c", "admin.$cmd")]);
    assert_eq!(text(&whole[0], "o.msg"), Some("initiating set"));
    assert_eq!(number(&whole[2], "o2._id"), Some(1));
    assert_eq!(text(&whole[1], "o.create"), Some("t"));
    let mut backward = whole.clone();
    backward.reverse();
    let by = |sort: DocBuf| doc! { "find": "oplog.rs", "sort": &sort, "$db": "local" };
    assert_eq!(entries(&mut client, &by(doc! { "$natural": -1 })), backward);
    assert_eq!(entries(&mut client, &by(doc! { "ts": -1 })), backward);
    let ts = whole[2].get("ts").unwrap();
    let after = doc! { "find": "oplog.rs", "filter": { "ts": { "$gt": ts } }, "$db": "local" };
    assert_eq!(entries(&mut client, &after), whole[3..]);
    let mut last = after.clone();
    last.append("sort", &doc! { "$natural": -1 });
    assert_eq!(entries(&mut client, &last), whole[3..]);
    let until = doc! { "find": "oplog.rs", "filter": { "ts": { "$lt": ts } },
    "sort": { "$natural": -1 }, "limit": 1, "$db": "local" };
    assert_eq!(entries(&mut client, &until), whole[1..2]);
    let counted =
        client.works(doc! { "count": "oplog.rs", "query": { "op": "c" }, "$db": "local" });
    assert_eq!(number(&counted, "n"), Some(2));
    let stages = doc! { "aggregate": "oplog.rs", "pipeline": [{ "$match": { "op": "i" } },
    { "$project": { "o": 1 } }], "cursor": {}, "$db": "local" };
    let found = client.works(stages);
    assert_eq!(array(&found, "cursor.firstBatch").count(), 1);
    client.works(
        doc! { "replSetResizeOplog": 1, "size": 1000.5, "minRetentionHours": 2, "$db": "admin" },
    );
    let stats = |client: &mut Client| {
        let stats = client.works(doc! { "collStats": "oplog.rs", "$db": "local" });
        (number(&stats, "maxSize"), number(&stats, "size").unwrap() > 0)
    };
    assert_eq!(stats(&mut client), (Some(1_049_100_288), true));
    server.0.close().unwrap();
    let mut again = started(&disk).client(1);
    assert_eq!(stats(&mut again), (Some(1_049_100_288), true));
    let starts = again.works(doc! { "find": "startup_log", "$db": "local" });
    assert_eq!(array(&starts, "cursor.firstBatch").count(), 2);
}

#[test]
fn a_tail_follows_the_log_and_nobody_writes_to_it() {
    let disk = SimulatedDisk::new(Faults::none(44));
    let server = started(&disk);
    let mut client = server.client(1);
    let last = all(&mut client).pop().unwrap();
    let find = doc! { "find": "oplog.rs", "filter": { "ts": { "$gt": (last.get("ts").unwrap()) },
    "ns": "d.t", "op": { "$in": ["i", "u", "d"] } }, "tailable": true, "awaitData": true,
    "$db": "local" };
    let reply = client.works(find);
    let id = number(&reply, "cursor.id").unwrap();
    assert_ne!(id, 0);
    client.works(doc! { "insert": "t", "documents": [{ "_id": 1, "a": [1, 2], "b": { "c": 1 } }],
    "$db": "d" });
    let change = doc! { "$set": { "b.c": 2 }, "$unset": { "a.0": 1 } };
    client.works(
        doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": &change }], "$db": "d" },
    );
    client.works(
        doc! { "update": "t", "updates": [{ "q": { "_id": 1 }, "u": { "z": 1 } }], "$db": "d" },
    );
    client
        .works(doc! { "delete": "t", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }], "$db": "d" });
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let more = doc! { "getMore": id, "collection": "oplog.rs", "$db": "local" };
        let reply = client.works(more);
        assert_eq!(number(&reply, "cursor.id"), Some(id));
        seen.extend(array(&reply, "cursor.nextBatch").iter().map(|entry| document(Some(entry))));
    }
    let shown: Vec<_> = seen.iter().map(op).collect();
    assert_eq!(shown, ["i", "u", "u", "d"]);
    let expected = doc! { "$v": 2, "diff": { "sa": { "a": true, "u0": Value::Null },
    "sb": { "u": { "c": 2 } } } };
    assert_eq!(document(seen[1].get("o")), expected);
    assert_eq!(document(seen[2].get("o")), doc! { "_id": 1, "z": 1 });
    for write in [
        doc! { "insert": "oplog.rs", "documents": [{ "_id": 1 }], "$db": "local" },
        doc! { "delete": "oplog.rs", "deletes": [{ "q": {}, "limit": 0 }], "$db": "local" },
        doc! { "update": "oplog.rs", "updates": [{ "q": {}, "u": { "a": 1 } }], "$db": "local" },
    ] {
        let reply = client.run(write);
        let error = at(&reply, "writeErrors.0.code").is_some() || code(&reply) != 0;
        assert!(error, "{reply:?}");
    }
    assert_eq!(code(&client.run(doc! { "drop": "oplog.rs", "$db": "local" })), 5_255_000);
}
