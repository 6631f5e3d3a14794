//! Commands that MongoDB 8.2 refuses, with its codes, and some that it takes.

use super::transactions::{commit, within};
use super::{Server, at, code, number};
use quire_document::{ArrayBuf, Binary, DocBuf, Value, doc};

/// Runs each command, which must answer with its code; 0 for success.
fn answers(commands: Vec<(DocBuf, i32)>) {
    let server = Server::new();
    let mut client = server.client(1);
    client.works(
        doc! { "insert": "t", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2 }], "$db": "d" },
    );
    client.works(doc! { "create": "v", "viewOn": "t", "pipeline": [], "$db": "d" });
    for (mut command, wanted) in commands {
        if !command.as_doc().contains("$db") {
            command.append("$db", "d");
        }
        let reply = client.run(command.clone());
        assert_eq!(code(&reply), wanted, "{command:?}: {reply:?}");
    }
}

#[test]
fn the_form_of_a_read_preference_is_checked_by_every_command() {
    let with = |preference: DocBuf| doc! { "ping": 1, "$readPreference": &preference };
    let mut commands = vec![
        (doc! { "ping": 1, "$readPreference": 5 }, 14),
        (with(doc! { "mode": "nowhere" }), 2),
        (with(doc! { "mode": 1 }), 14),
        (with(doc! { "mode": "primary", "tags": [{ "a": "b" }] }), 72),
        (with(doc! { "mode": "primary", "tags": [{}] }), 0),
        (with(doc! { "mode": "nearest", "tags": [1] }), 14),
        (with(doc! { "mode": "nearest", "maxStalenessSeconds": 20 }), 160),
        (with(doc! { "mode": "nearest", "maxStalenessSeconds": 90 }), 0),
    ];
    for mode in ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"] {
        commands.push((with(doc! { "mode": mode }), 0));
        commands.push((doc! { "find": "t", "$readPreference": { "mode": mode } }, 0));
    }
    answers(commands);
}

#[test]
fn the_origin_of_a_write_concern_is_checked() {
    let with = |provenance: Value<'_>| {
        doc! { "insert": "t", "documents": [{}], "writeConcern": { "w": 1, "provenance": provenance } }
    };
    answers(vec![
        (with(Value::String("clientSupplied")), 0),
        (with(Value::String("somewhere")), 2),
        (with(Value::Int32(1)), 14),
    ]);
}

#[test]
fn names_and_indexes_of_the_server_are_refused() {
    let index = [doc! { "key": { "a": 1 }, "name": "a" }];
    let indexes: ArrayBuf = index.iter().collect();
    let create = |name: &str| doc! { "createIndexes": name, "indexes": &indexes };
    let mut of_config = create("transactions");
    of_config.append("$db", "config");
    let uuid = Value::Binary(Binary { subtype: 4, bytes: &[7; 16] });
    answers(vec![
        (doc! { "create": "a.system.b" }, 2),
        (doc! { "create": "a.systemic.b" }, 0),
        (doc! { "insert": "a.system.b", "documents": [{}] }, 2),
        (create("a.system.b"), 2),
        (create("system.views"), 73),
        (create("system.profile"), 73),
        (create("t"), 0),
        (of_config, 20),
        (doc! { "create": "w", "viewOn": "a$b", "pipeline": [] }, 73),
        (doc! { "find": uuid }, 26),
        (doc! { "count": uuid }, 26),
    ]);
}

#[test]
fn options_of_a_find_that_a_view_does_not_have() {
    answers(vec![
        (doc! { "find": "v", "allowPartialResults": true }, 168),
        (doc! { "find": "v", "allowPartialResults": false }, 0),
        (doc! { "find": "v", "singleBatch": true }, 168),
        (doc! { "find": "v", "singleBatch": true, "limit": 1 }, 0),
        (doc! { "find": "t", "allowPartialResults": true, "singleBatch": true }, 0),
    ]);
}

#[test]
fn roles_that_contain_themselves_and_built_in_roles() {
    let own = doc! { "role": "r", "db": "d" };
    answers(vec![
        (doc! { "createRole": "r", "roles": [&own], "privileges": [] }, 49),
        (doc! { "createRole": "r", "roles": [], "privileges": [] }, 0),
        (doc! { "updateRole": "r", "roles": [&own] }, 49),
        (doc! { "updateRole": "read", "roles": [] }, 31),
        (doc! { "dropRole": "read" }, 49),
    ]);
}

#[test]
fn an_explained_write_has_its_variables() {
    let query = doc! { "$expr": { "$eq": ["$a", "$$n"] } };
    let update = doc! { "q": &query, "u": { "$set": { "b": 1 } } };
    let explained = |command: &DocBuf| (doc! { "explain": command }, 0);
    answers(vec![
        explained(&doc! { "update": "t", "updates": [&update], "let": { "n": 1 } }),
        explained(
            &doc! { "delete": "t", "deletes": [{ "q": &query, "limit": 1 }], "let": { "n": 1 } },
        ),
        explained(
            &doc! { "findAndModify": "t", "query": &query, "remove": true, "let": { "n": 1 } },
        ),
        (doc! { "explain": { "delete": "t", "deletes": [{ "q": &query, "limit": 1 }] } }, 17276),
    ]);
}

#[test]
fn a_data_size_ends_at_its_limits() {
    let server = Server::new();
    let mut client = server.client(1);
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id }).collect();
    let docs: ArrayBuf = docs.iter().collect();
    client.works(doc! { "insert": "t", "documents": &docs, "$db": "d" });
    let bytes = doc! { "_id": 1 }.as_bytes().len() as i64;
    for (mut command, documents, reached) in [
        (doc! { "dataSize": "d.t" }, 10, false),
        (doc! { "dataSize": "d.t", "maxObjects": 3 }, 4, true),
        (doc! { "dataSize": "d.t", "maxObjects": 10 }, 10, false),
        (doc! { "dataSize": "d.t", "maxSize": (2 * bytes) }, 3, true),
        (doc! { "dataSize": "d.t", "maxSize": (2 * bytes), "estimate": true }, 3, true),
        (
            doc! { "dataSize": "d.t", "keyPattern": { "_id": 1 }, "min": { "_id": 5 }, "max": { "_id": 9 }, "maxObjects": 1 },
            2,
            true,
        ),
    ] {
        command.append("$db", "d");
        let reply = client.works(command.clone());
        assert_eq!(number(&reply, "numObjects"), Some(documents), "{command:?}");
        assert_eq!(number(&reply, "size"), Some(documents * bytes), "{command:?}");
        assert_eq!(at(&reply, "maxReached").is_some(), reached, "{command:?}");
    }
}

/// It went on with the documents of the renamed collection.
#[test]
fn a_cursor_over_a_renamed_collection_ends() {
    let server = Server::new();
    let mut client = server.client(1);
    let docs: Vec<DocBuf> = (0..10).map(|id| doc! { "_id": id }).collect();
    let docs: ArrayBuf = docs.iter().collect();
    client.works(doc! { "insert": "t", "documents": &docs, "$db": "d" });
    let found = client.works(doc! { "find": "t", "batchSize": 1, "$db": "d" });
    let id = number(&found, "cursor.id").unwrap();
    client.works(doc! { "renameCollection": "d.t", "to": "d.u", "$db": "admin" });
    let more = client.run(doc! { "getMore": id, "collection": "t", "$db": "d" });
    assert_eq!(code(&more), 175, "{more:?}");
}

#[test]
fn the_stable_api_has_one_spelling_of_each_command() {
    let remove =
        |name: &str| doc! { name: "t", "remove": true, "apiVersion": "1", "apiStrict": true };
    answers(vec![(remove("findandmodify"), 323), (remove("findAndModify"), 0)]);
}

/// The transaction was aborted.
#[test]
fn a_stage_that_does_not_exist_leaves_the_transaction_open() {
    let server = Server::new();
    let mut client = server.client(1);
    let insert = doc! { "insert": "t", "documents": [{ "_id": 1 }], "$db": "d" };
    client.works(within(insert, (1, 1), true));
    let unknown =
        doc! { "aggregate": "t", "pipeline": [{ "$nosuch": 1 }], "cursor": {}, "$db": "d" };
    assert_eq!(code(&client.run(within(unknown, (1, 1), false))), 40324);
    client.works(within(commit(), (1, 1), false));
    let found = client.works(doc! { "find": "t", "$db": "d" });
    assert!(at(&found, "cursor.firstBatch.0").is_some());
}
