//! Stages about the server: `$collStats` and `$indexStats` in inner pipelines and in views, and
//! `$listCatalog`.

use crate::{Client, Server, at, code, number, text};
use quire_document::{ArrayBuf, DocBuf, Value, array, doc};

/// Returns a client of a server with the collection `test.c` (three documents, one of them with an
/// array in `x.y`, and an index on that) and the view `v` of the documents whose `_id` is not 0.
fn filled(server: &Server) -> Client {
    let mut client = server.client(1);
    let docs = array![
        { "_id": 0, "x": { "y": 1 } },
        { "_id": 1, "x": { "y": [1, 2] } },
        { "_id": 2 }
    ];
    client.works(doc! { "insert": "c", "documents": &docs, "$db": "test" });
    client.works(doc! { "createIndexes": "c", "$db": "test",
    "indexes": [{ "key": { "x.y": 1 }, "name": "xy" }] });
    let stages = array![{ "$match": { "_id": { "$ne": 0 } } }];
    client.works(doc! { "create": "v", "viewOn": "c", "pipeline": &stages, "$db": "test" });
    client
}

fn aggregate(on: &str, stages: &ArrayBuf) -> DocBuf {
    doc! { "aggregate": on, "pipeline": stages, "cursor": {}, "$db": "test" }
}

fn joined(from: &str, stages: &ArrayBuf) -> ArrayBuf {
    array![
        { "$lookup": { "from": from, "pipeline": stages, "as": "j" } },
        { "$sort": { "_id": 1 } }
    ]
}

fn united(with: &str, stages: &ArrayBuf) -> ArrayBuf {
    array![{ "$limit": 1 }, { "$unionWith": { "coll": with, "pipeline": stages } }]
}

#[test]
fn collection_and_index_statistics_begin_pipelines_of_joins() {
    let server = Server::new();
    let mut client = filled(&server);
    let count = array![{ "$collStats": { "count": {} } }, { "$project": { "count": 1 } }];
    let reply = client.works(aggregate("c", &joined("c", &count)));
    for row in 0..3 {
        assert_eq!(number(&reply, &format!("cursor.firstBatch.{row}.j.0.count")), Some(3));
    }
    let indexes = array![{ "$indexStats": {} }, { "$sort": { "name": 1 } }];
    let reply = client.works(aggregate("c", &united("c", &indexes)));
    assert_eq!(text(&reply, "cursor.firstBatch.1.name"), Some("_id_"));
    assert_eq!(text(&reply, "cursor.firstBatch.2.name"), Some("xy"));
    assert!(at(&reply, "cursor.firstBatch.3").is_none());
    // In a later batch, long after the command has ended.
    let first = doc! { "aggregate": "c", "pipeline": &united("c", &indexes),
    "cursor": { "batchSize": 1 }, "$db": "test" };
    let id = number(&client.works(first), "cursor.id").unwrap();
    let reply = client.works(doc! { "getMore": id, "collection": "c", "$db": "test" });
    assert_eq!(text(&reply, "cursor.nextBatch.1.name"), Some("xy"));
}

#[test]
fn they_begin_the_definition_of_a_view() {
    let server = Server::new();
    let mut client = filled(&server);
    let count = array![{ "$collStats": { "count": {} } }];
    client.works(doc! { "create": "n", "viewOn": "c", "pipeline": &count, "$db": "test" });
    let reply = client.works(doc! { "find": "n", "$db": "test" });
    assert_eq!(number(&reply, "cursor.firstBatch.0.count"), Some(3));
    let reply = client.works(aggregate("c", &joined("n", &array![])));
    assert_eq!(number(&reply, "cursor.firstBatch.0.j.0.count"), Some(3));
    assert_eq!(text(&reply, "cursor.firstBatch.0.j.0.ns"), Some("test.c"));
}

#[test]
fn statistics_stages_are_allowed_only_first() {
    let server = Server::new();
    let mut client = filled(&server);
    let mut fails = |stages: ArrayBuf| code(&client.run(aggregate("c", &stages)));
    let stats = || array![{ "$collStats": {} }];
    assert_eq!(fails(joined("v", &stats())), 40602);
    assert_eq!(fails(united("v", &stats())), 40602);
    assert_eq!(fails(joined("c", &array![{ "$limit": 1 }, { "$indexStats": {} }])), 40602);
    let by_fields = array![{ "$lookup": { "from": "c", "localField": "a", "foreignField": "a",
        "pipeline": &stats(), "as": "j" } }];
    assert_eq!(fails(by_fields), 40602);
    assert_eq!(fails(array![{ "$facet": { "a": &united("c", &stats()) } }]), 40600);
    // The operands are checked before anything runs.
    assert_eq!(fails(joined("c", &array![{ "$collStats": 1 }])), 5_447_000);
    assert_eq!(fails(joined("c", &array![{ "$collStats": { "x": {} } }])), 40415);
    assert_eq!(fails(united("none", &array![{ "$indexStats": { "a": 1 } }])), 28803);
    assert_eq!(fails(united("none", &array![{ "$indexStats": {} }])), 0);
    assert_eq!(fails(united("none", &array![{ "$collStats": { "count": {} } }])), 26);
    assert_eq!(fails(joined("c", &array![{ "$currentOp": {} }])), 73);
    assert_eq!(fails(united("c", &array![{ "$listCatalog": {} }])), 31441);
}

#[test]
fn explain_shows_them_where_they_stand() {
    let server = Server::new();
    let mut client = filled(&server);
    let stages = united("c", &array![{ "$indexStats": {} }, { "$limit": 1 }]);
    let explain =
        doc! { "explain": &aggregate("c", &stages), "verbosity": "executionStats", "$db": "test" };
    let reply = client.works(explain);
    let pipeline = "stages.1.$unionWith.pipeline";
    assert!(at(&reply, &format!("{pipeline}.0.$indexStats")).is_some(), "{reply:?}");
    assert_eq!(number(&reply, &format!("{pipeline}.1.$limit")), Some(1));
    assert_eq!(number(&reply, &format!("{pipeline}.1.nReturned")), Some(1));
}

#[test]
fn the_stored_catalog_is_listed() {
    let server = Server::new();
    let mut client = filled(&server);
    client.works(doc! { "create": "b", "$db": "other" });
    let reply = client.works(aggregate("c", &array![{ "$listCatalog": {} }]));
    let row = |path: &str| format!("cursor.firstBatch.0.{path}");
    for (path, wanted) in [
        ("db", "test"),
        ("name", "c"),
        ("type", "collection"),
        ("ns", "test.c"),
        ("md.ns", "test.c"),
        ("md.indexes.0.spec.name", "_id_"),
        ("md.indexes.1.spec.name", "xy"),
    ] {
        assert_eq!(text(&reply, &row(path)), Some(wanted), "{path}");
    }
    let multikey = |index: u32, name: &str| at(&reply, &row(&format!("md.indexes.{index}.{name}")));
    assert_eq!(multikey(0, "multikey").and_then(|on| on.as_bool()), Some(false));
    assert_eq!(multikey(1, "multikey").and_then(|on| on.as_bool()), Some(true));
    assert_eq!(multikey(1, "ready").and_then(|on| on.as_bool()), Some(true));
    let paths = multikey(1, "multikeyPaths").and_then(|paths| paths.as_document());
    let paths = paths.and_then(|paths| paths.get("x.y"));
    assert!(matches!(paths, Some(Value::Binary(found)) if found.bytes == [0, 1]), "{paths:?}");
    assert!(at(&reply, &row("md.options.uuid")).is_some());
    assert!(text(&reply, &row("idxIdent.xy")).is_some());
    assert!(at(&reply, "cursor.firstBatch.1").is_none());

    let none = client.works(aggregate("none", &array![{ "$listCatalog": {} }]));
    assert!(at(&none, "cursor.firstBatch.0").is_none());
    let all = |db: &str, spec: DocBuf| {
        let stages = array![{ "$listCatalog": &spec }, { "$match": { "db": { "$ne": "admin" } } }];
        doc! { "aggregate": 1, "pipeline": &stages, "cursor": {}, "$db": db }
    };
    let reply = client.works(all("admin", doc! {}));
    let names = ["other.b", "test.c", "test.system.views", "test.v"];
    for (at, name) in names.iter().enumerate() {
        assert_eq!(text(&reply, &format!("cursor.firstBatch.{at}.ns")), Some(*name));
    }
    assert_eq!(text(&reply, "cursor.firstBatch.3.type"), Some("view"));
    assert_eq!(text(&reply, "cursor.firstBatch.3.viewOn"), Some("c"));
    assert_eq!(code(&client.run(all("test", doc! {}))), 73);
    assert_eq!(code(&client.run(all("admin", doc! { "a": 1 }))), 6_200_600);
    assert_eq!(code(&client.run(aggregate("v", &array![{ "$listCatalog": {} }]))), 40602);
}
