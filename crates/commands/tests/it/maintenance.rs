//! `compact` and `reIndex`.

use crate::{Client, Server, at, code, number};
use quire_commands::Topology;
use quire_document::{ArrayBuf, DocBuf, Value, doc};

fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let documents: Vec<DocBuf> = (0..50).map(|n| doc! { "_id": n, "a": [n, 1] }).collect();
    let documents: ArrayBuf = documents.iter().collect();
    client.works(doc! { "insert": "c", "documents": &documents, "$db": "test" });
    let index = doc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": 9 };
    client.works(doc! { "createIndexes": "c", "indexes": [&index], "$db": "test" });
    client.works(doc! { "create": "v", "viewOn": "c", "pipeline": [], "$db": "test" });
    client
}

#[test]
fn compact_takes_its_options_and_refuses_others() {
    let server = Server::of(Topology::Standalone);
    let mut client = filled(&server);
    let nothing = Value::Null;
    for command in [
        doc! { "compact": "c", "$db": "test" },
        doc! { "compact": "c", "dryRun": nothing, "freeSpaceTargetMB": nothing, "$db": "test" },
        doc! { "compact": "c", "force": false, "freeSpaceTargetMB": 1.5, "$db": "test" },
    ] {
        assert_eq!(number(&client.works(command), "bytesFreed"), Some(0));
    }
    let dry = client.works(doc! { "compact": "c", "dryRun": true, "$db": "test" });
    assert_eq!((number(&dry, "estimatedBytesFreed"), number(&dry, "bytesFreed")), (Some(0), None));
    for (bad, expected) in [
        (doc! { "compact": "none", "$db": "test" }, 26),
        (doc! { "compact": 1, "$db": "test" }, 73),
        (doc! { "compact": "v", "$db": "test" }, 166),
        (doc! { "compact": "c", "force": 1, "$db": "test" }, 14),
        (doc! { "compact": "c", "dryRun": "x", "$db": "test" }, 14),
        (doc! { "compact": "c", "freeSpaceTargetMB": true, "$db": "test" }, 14),
        (doc! { "compact": "c", "freeSpaceTargetMB": 0.5, "$db": "test" }, 2),
        (doc! { "compact": "c", "dryrun": true, "$db": "test" }, 40415),
        (doc! { "compact": "c", "writeConcern": { "w": 1 }, "$db": "test" }, 72),
    ] {
        assert_eq!(code(&client.run(bad.clone())), expected, "{bad:?}");
    }
}

#[test]
fn compact_of_a_primary_must_be_forced() {
    let server = Server::new();
    let mut client = filled(&server);
    assert_eq!(code(&client.run(doc! { "compact": "c", "$db": "test" })), 20);
    let forced = client.works(doc! { "compact": "c", "force": true, "$db": "test" });
    assert_eq!(number(&forced, "bytesFreed"), Some(0));
}

#[test]
fn indexes_are_built_again_on_a_standalone_server() {
    let server = Server::of(Topology::Standalone);
    let mut client = filled(&server);
    let listed = |client: &mut Client| {
        let reply = client.works(doc! { "listIndexes": "c", "$db": "test" });
        at(&reply, "cursor.firstBatch").unwrap().as_array().unwrap().as_doc().to_owned()
    };
    let before = listed(&mut client);
    let reply = client.works(doc! { "reIndex": "c", "$db": "test" });
    assert_eq!((number(&reply, "nIndexesWas"), number(&reply, "nIndexes")), (Some(2), Some(2)));
    let indexes = at(&reply, "indexes").and_then(|indexes| indexes.as_array()).unwrap();
    assert_eq!(indexes.as_doc().to_owned(), before);
    assert_eq!(listed(&mut client), before);
    let checked = client.works(doc! { "validate": "c", "$db": "test" });
    assert_eq!(number(&checked, "keysPerIndex.a_1"), Some(99));
    let found =
        client.works(doc! { "count": "c", "query": { "a": 1 }, "hint": "a_1", "$db": "test" });
    assert_eq!(number(&found, "n"), Some(50));
    for (bad, expected) in [
        (doc! { "reIndex": "none", "$db": "test" }, 26),
        (doc! { "reIndex": 1, "$db": "test" }, 73),
        (doc! { "reIndex": "v", "$db": "test" }, 166),
        (doc! { "reIndex": "c", "more": 1, "$db": "test" }, 40415),
    ] {
        assert_eq!(code(&client.run(bad)), expected);
    }
    let primary = Server::new();
    let mut client = filled(&primary);
    assert_eq!(code(&client.run(doc! { "reIndex": "c", "$db": "test" })), 20);
}
