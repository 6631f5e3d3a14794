//! `validate`: intact collections, a damaged one, and the repairs on a standalone server.

use crate::{Client, Server, at, code, number, text};
use quire_commands::Topology;
use quire_document::{ArrayBuf, Binary, DocBuf, Regex, Value, doc};
use quire_storage::{CommitOptions, Mode, ScanRequest, Space, begin};

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    client.works(doc! { "insert": "c", "documents": [{ "_id": 1, "a": [1, 2] }, { "_id": 2, "a": 3 }, { "_id": 3 }], "$db": "test" });
    client.works(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }, { "key": { "b": 1 }, "name": "b_1", "sparse": true }], "$db": "test" });
    client
}

/// Removes one entry of an index without the server's knowledge.
fn lose_an_entry(server: &Server) {
    let store = server.0.store();
    let catalog = store.catalog();
    let collection = catalog.collection("test", "c").unwrap();
    let index = collection.index_by_name("a_1").unwrap();
    let engine = store.engine();
    let mut page = quire_storage::Page::default();
    let start = index.id.to_bytes();
    let end = quire_storage::prefix_end(&start);
    let request = ScanRequest::new(Space::Idx, &start, &end);
    engine.snapshot().unwrap().scan(&request, &mut page).unwrap();
    let mut txn = begin(engine, Mode::Write).unwrap();
    txn.delete(Space::Idx, page.rows[0].0.clone()).unwrap();
    txn.commit(CommitOptions::synced()).unwrap();
}

fn is_true(reply: &DocBuf, path: &str) -> bool {
    matches!(at(reply, path), Some(Value::Bool(true)))
}

fn count(reply: &DocBuf, path: &str) -> usize {
    at(reply, path).unwrap().as_array().unwrap().count()
}

#[test]
fn documents_and_keys_of_a_sound_collection_are_counted() {
    let server = Server::new();
    let mut client = filled(&server);
    let reply = client.works(doc! { "validate": "c", "full": "yes", "unknown": 1, "$db": "test" });
    assert!(is_true(&reply, "valid") && !is_true(&reply, "repaired"));
    assert_eq!((number(&reply, "nrecords"), number(&reply, "nIndexes")), (Some(3), Some(3)));
    let keys = ["_id_", "a_1", "b_1"].map(|name| number(&reply, &format!("keysPerIndex.{name}")));
    assert_eq!(keys, [Some(3), Some(4), Some(0)]);
    assert!(is_true(&reply, "indexDetails.a_1.valid"));
    assert_eq!(text(&reply, "repairMode"), Some("None"));
    let metadata = client.works(doc! { "validate": "c", "metadata": true, "$db": "test" });
    assert!(is_true(&metadata, "valid") && at(&metadata, "nrecords").is_none());
    for (bad, expected) in [
        (doc! { "validate": "none", "$db": "test" }, 26),
        (doc! { "validate": 1, "$db": "test" }, 73),
        (doc! { "validate": "c", "repair": true, "$db": "test" }, 115),
        (doc! { "validate": "c", "metadata": true, "full": true, "$db": "test" }, 72),
        (doc! { "validate": "c", "background": true, "full": true, "$db": "test" }, 115),
    ] {
        assert_eq!(code(&client.run(bad)), expected);
    }
}

#[test]
fn a_lost_entry_is_found_and_repaired_if_the_data_are_not_in_use() {
    let server = Server::of(Topology::Standalone);
    let mut client = filled(&server);
    lose_an_entry(&server);
    let reply = client.works(doc! { "validate": "c", "$db": "test" });
    assert!(!is_true(&reply, "valid") && !is_true(&reply, "indexDetails.a_1.valid"));
    assert!(is_true(&reply, "indexDetails.b_1.valid"));
    assert_eq!((count(&reply, "errors"), count(&reply, "missingIndexEntries")), (1, 1));
    let repaired = client.works(doc! { "validate": "c", "repair": true, "$db": "test" });
    assert!(is_true(&repaired, "valid") && is_true(&repaired, "repaired"));
    assert_eq!(text(&repaired, "repairMode"), Some("FixErrors"));
    let again = client.works(doc! { "validate": "c", "$db": "test" });
    assert!(is_true(&again, "valid") && !is_true(&again, "repaired"));
    assert_eq!(code(&client.run(doc! { "validate": "c", "background": 1, "$db": "test" })), 115);
    // Writes are admitted again after a repair.
    client.works(doc! { "insert": "c", "documents": [{ "_id": 4 }], "$db": "test" });
}

/// Documents that the server can read but the BSON specification forbids cause a warning and no
/// error.
#[test]
fn documents_that_depart_from_the_specification_are_counted() {
    let server = Server::new();
    let mut client = server.client(1);
    let twice = {
        let mut doc = doc! { "_id": 1, "n": 1 };
        doc.append("n", 2);
        doc
    };
    let regex = Value::Regex(Regex { pattern: "a", options: "mi" });
    let options = doc! { "_id": 2, "list": [regex] };
    let short = Binary { subtype: 4, bytes: &[1, 2, 3] };
    let documents = [
        doc! { "_id": 0, "sub": { "list": [1, { "n": 1 }] } },
        twice,
        options,
        doc! { "_id": 3, "id": (Value::Binary(short)) },
        doc! { "_id": 4, "sub": { "old": (Value::Symbol("s")) } },
    ];
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    for (full, expected) in [(false, 3), (true, 4)] {
        let validate = doc! { "validate": "c", "checkBSONConformance": full, "$db": "test" };
        let reply = client.works(validate);
        assert!(is_true(&reply, "valid"));
        assert_eq!(number(&reply, "nNonCompliantDocuments"), Some(expected), "{reply:?}");
        assert_eq!((count(&reply, "warnings"), count(&reply, "errors")), (1, 0));
    }
}

#[test]
fn a_repair_takes_back_that_an_index_is_multikey() {
    let server = Server::of(Topology::Standalone);
    let mut client = filled(&server);
    let is_multikey = |client: &mut Client| {
        let find = doc! { "find": "c", "filter": { "a": 3 } };
        let explain = doc! { "explain": &find, "verbosity": "queryPlanner", "$db": "test" };
        is_true(&client.works(explain), "queryPlanner.winningPlan.inputStage.isMultiKey")
    };
    let found = |client: &mut Client, a: i32| {
        let find = doc! { "find": "c", "filter": { "a": a }, "$db": "test" };
        count(&client.works(find), "cursor.firstBatch")
    };
    let array = doc! { "q": { "_id": 1 }, "limit": 1 };
    client.works(doc! { "delete": "c", "deletes": [&array], "$db": "test" });
    assert!(is_multikey(&mut client), "a delete takes nothing back");
    let checked = client.works(doc! { "validate": "c", "$db": "test" });
    assert!(is_true(&checked, "valid") && count(&checked, "warnings") == 0);
    let repaired = client.works(doc! { "validate": "c", "fixMultikey": true, "$db": "test" });
    assert!(is_true(&repaired, "valid") && is_true(&repaired, "repaired"));
    assert_eq!(count(&repaired, "warnings"), 1);
    assert!(!is_multikey(&mut client));
    let again = client.works(doc! { "validate": "c", "repair": true, "$db": "test" });
    assert!(!is_true(&again, "repaired"), "there is nothing more to repair");
    let insert = doc! { "_id": 4, "a": [3, 8] };
    client.works(doc! { "insert": "c", "documents": [&insert], "$db": "test" });
    assert!(is_multikey(&mut client));
    assert_eq!((found(&mut client, 3), found(&mut client, 8)), (2, 1));
    let after = client.works(doc! { "validate": "c", "$db": "test" });
    assert!(is_true(&after, "valid"));
}
