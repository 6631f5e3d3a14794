//! `redactClientLogData`: no value of a client stands in the log, on any road that writes to it.

use crate::{Client, Lines, Server, code, text};
use quire_document::{DocBuf, Value, array, doc, extjson};

/// What every command below carries somewhere in its values.
const SECRET: &str = "hunter2";

/// Commands with the secret in documents, filters, updates, pipelines, `let`, comments and errors.
fn commands() -> Vec<DocBuf> {
    let own = doc! { "_id": "hunter2", "a": { "b": [1, "hunter2"] } };
    let twice =
        doc! { "q": { "a.b": "hunter2" }, "u": { "$push": { "a.b": "hunter2" } }, "multi": true };
    let failing = array![{ "$project": { "x": { "$toInt": "hunter2" } } }];
    let bulk = array![{ "insert": 0, "document": { "_id": "hunter2" } }];
    vec![
        doc! { "insert": "c", "documents": [&own] },
        // The error of a key that exists shows it.
        doc! { "insert": "c", "documents": [&own] },
        doc! { "insert": "checked", "documents": [{ "n": "hunter2" }] },
        doc! { "find": "c", "filter": { "a.b": "hunter2" }, "comment": "hunter2" },
        doc! { "find": "c", "filter": { "$nope": "hunter2" } },
        doc! { "count": "c", "query": { "_id": { "$in": ["hunter2"] } } },
        doc! { "distinct": "c", "key": "a", "query": { "_id": "hunter2" } },
        doc! { "update": "c", "updates": [&twice], "let": { "x": "hunter2" } },
        doc! { "update": "c", "updates": [{ "q": { "_id": "hunter2" }, "u": { "$inc": { "_id": 1 } } }] },
        doc! { "findAndModify": "c", "query": { "_id": "hunter2" }, "update": { "$set": { "z": "hunter2" } } },
        doc! { "aggregate": "c", "pipeline": [{ "$match": { "_id": "hunter2" } }], "cursor": {} },
        doc! { "aggregate": "c", "pipeline": &failing, "cursor": {} },
        doc! { "explain": { "find": "c", "filter": { "_id": "hunter2" } } },
        doc! { "bulkWrite": 1, "ops": &bulk, "nsInfo": [{ "ns": "test.c" }], "$db": "admin" },
        doc! { "hunter2": 1 },
        doc! { "delete": "c", "deletes": [{ "q": { "a.b": "hunter2" }, "limit": 0 }] },
    ]
}

/// Runs the commands on a server that logs every operation, and one whose cursor goes on.
fn run_all(client: &mut Client) {
    client.works(doc! { "create": "checked", "validator": { "n": 1 }, "validationAction": "warn", "$db": "test" });
    for mut command in commands() {
        if command.get("$db").is_none() {
            command.append("$db", "test");
        }
        client.run(command);
    }
    client.works(doc! { "insert": "d", "documents": [{ "s": "hunter2" }, {}, {}], "$db": "test" });
    let find =
        doc! { "find": "d", "filter": { "s": { "$ne": "hunter" } }, "batchSize": 1, "$db": "test" };
    let reply = client.works(find);
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).unwrap();
    let Some(Value::Int64(id)) = cursor.get("id") else { panic!("no cursor") };
    client.works(doc! { "getMore": id, "collection": "d", "comment": "hunter2", "$db": "test" });
}

fn shown(lines: &Lines) -> Vec<String> {
    let lines = lines.0.lock().unwrap();
    let print =
        |attributes: &DocBuf| extjson::print(attributes.as_doc(), extjson::Format::default());
    lines
        .iter()
        .map(|(message, _, attributes)| format!("{message} {}", print(attributes)))
        .collect()
}

#[test]
fn no_value_of_a_client_is_logged() {
    let lines = Lines::default();
    let server = Server::logging(&lines);
    let mut client = server.client(1);
    let set = |on: bool| doc! { "setParameter": 1, "redactClientLogData": on, "$db": "admin" };
    client.works(doc! { "setParameter": 1, "logLevel": 1, "$db": "admin" });
    client.works(set(true));
    run_all(&mut client);
    let redacted = shown(&lines);
    // The name of an unknown command is a name.
    let named = "{\"hunter2\":\"###\"";
    let leaks = redacted.iter().filter(|line| line.replace(named, "").contains(SECRET));
    let leaks: Vec<_> = leaks.collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    for part in [
        "###",
        "Document would fail validation",
        "\"errCode\":241",
        "originatingCommand",
        "\"type\":\"update\"",
    ] {
        assert!(redacted.iter().any(|line| line.contains(part)), "{part}: {redacted:#?}");
    }
    // The profiler's collection has them, as in MongoDB, and the log has them again.
    let before = redacted.len();
    client.works(set(false));
    client.works(doc! { "profile": 2, "$db": "test" });
    client.works(doc! { "find": "c", "filter": { "z": SECRET }, "$db": "test" });
    assert!(shown(&lines)[before..].iter().any(|line| line.contains(SECRET)));
}

#[test]
fn profiles_keep_values() {
    let server = Server::with(&[("redactClientLogData", "true")]);
    let mut client = server.client(1);
    client.works(doc! { "profile": 2, "$db": "test" });
    client.works(doc! { "find": "c", "filter": { "z": SECRET }, "$db": "test" });
    let entry = client
        .works(doc! { "find": "system.profile", "filter": { "command.find": "c" }, "$db": "test" });
    assert_eq!(text(&entry, "cursor.firstBatch.0.command.filter.z"), Some(SECRET));
    assert_eq!(
        code(&client.run(doc! { "getParameter": 1, "redactClientLogData": 1, "$db": "admin" })),
        0
    );
}
